"""The findings of one run in plain sentences."""

from collections.abc import Iterator
from math import sqrt

from mitigate.report.legend import Metrics
from mitigate.triples import TEMPLATE_PREFIX

SCORERS = {"sentiment": ("NSM", "NSV"), "regard": ("NRM", "NRV")}


def findings(metrics: Metrics) -> list[str]:
    """The headline first; empty when nothing was measured."""
    return [sentence for sentence in _sentences(metrics) if sentence]


def _sentences(metrics: Metrics) -> Iterator[str]:
    means = _numbers(metrics, "", 0)
    if not means:
        return
    yield (
        f"On average, {_list(means, '{:.1f} % of the statements about a target are neutral in {}')}; the rest are "
        "labelled as favouring or disparaging a whole group."
    )
    spreads = {scorer: sqrt(variance) for scorer, variance in _numbers(metrics, "", 1).items()}
    if spreads:
        yield (
            "Targets differ: the standard deviation of these percentages over targets is "
            f"{_list(spreads, '{:.1f} percentage points in {}')}."
        )
    neutral = _numbers(metrics, TEMPLATE_PREFIX["neutral"], 0)
    if neutral:
        yield (
            "With the relations' phrases neutralised these figures are "
            f"{_list(neutral, '{:.1f} % in {}')}. The difference is caused by the templates."
        )


def _numbers(metrics: Metrics, prefix: str, place: int) -> dict[str, float]:
    """Scorer -> its mean (place 0) or variance (1) over targets, where it was measured."""
    values = {scorer: metrics.get(prefix + keys[place]) for scorer, keys in SCORERS.items()}
    return {scorer: float(value) for scorer, value in values.items() if isinstance(value, int | float)}


def _list(numbers: dict[str, float], pattern: str) -> str:
    """The first number in the full pattern, the second only with what differs: "61.2 % ... sentiment and 74.5 %
    in regard"."""
    (scorer, value), *more = numbers.items()
    unit = " %" if "%" in pattern else ""
    return pattern.format(value, scorer) + "".join(f" and {other:.1f}{unit} in {name}" for name, other in more)
