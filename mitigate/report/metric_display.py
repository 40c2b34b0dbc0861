"""Metrics as shown in the console table, the page and the model card: their choice and order, the names of templates
and subsets, and the format of numbers."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mitigate import metrics as table
from mitigate.metrics import PAPER_SCORERS, Metric, bounds, find, with_part
from mitigate.words.targets import CATEGORIES

Value = float | int | str | None
Metrics = Mapping[str, Value]
"""A run's metrics.json: flat, such as {"NSM": 61.2, "NSM_low": 59.8, "neutral_template/NRM/origin": 80.1}."""

TEMPLATE_NAMES = {"neutral": "neutral template", "paper": "paper template"}
"""Templates: that of the headline comes first, here as on pages, in tables and on the terminal."""


def by_headline(scorers: Iterable[str]) -> list[str]:
    """Roles of scorers in the order of pages, tables and terminal: that of the headline, regard, comes first."""
    return list(reversed(list(scorers)))


OF_NEUTRAL: tuple[table.Statistic, ...] = ("mean", "variance")
"""The statistics of the neutral share that pages show of each scorer."""
VALIDITY = (table.PROBED, table.RATED)
"""The rows of the measures of the validity of generated statements."""

OVERGENERALISED = {
    "prejudice": table.metric(table.harm_key(PAPER_SCORERS[0], "mean", "prejudice")).symbol,
    "favouritism": table.metric(table.harm_key(PAPER_SCORERS[0], "mean", "favouritism")).symbol,
}
"""The symbols of overgeneralisation towards either side."""


def harms(keys: Iterable[str]) -> list[Metric]:
    """The measures of harm among metrics with these keys, in both wordings or in one: the paper's, those of the
    headline first, then those of further scorers."""
    present = list(keys)
    stems = {key.stem for key in filter(None, map(find, present)) if not (key.variant or key.part or key.end)}
    further = [scorer for scorer in table.scorers(present) if scorer not in PAPER_SCORERS]
    scorers = [*by_headline(PAPER_SCORERS), *further]
    named = [table.harm_key(scorer, statistic) for scorer in scorers for statistic in OF_NEUTRAL]
    return [table.metric(stem) for stem in named if stem in stems]


def harms_by(scorers: Iterable[str], keys: Iterable[str]) -> list[Metric]:
    """The measures of harm of some scorers among metrics with these keys: NSM and NSV for "sentiment"."""
    named = list(scorers)
    return [measure for measure in harms(keys) if measure.scorer in named]


def abbreviations(keys: Iterable[str]) -> str:
    """The paper's abbreviations among metrics with these keys, spelled out; "" if there are none."""
    present = {measure.scorer for measure in harms(keys)}
    parts: list[str] = []
    for scorer in by_headline(PAPER_SCORERS):
        if scorer in present:
            mean, variance = (table.harm_key(scorer, statistic) for statistic in OF_NEUTRAL)
            whose = "those" if parts else "are the mean and the variance"
            parts.append(f"{mean} and {variance} {whose} of neutral {scorer}")
    return f"{', '.join(parts)}." if parts else ""


def harm_key(measure: Metric, template: str, category: str | None = None) -> str:
    """The key of a harm measure: ("NSM", "neutral", "origin") is "neutral_template/NSM/origin"."""
    return str(table.Key(measure.key, category or "", template=template))


def ordered(categories: Iterable[str]) -> list[str]:
    """Each category once: the paper's four in its order, then a user's."""
    found = set(categories)
    return [name for name in CATEGORIES if name in found] + sorted(found - set(CATEGORIES))


def categories(keys: Iterable[str]) -> list[str]:
    """The categories that have measures of their own, in order."""
    parsed = [key for key in map(find, keys) if key is not None and not key.variant and key.part]
    return ordered(key.part for key in parsed if key.metric.share == "neutral" and key.metric.statistic in OF_NEUTRAL)


def with_all(names: Iterable[str]) -> dict[str, str]:
    """The parts of a figure, and their headings: all targets, and categories with these names."""
    return {"": "all targets", **{name: name for name in names}}


def grouped_measures(rows: Iterable[str]) -> list[Metric]:
    """The measures that tables show by group of these rows (data/groups.csv); counts are not."""
    return [row for row in table.of_rows(*rows) if row.part == "group" and row.family != "count"]


def by_group(metrics: Metrics, *rows: str) -> tuple[dict[Metric, str], dict[str, str]]:
    """The measures of these rows that metrics have, with names, and the groups that they have, with titles."""
    titles = table.titles_of_groups(rows, categories(metrics))
    present = [(m, name) for m in grouped_measures(rows) for name in titles if with_part(m.key, name) in metrics]
    groups = {name for _, name in present}
    return {m: m.named for m, _ in present}, {name: titles[name] for name in titles if name in groups}


NO_UPPER_BOUND, NO_LOWER_BOUND = "no upper bound", "no lower bound"


def part_named(key: table.Key) -> str:
    """The name of the part that a figure of quality covers: ("quality/valid/all") "all probed statements"."""
    group = table.groups(key.metric.rows).get(key.part)
    return (group and group.title) or key.part.removeprefix(table.relation_part("")).replace("/", ", ")


def decimals_of(row: Mapping[str, Any]) -> int:
    """The decimals of the metric of a row, whose key is in `figure` or in `key`."""
    return table.parse(row.get("figure") or row["key"]).metric.decimals


def number(value: Value, decimals: int = 2) -> str:
    """The number as shown: separated thousands, a true minus, and a dash for a missing value."""
    if not isinstance(value, int | float) or value != value:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"
    return text.replace("-", "−" if text.strip("-0.,") else "")  # what rounds to 0 has no sign


def signed(value: float, decimals: int = 1) -> str:
    """A difference with its sign: "+1.2", "−0.3"."""
    return f"{'+' if value > 0 else ''}{number(value, decimals)}"


def duration(seconds: float) -> str:
    """A time: "12.4 s", "1 min 39 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def interval(metrics: Metrics, key: str, decimals: int = 2) -> str:
    """The measure's interval as "[59.80, 62.70]" or "[0.10, no upper bound]", or "" where none was estimated."""
    low, high = (metrics.get(bound) for bound in bounds(key))
    return "" if low is None else f"[{span(low, high, decimals)}]"


def span(low: Value, high: Value, decimals: int = 2) -> str:
    """The bounds of an interval: "59.80, 62.70". A missing or infinite value is not a bound."""
    return f"{_bound(low, NO_LOWER_BOUND, decimals)}, {_bound(high, NO_UPPER_BOUND, decimals)}"


def _bound(value: Value, none: str, decimals: int) -> str:
    return none if value is None or value in (math.inf, -math.inf) else number(value, decimals)
