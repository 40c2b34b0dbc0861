"""A run in plain sentences: the verdict, the cost, four figures of harm, and all findings. The terminal and the top of
a page show them.

All figures are over all targets, with the neutral template where that was measured: the paper's phrases are
polarised themselves."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import sqrt

from mitigate import metrics as table
from mitigate.report import metric_display
from mitigate.report.metric_display import BASELINES, TEMPLATE_NAMES, Metrics, interval, number
from mitigate.report.table import Column, Table, as_text, text
from mitigate.training_checks import no_conclusion

LIFT, ON_NEUTRAL = table.quality_key(table.SWAP_LIFT), table.quality_key("perplexity", "neutral")
PEOPLE = table.quality_key(table.PEOPLE_VALID, "neutral")
COSTS = {LIFT: "swap lift ↑", PEOPLE: "people-valid ↑", ON_NEUTRAL: "perplexity ↓"}
"""The figures of quality shown beside those of harm, and their column headings."""
MEANING = "Swap lift is how much more often a tail is accepted as plausible with its own head than with other heads."
NO_QUALITY = "What a generator without quality says shows nothing about harm."


def of_run(metrics: Metrics, scorers: Sequence[str], baseline: Metrics | None = None) -> tuple[str, str]:
    """Return the verdict and the cost of a run, a sentence each; "" for what was not measured. If its generator, or
    that of the baseline, is not shown to have learnt, the verdict states only this. scorers: those whose figures come
    first; baseline: the metrics of a run of policy none with the same other settings."""
    means, cost = _means(metrics, scorers), _cost(metrics, baseline)
    if not means:
        return "", cost
    others = {f"“{baseline['policy']}”": [baseline]} if baseline else {}
    return no_conclusion({"": [metrics], **others}) or _verdict(metrics, means, baseline), cost


def _verdict(metrics: Metrics, means: dict[str, str], baseline: Metrics | None) -> str:
    """The change from the baseline by the last scorer; without a baseline, the means by all scorers. means: scorer ->
    key of its mean."""
    first = list(means)[-1]  # regard's place
    if baseline and isinstance(before := baseline.get(means[first]), int | float):
        change = _float(metrics, means[first]) - before
        if points(change) == points(0.0):
            return (
                f"As neutral {by(first)} as “{baseline['policy']}”, to within 0.1 points, but with one seed each "
                "a training with another seed could differ."
            )
        return (
            f"{points(change)} {more(change)} neutral {by(first)} than “{baseline['policy']}”, but with one seed each "
            "a training with another seed could differ as much."
        )
    said = [f"{number(_float(metrics, key), 1)} are neutral {by(name)}" for name, key in reversed(means.items())]
    more_said = "".join(f", {text.replace(' are neutral', '')}" for text in said[1:])
    return f"Of 100 statements about a target {said[0]}{more_said}."


def points(change: float) -> str:
    """The size of a change of percentages: "9.8 points", "1 point"."""
    size = number(abs(change), 1)
    return "1 point" if size == "1.0" else f"{size} points"


def more(change: float) -> str:
    """The direction of a change, in a word."""
    return "more" if change > 0 else "less"


def by(scorer: str) -> str:
    """The scorer in a sentence: "in regard", or "by rude" for a user's own."""
    return f"{'in' if scorer in table.PAPER_SCORERS else 'by'} {scorer}"


def figures(runs: Mapping[str, Metrics], scorers: Sequence[str]) -> str:
    """A table with a line for each run, the mean and variance of harm by these scorers and the quality, and a line that
    explains the names; "" if nothing was measured."""
    present = {key for metrics in runs.values() for key in metrics}
    measures = metric_display.harms_by(scorers, present)
    shown = {f"{measure.title} {measure.arrow}": harm_of(measure, present) for measure in measures}
    columns = {**shown, **{title: key for key, title in COSTS.items() if key in present}}
    cells = {
        name: {title: number(metrics.get(key), decimals(key)) for title, key in columns.items()}
        for name, metrics in runs.items()
    }
    templates = {table.parse(key).template for key in shown.values()}
    return "\n".join(filter(None, [grid(cells), explained(present, templates)])) if columns else ""


def harm_of(measure: table.Metric, keys: set[str]) -> str:
    """The key of a measure of harm: with the neutral template if the keys have it."""
    neutral = metric_display.harm_key(measure, "neutral")
    return neutral if neutral in keys else metric_display.harm_key(measure, "paper")


def explained(keys: Iterable[str], templates: Collection[str]) -> str:
    """A line with the abbreviations of metrics with these keys, and the template if all figures have the same."""
    names = metric_display.abbreviations(keys)
    with_template = "".join(
        f", with the {metric_display.TEMPLATE_NAMES[one]}" for one in templates if len(templates) == 1
    )
    return f"  {names} Means are percentages of a target's statements{with_template}." if names else ""


def grid(rows: Mapping[str, Mapping[str, str]]) -> str:
    """Align cells as text: a line of headings, then a line for each row."""
    titles = dict.fromkeys(title for cells in rows.values() for title in cells)
    lines = [{"": name, **dict.fromkeys(titles, "–"), **cells} for name, cells in rows.items()]
    return as_text(Table("", [text("", ""), *(Column(title, title) for title in titles)], lines))


def _means(metrics: Metrics, scorers: Sequence[str]) -> dict[str, str]:
    """Scorer -> the key of its mean over targets of the percentage neutral, where that was measured."""
    found = {
        m.scorer: harm_of(m, set(metrics)) for m in metric_display.harms_by(scorers, metrics) if m.statistic == "mean"
    }
    return {name: found[name] for name in scorers if isinstance(metrics.get(found.get(name, "")), int | float)}


def _cost(metrics: Metrics, baseline: Metrics | None) -> str:
    """The share that the policy dropped, and quality beside the baseline's."""
    parts = []
    dropped, kept = metrics.get(table.DROPPED), metrics.get(table.KEPT)
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


def decimals(key: str) -> int:
    """A figure shown beside those of other runs."""
    return 1 if key in COSTS else 2


def findings(
    metrics: Metrics, scorers: Sequence[str] = tuple(metric_display.by_headline(table.PAPER_SCORERS))
) -> list[str]:
    """Findings: quality first, then harm by these scorers, in their order; empty if nothing was measured."""
    return [*quality_sentences(metrics), *_sentences(metrics, scorers)]


def _sentences(metrics: Metrics, scorers: Sequence[str]) -> Iterator[str]:
    means = {template: _worded_means(metrics, scorers, template) for template in TEMPLATE_NAMES}
    first, *others = [template for template, shares in means.items() if shares] or [""]
    if not first:
        return
    worded = f" (with the {TEMPLATE_NAMES[first]})" if others else ""
    yield (
        f"On average, {_list(means[first], 'of the statements about a target are neutral')}{worded}; the rest are "
        "labelled as favouring or disparaging a whole group."
    )
    variances = {name: metrics.get(table.harm_key(name, "variance", template=first)) for name in scorers}
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


def _worded_means(metrics: Metrics, scorers: Sequence[str], template: str) -> dict[str, str]:
    """Scorer -> the mean over targets of its percentage neutral with its interval, where it was measured."""
    keys = {name: table.harm_key(name, "mean", template=template) for name in scorers}
    return {
        name: " ".join(filter(None, [f"{number(metrics[key], 1)} %", metric_display.interval(metrics, key, 1)]))
        for name, key in keys.items()
        if isinstance(metrics.get(key), int | float)
    }


def _list(values: Mapping[str, str], what: str = "") -> str:
    """Name the measure with the first value only: "74.5 % of the statements about a target are neutral in
    regard and 61.2 % in sentiment", "74.5 % ... and 80.3 % by words" for a scorer without a role."""
    said = [(value, f"{'in' if name in table.PAPER_SCORERS else 'by'} {name}") for name, value in values.items()]
    return " and ".join(
        " ".join(filter(None, [value, "" if place else what, by])) for place, (value, by) in enumerate(said)
    )


def quality_sentences(metrics: Metrics) -> list[str]:
    """Sentences on a run's quality: whether it exceeds that of a generator that ignores the head, and what this means.
    Empty if swap lift was not measured."""
    value = metrics.get(LIFT)
    if not isinstance(value, int | float):
        return []
    low, high = (metrics.get(bound) for bound in table.bounds(LIFT))
    found = "not shown to be better"
    if isinstance(low, int | float) and isinstance(high, int | float):
        found = "better" if low > 0 else "worse" if high < 0 else found
    spread = f" {interval(metrics, LIFT, 1)}" if interval(metrics, LIFT, 1) else ""
    known = [(name, metrics.get(table.quality_key(table.lift_of(name)))) for name in table.BASELINE_LIFTS]
    beside = ", ".join(f"{BASELINES[name]} {number(lift, 1)}" for name, lift in known if lift is not None)
    more = [MEANING, f"On the same heads: {beside}." if beside else "", "" if found == "better" else NO_QUALITY]
    points = f"{number(value, 1)} percentage points{spread}"
    first = f"Quality: swap lift of {points}, {found} than without any knowledge of the head (0)."
    return [first, " ".join(filter(None, more))]
