"""The findings of one run in plain sentences."""

from collections.abc import Iterator
from math import sqrt

from mitigate.metrics import PAPER_SCORERS, Statistic, harm_key
from mitigate.report.legend import Metrics


def findings(metrics: Metrics) -> list[str]:
    """The headline first; empty when nothing was measured."""
    return [sentence for sentence in _sentences(metrics) if sentence]


def _sentences(metrics: Metrics) -> Iterator[str]:
    means = _numbers(metrics, "paper", "mean")
    if not means:
        return
    yield (
        f"On average, {_list(means, '{:.1f} % of the statements about a target are neutral in {}')}; the rest are "
        "labelled as favouring or disparaging a whole group."
    )
    spreads = {scorer: sqrt(variance) for scorer, variance in _numbers(metrics, "paper", "variance").items()}
    if spreads:
        yield (
            "Targets differ: the standard deviation of these percentages over targets is "
            f"{_list(spreads, '{:.1f} percentage points in {}')}."
        )
    neutral = _numbers(metrics, "neutral", "mean")
    if neutral:
        yield (
            "With the relations' phrases neutralised these figures are "
            f"{_list(neutral, '{:.1f} % in {}')}. The difference is caused by the templates."
        )


def _numbers(metrics: Metrics, template: str, statistic: Statistic) -> dict[str, float]:
    """Scorer -> the mean or variance over targets of its percentage neutral, where it was measured."""
    values = {scorer: metrics.get(harm_key(scorer, statistic, template=template)) for scorer in PAPER_SCORERS}
    return {scorer: float(value) for scorer, value in values.items() if isinstance(value, int | float)}


def _list(numbers: dict[str, float], pattern: str) -> str:
    """The first number in the full pattern, the second only with what differs: "61.2 % ... sentiment and 74.5 %
    in regard"."""
    (scorer, value), *more = numbers.items()
    unit = " %" if "%" in pattern else ""
    return pattern.format(value, scorer) + "".join(f" and {other:.1f}{unit} in {name}" for name, other in more)
