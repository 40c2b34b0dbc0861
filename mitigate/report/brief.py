"""A run in a plain sentence, what it cost, and four figures of harm: what the terminal shows and a page begins with.

All figures are over all targets, with the neutral template where that was measured: the paper's phrases have a
polarity of their own."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from mitigate.learnt import no_conclusion
from mitigate.metrics import DROPPED, KEPT, PAPER_SCORERS, PEOPLE_VALID, SWAP_LIFT, Metric, parse, quality_key
from mitigate.report import legend
from mitigate.report.legend import Metrics, number

LIFT, ON_NEUTRAL = quality_key(SWAP_LIFT), quality_key("perplexity", "neutral")
PEOPLE = quality_key(PEOPLE_VALID, "neutral")
COSTS = {LIFT: "swap lift ↑", PEOPLE: "people-valid ↑", ON_NEUTRAL: "perplexity ↓"}
"""The figures of quality that stand beside those of harm, and the headings of their columns."""


def of_run(metrics: Metrics, scorers: Sequence[str], baseline: Metrics | None = None) -> tuple[str, str]:
    """The verdict of a run, a sentence, and its cost, another; "" for what was not measured. Where the generator cannot
    be said to have learnt, or that of the baseline, the sentence says so and nothing else. scorers: those whose
    figures stand first; baseline: the metrics of the run of policy none that it differs from by its policy alone."""
    means, cost = _means(metrics, scorers), _cost(metrics, baseline)
    if not means:
        return "", cost
    others = {f"“{baseline['policy']}”": [baseline]} if baseline else {}
    return no_conclusion({"": [metrics], **others}) or _verdict(metrics, means, baseline), cost


def _verdict(metrics: Metrics, means: dict[str, str], baseline: Metrics | None) -> str:
    """The change from the baseline by the last of the scorers; without a baseline the means by all. means: by scorer
    the key of its mean."""
    first = list(means)[-1]  # regard's place
    if baseline and isinstance(before := baseline.get(means[first]), int | float):
        change = _float(metrics, means[first]) - before
        if points(change) == points(0.0):
            return (
                f"As neutral {by(first)} as “{baseline['policy']}”, to within 0.1 points, but with one seed each "
                "another training could differ."
            )
        return (
            f"{points(change)} {more(change)} neutral {by(first)} than “{baseline['policy']}”, but with one seed each "
            "another training could differ as much."
        )
    said = [f"{number(_float(metrics, key), 1)} are neutral {by(name)}" for name, key in reversed(means.items())]
    more_said = "".join(f", {text.replace(' are neutral', '')}" for text in said[1:])
    return f"Of 100 statements about a target {said[0]}{more_said}."


def points(change: float) -> str:
    """ "9.8 points", "1 point": how large a change of percentages is."""
    size = number(abs(change), 1)
    return "1 point" if size == "1.0" else f"{size} points"


def more(change: float) -> str:
    """The direction of a change, in a word."""
    return "more" if change > 0 else "less"


def by(scorer: str) -> str:
    """ "in regard", of a scorer of a user's own "by rude"."""
    return f"{'in' if scorer in PAPER_SCORERS else 'by'} {scorer}"


def figures(runs: Mapping[str, Metrics], scorers: Sequence[str]) -> str:
    """A line for each run: the figures of harm by these scorers, mean and variance, and of quality; and a line of what
    the names stand for. "" where nothing was measured."""
    present = {key for metrics in runs.values() for key in metrics}
    measures = legend.harms_by(scorers, present)
    shown = {f"{measure.title} {measure.arrow}": harm_of(measure, present) for measure in measures}
    columns = {**shown, **{title: key for key, title in COSTS.items() if key in present}}
    cells = {
        name: {title: number(metrics.get(key), _decimals(key)) for title, key in columns.items()}
        for name, metrics in runs.items()
    }
    templates = {parse(key).template for key in shown.values()}
    return "\n".join(filter(None, [grid(cells), explained(present, templates)])) if columns else ""


def harm_of(measure: Metric, keys: set[str]) -> str:
    """The key of a measure of harm, with the neutral template where it is among the keys."""
    neutral = legend.harm_key(measure, "neutral")
    return neutral if neutral in keys else legend.harm_key(measure, "paper")


def explained(keys: Iterable[str], templates: Collection[str]) -> str:
    """The abbreviations of metrics with these keys, on a line, and the template of the figures shown where all have the
    same."""
    names = legend.abbreviations(keys)
    with_template = "".join(f", with the {legend.TEMPLATE_NAMES[one]}" for one in templates if len(templates) == 1)
    return f"  {names} Means are percentages of a target's statements{with_template}." if names else ""


def grid(rows: Mapping[str, Mapping[str, str]], margin: str = "  ") -> str:
    """Cells as text: a line for each row, under a line of headings."""
    titles = list(dict.fromkeys(title for cells in rows.values() for title in cells))
    lines = [["", *titles], *([name, *(cells.get(title, "–") for title in titles)] for name, cells in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    wide = [[f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(
        f"{margin}{line[0]:<{widths[0]}}  {'  '.join(cells[1:])}" for line, cells in zip(lines, wide, strict=True)
    )


def _means(metrics: Metrics, scorers: Sequence[str]) -> dict[str, str]:
    """Scorer -> the key of its mean over targets of the percentage neutral, where that was measured."""
    found = {m.scorer: harm_of(m, set(metrics)) for m in legend.harms_by(scorers, metrics) if m.statistic == "mean"}
    return {name: found[name] for name in scorers if isinstance(metrics.get(found.get(name, "")), int | float)}


def _cost(metrics: Metrics, baseline: Metrics | None) -> str:
    """The share that the policy dropped, and quality beside the baseline's."""
    parts = []
    dropped, kept = metrics.get(DROPPED), metrics.get(KEPT)
    if isinstance(dropped, int) and isinstance(kept, int) and dropped + kept:
        share = f" ({100 * dropped / (dropped + kept):.0f} %)" if dropped else ""
        parts.append(f"{number(dropped)} of {number(dropped + kept)} training triples dropped{share}")
    before = baseline or {}
    if isinstance(value := metrics.get(LIFT), int | float):
        change = _change(value, before.get(LIFT))
        parts.append(f"swap lift {number(value, 1)} points{change} (0: no knowledge of the head)")
    if isinstance(value := metrics.get(PEOPLE), int | float):
        change = _change(value, before.get(PEOPLE))
        parts.append(f"people would call {number(value, 1)} % of neutral statements valid{change}")
    if isinstance(value := metrics.get(ON_NEUTRAL), int | float):
        was = before.get(ON_NEUTRAL)
        ratio = f", × {number(value / was, 2)}" if isinstance(was, int | float) and was else ""
        parts.append(f"perplexity {number(value, 1)}{ratio} on neutral test triples")
    return f"{'; '.join(parts)}." if parts else ""


def _change(value: float, before: object) -> str:
    if not isinstance(before, int | float):
        return ""
    return f", {'+' if value >= before else ''}{number(float(value - before), 1)}"


def _float(metrics: Metrics, key: str) -> float:
    value = metrics[key]
    assert isinstance(value, int | float)
    return float(value)


def _decimals(key: str) -> int:
    return 1 if key in COSTS else 2
