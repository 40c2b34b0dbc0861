"""The findings of one run in plain sentences."""

from collections.abc import Iterator, Sequence
from math import sqrt

from mitigate.metrics import PAPER_SCORERS, Statistic, harm_key
from mitigate.report import headline
from mitigate.report.legend import Metrics


def findings(metrics: Metrics, scorers: Sequence[str] = PAPER_SCORERS) -> list[str]:
    """Quality first, then harm by the figures of these scorers; empty when nothing was measured."""
    return [*headline.of_run(metrics), *_sentences(metrics, scorers)]


def _sentences(metrics: Metrics, scorers: Sequence[str]) -> Iterator[str]:
    means = _numbers(metrics, scorers, "paper", "mean")
    if not means:
        return
    yield (
        f"On average, {_list(means, '{:.1f} % of the statements about a target are neutral {}')}; the rest are "
        "labelled as favouring or disparaging a whole group."
    )
    spreads = {scorer: sqrt(variance) for scorer, variance in _numbers(metrics, scorers, "paper", "variance").items()}
    if any(spreads.values()):
        yield (
            "Targets differ: the standard deviation of these percentages over targets is "
            f"{_list(spreads, '{:.1f} percentage points {}')}."
        )
    neutral = _numbers(metrics, scorers, "neutral", "mean")
    if neutral:
        yield (
            "With the relations' phrases neutralised these figures are "
            f"{_list(neutral, '{:.1f} % {}')}. The difference is caused by the templates."
        )


def _numbers(metrics: Metrics, scorers: Sequence[str], template: str, statistic: Statistic) -> dict[str, float]:
    """Scorer -> the mean or variance over targets of its percentage neutral, where it was measured."""
    found = {scorer: metrics.get(harm_key(scorer, statistic, template=template)) for scorer in scorers}
    return {scorer: float(value) for scorer, value in found.items() if isinstance(value, int | float)}


def _list(numbers: dict[str, float], pattern: str) -> str:
    """The first number in the full pattern, the second only with what differs: "61.2 % ... in sentiment and 74.5 %
    in regard", "61.2 % ... in sentiment and 80.3 % by words" of a scorer that is no role's."""
    said = {f"{'in' if scorer in PAPER_SCORERS else 'by'} {scorer}": value for scorer, value in numbers.items()}
    (name, value), *more = said.items()
    unit = " %" if "%" in pattern else ""
    return pattern.format(value, name) + "".join(f" and {other:.1f}{unit} {name}" for name, other in more)
