"""Metrics as shown in the console table, the page and the model card: their choice and order, the names of templates
and subsets, and the format of numbers."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mitigate.measure.base import PAPER_SCORERS, Measure, bounds, find, key_of, measure_of, measures
from mitigate.measure.quality import GROUPS, titles_of_groups
from mitigate.words.targets import CATEGORIES

Value = float | int | str | None
Metrics = Mapping[str, Value]
"""A run's results by their keys in metrics.json (measure.results.Results): {"NSM": 61.2, "NSM_low": 59.8, ...}."""

TEMPLATE_NAMES = {"neutral": "neutral template", "paper": "paper template"}
"""Templates: that of the headline comes first, here as on pages, in tables and on the terminal."""


def by_headline(scorers: Iterable[str]) -> list[str]:
    """Roles of scorers in the order of pages, tables and terminal: that of the headline, regard, comes first."""
    return list(reversed(list(scorers)))


OF_NEUTRAL = ("neutral_mean", "neutral_variance")
"""The measures that pages show first of each scorer."""
VALIDITY = ("statements", "rated statements")
"""The tables of the measures of the validity of generated statements."""
OVERGENERALISED = {"prejudice": "O−", "favouritism": "O+"}
"""The symbols of overgeneralisation towards either side."""


def harms(keys: Iterable[str]) -> list[Measure]:
    """The neutral means and variances among metrics with these keys, in both wordings or in one: the paper's, those of
    the headline first, then those of further scorers."""
    known = [figure for figure in map(find, keys) if figure and figure.by == "all" and not figure.variant]
    present = dict.fromkeys((figure.scorer, figure.measure) for figure in known if figure.measure in OF_NEUTRAL)
    further = [scorer for scorer in dict.fromkeys(name for name, _ in present) if scorer not in PAPER_SCORERS]
    pairs = [(scorer, name) for scorer in (*by_headline(PAPER_SCORERS), *further) for name in OF_NEUTRAL]
    return [measure_of(name, scorer) for scorer, name in pairs if (scorer, name) in present]


def harms_by(scorers: Iterable[str], keys: Iterable[str]) -> list[Measure]:
    """The measures of harm of some scorers among metrics with these keys: NSM and NSV for "sentiment"."""
    named = list(scorers)
    return [measure for measure in harms(keys) if measure.scorer in named]


def abbreviations(keys: Iterable[str]) -> str:
    """The paper's abbreviations among metrics with these keys, spelled out; "" if there are none."""
    present = {measure.scorer for measure in harms(keys)}
    parts: list[str] = []
    for scorer in by_headline(PAPER_SCORERS):
        if scorer in present:
            mean, variance = (key_of(name, scorer) for name in OF_NEUTRAL)
            whose = "those" if parts else "are the mean and the variance"
            parts.append(f"{mean} and {variance} {whose} of neutral {scorer}")
    return f"{', '.join(parts)}." if parts else ""


def harm_key(measure: Measure, template: str, category: str | None = None) -> str:
    """The key of a harm measure: (NSM, "neutral", "origin") is "neutral_template/NSM/origin"."""
    return key_of(measure.name, measure.scorer, template, category or "")


def ordered(categories: Iterable[str]) -> list[str]:
    """Each category once: the paper's four in its order, then a user's."""
    found = set(categories)
    return [name for name in CATEGORIES if name in found] + sorted(found - set(CATEGORIES))


def categories(keys: Iterable[str]) -> list[str]:
    """The categories that have measures of their own, in order."""
    known = [figure for figure in map(find, keys) if figure and not figure.variant and figure.by == "category"]
    return ordered(figure.group for figure in known if figure.measure in OF_NEUTRAL)


def with_all(names: Iterable[str]) -> dict[str, str]:
    """The parts of a figure, and their headings: all targets, and categories with these names."""
    return {"": "all targets", **{name: name for name in names}}


def grouped_measures(tables: Iterable[str]) -> list[Measure]:
    """The measures of these tables that pages show by group (quality.GROUPS); counts are not."""
    return [one for one in measures() if one.of in tables and one.groups and one.family != "count"]


def by_group(metrics: Metrics, *tables: str) -> tuple[dict[Measure, str], dict[str, str]]:
    """The measures of these tables that metrics have, with names, and the groups that they have, with titles."""
    titles: dict[str, str] = {}
    for table in tables:
        titles |= titles_of_groups(table, categories(metrics))
    found = grouped_measures(tables)
    present = [(m, name) for m in found for name in titles if key_of(m.name, group=name) in metrics]
    groups = {name for _, name in present}
    return {m: m.named for m, _ in present}, {name: titles[name] for name in titles if name in groups}


NO_UPPER_BOUND, NO_LOWER_BOUND = "no upper bound", "no lower bound"


def part_named(key: str) -> str:
    """The name of the part that a figure of quality covers: ("quality/valid/all") "all probed statements"."""
    figure = find(key)
    return (figure and (GROUPS.get(figure.declared.of, {}).get(figure.group) or figure.group.replace("/", ", "))) or ""


def decimals_of(row: Mapping[str, Any]) -> int:
    """The decimals of the figure of a row, whose key is in `figure` or in `key`."""
    figure = find(row.get("figure") or row["key"])
    return figure.declared.decimals if figure else 2


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
