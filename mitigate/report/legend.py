"""How metrics are shown: those that the console table, the page and the model card share, from the table of metrics,
the names of templates and subsets, and how numbers are written."""

from collections.abc import Iterable, Mapping

from mitigate import metrics as table
from mitigate.metrics import PAPER_SCORERS, Metric, bounds, find, with_part
from mitigate.targets import CATEGORIES

Value = float | int | str | None
Metrics = Mapping[str, Value]
"""A run's metrics.json: flat, such as {"NSM": 61.2, "NSM_low": 59.8, "neutral_template/NRM/origin": 80.1}."""

Measure = Metric

HARMS = tuple(
    table.metric(table.harm_key(scorer, statistic)) for scorer in PAPER_SCORERS for statistic in ("mean", "variance")
)
QUALITY = tuple(map(table.quality, table.QUALITY))
VALID = table.quality(table.PLAUSIBLE)

SUBSETS = {
    "all": "all held-out triples",
    "neutral": "those with a neutral label",
    "polar": "those with a polarised label",
    "target": "those about a target",
}

PROBED = {
    "all": "all probed statements",
    "neutral": "those with a neutral label",
    "polar": "those with a polarised label",
}

TEMPLATE_NAMES = {"paper": "paper's template", "neutral": "phrase neutralised"}


def harms(keys: Iterable[str]) -> list[Metric]:
    """The measures of harm that metrics with these keys have, in both wordings or in one: the paper's, and those of
    further scorers."""
    present = list(keys)
    stems = {key.stem for key in filter(None, map(find, present)) if not (key.variant or key.part or key.end)}
    found = [measure for measure in HARMS if measure.key in stems]
    for scorer in table.scorers(present):
        if scorer not in PAPER_SCORERS:
            found += [table.metric(table.harm_key(scorer, "mean")), table.metric(table.harm_key(scorer, "variance"))]
    return found


def harm_key(measure: Metric, template: str, category: str | None = None) -> str:
    """The key of a harm measure: ("NSM", "neutral", "origin") is "neutral_template/NSM/origin"."""
    return str(table.Key(measure.key, category or "", template=template))


def quality_key(measure: Metric, subset: str) -> str:
    """The key of a quality measure: "quality/perplexity/neutral"."""
    return with_part(measure.key, subset)


def ordered(categories: Iterable[str]) -> list[str]:
    """Each category once: the paper's four in its order, then a user's."""
    found = set(categories)
    return [name for name in CATEGORIES if name in found] + sorted(found - set(CATEGORIES))


def categories(keys: Iterable[str]) -> list[str]:
    """The categories that have measures of their own, in order."""
    names = {measure.key for measure in HARMS}
    parsed = [key for key in map(find, keys) if key is not None and not key.variant]
    return ordered(key.part for key in parsed if key.stem in names and key.part)


def probed_parts(metrics: Metrics) -> dict[str, str]:
    """The parts of the probed statements whose plausible share is known, and what each is called."""
    parts = PROBED | {category: category for category in categories(metrics)}
    return {part: name for part, name in parts.items() if quality_key(VALID, part) in metrics}


def number(value: Value, decimals: int = 2) -> str:
    """The number as shown: thousands apart, a true minus, and a dash where there is none."""
    if not isinstance(value, int | float) or value != value:
        return "–"
    return (f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}").replace("-", "−")


def interval(metrics: Metrics, key: str, decimals: int = 2) -> str:
    """The measure's interval as "[59.80, 62.70]", or "" where none was estimated."""
    low, high = (metrics.get(bound) for bound in bounds(key))
    if low is None or high is None:
        return ""
    return f"[{number(low, decimals)}, {number(high, decimals)}]"
