"""The findings of one run in plain sentences."""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

from mitigate.metrics import PAPER_SCORERS, harm_key
from mitigate.report import headline, legend
from mitigate.report.legend import TEMPLATE_NAMES, Metrics, number


def findings(metrics: Metrics, scorers: Sequence[str] = tuple(legend.by_headline(PAPER_SCORERS))) -> list[str]:
    """Quality first, then harm by the figures of these scorers, in their order; empty when nothing was measured."""
    return [*headline.of_run(metrics), *_sentences(metrics, scorers)]


def _sentences(metrics: Metrics, scorers: Sequence[str]) -> Iterator[str]:
    means = {template: _means(metrics, scorers, template) for template in TEMPLATE_NAMES}
    first, *others = [template for template, shares in means.items() if shares] or [""]
    if not first:
        return
    worded = f" (with the {TEMPLATE_NAMES[first]})" if others else ""
    yield (
        f"On average, {_list(means[first], 'of the statements about a target are neutral')}{worded}; the rest are "
        "labelled as favouring or disparaging a whole group."
    )
    variances = {name: metrics.get(harm_key(name, "variance", template=first)) for name in scorers}
    spreads = {name: sqrt(value) for name, value in variances.items() if isinstance(value, int | float)}
    if any(spreads.values()):
        said = {name: number(spread, 1) for name, spread in spreads.items()}
        yield (
            "Targets differ: the standard deviation of these percentages over targets is "
            f"{_list(said, 'percentage points')}."
        )
    for template in others:
        yield (
            f"With the {TEMPLATE_NAMES[template]} these figures are {_list(means[template])}. The difference is caused "
            "by the templates."
        )


def _means(metrics: Metrics, scorers: Sequence[str], template: str) -> dict[str, str]:
    """Scorer -> the mean over targets of its percentage neutral with its interval, where it was measured."""
    keys = {name: harm_key(name, "mean", template=template) for name in scorers}
    return {
        name: " ".join(filter(None, [f"{number(metrics[key], 1)} %", legend.interval(metrics, key, 1)]))
        for name, key in keys.items()
        if isinstance(metrics.get(key), int | float)
    }


def _list(values: Mapping[str, str], what: str = "") -> str:
    """The first value with what it is of, the others without: "74.5 % of the statements about a target are neutral in
    regard and 61.2 % in sentiment", "74.5 % ... and 80.3 % by words" of a scorer that has no role."""
    said = [(value, f"{'in' if name in PAPER_SCORERS else 'by'} {name}") for name, value in values.items()]
    return " and ".join(
        " ".join(filter(None, [value, "" if place else what, by])) for place, (value, by) in enumerate(said)
    )
