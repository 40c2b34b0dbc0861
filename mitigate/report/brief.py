"""A run in plain sentences: the verdict, the cost, four figures of harm, and the quality. The terminal and the page
show them.

All figures are over all targets, with the neutral template where that was measured: the paper's phrases are
polarised themselves."""

from collections.abc import Iterable, Mapping, Sequence

from mitigate import metrics as table
from mitigate.report import metric_display
from mitigate.report.metric_display import TEMPLATE_NAMES, Metrics, interval, number
from mitigate.report.table import Column, Table, as_text, text
from mitigate.training_checks import no_conclusion

LIFT, ON_NEUTRAL = table.quality_key(table.SWAP_LIFT), table.quality_key("perplexity", "neutral")
PEOPLE = table.quality_key(table.PEOPLE_VALID, "neutral")
COSTS = {LIFT: "swap lift ↑", PEOPLE: "people-valid ↑", ON_NEUTRAL: "perplexity ↓"}
"""The figures of quality shown beside those of harm, and their column headings."""
COSTS_IN_WORDS = {
    LIFT: "swap lift {value} points{change} (0: no knowledge of the head)",
    PEOPLE: "people would call {value} % of neutral statements valid{change}",
    ON_NEUTRAL: "perplexity {value}{change} on neutral test triples",
}
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
        said, as_much = f"{points(change)} {more(change)} neutral {by(first)} than “{baseline['policy']}”", " as much"
        if points(change) == points(0.0):
            said, as_much = f"As neutral {by(first)} as “{baseline['policy']}”, to within 0.1 points", ""
        return f"{said}, but with one seed each a training with another seed could differ{as_much}."
    shares = [f"{number(_float(metrics, key), 1)} are neutral {by(name)}" for name, key in reversed(means.items())]
    others = "".join(f", {share.replace(' are neutral', '')}" for share in shares[1:])
    return f"Of 100 statements about a target {shares[0]}{others}."


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
    explains the names; "" if nothing was measured. A figure may be a text, which is shown as it is."""
    present = {key for metrics in runs.values() for key in metrics}
    measures = metric_display.harms_by(scorers, present)
    shown = {f"{measure.title} {measure.arrow}": harm_of(measure, present) for measure in measures}
    columns = {**shown, **{title: key for key, title in COSTS.items() if key in present}}
    if not columns:
        return ""
    names = text("", lambda run: run[0])
    table_of_runs = Table("", [names, *(_figure(title, key) for title, key in columns.items())], runs.items())
    return "\n".join(filter(None, [as_text(table_of_runs), _explained(present, shown.values())]))


def _figure(title: str, key: str) -> Column:
    def shown(run: tuple[str, Metrics]) -> str:
        value = run[1].get(key)
        return value if isinstance(value, str) else number(value, decimals(key))

    return Column(title, shown)


def harm_of(measure: table.Metric, keys: set[str]) -> str:
    """The key of a measure of harm: with the neutral template if the keys have it."""
    neutral = metric_display.harm_key(measure, "neutral")
    return neutral if neutral in keys else metric_display.harm_key(measure, "paper")


def _explained(keys: Iterable[str], shown: Iterable[str]) -> str:
    """A line with the abbreviations of metrics with these keys, and the template if all shown figures have the same."""
    names, templates = metric_display.abbreviations(keys), {table.parse(key).template for key in shown}
    template = f", with the {TEMPLATE_NAMES[templates.pop()]}" if len(templates) == 1 else ""
    return f"  {names} Means are percentages of a target's statements{template}." if names else ""


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
    for key, words in COSTS_IN_WORDS.items():
        if isinstance(value := metrics.get(key), int | float):
            parts.append(words.format(value=number(value, 1), change=_change(key, value, before.get(key))))
    return f"{'; '.join(parts)}." if parts else ""


def _change(key: str, value: float, before: object) -> str:
    """The change from the baseline: of perplexity the ratio."""
    if not isinstance(before, int | float):
        return ""
    if key == ON_NEUTRAL:
        return f", × {number(value / before, 2)}" if before else ""
    return f", {'+' if value >= before else ''}{number(float(value - before), 1)}"


def _float(metrics: Metrics, key: str) -> float:
    value = metrics[key]
    assert isinstance(value, int | float)
    return float(value)


def decimals(key: str) -> int:
    """A figure shown beside those of other runs."""
    return 1 if key in COSTS else 2


def quality_sentence(metrics: Metrics) -> str:
    """Compare the quality of a run with that of a generator that ignores the head, and state what follows where it is
    not better; "" if swap lift was not measured."""
    value = metrics.get(LIFT)
    if not isinstance(value, int | float):
        return ""
    low, high = (metrics.get(bound) for bound in table.bounds(LIFT))
    found = "not shown to be better"
    if isinstance(low, int | float) and isinstance(high, int | float):
        found = "better" if low > 0 else "worse" if high < 0 else found
    points = f"{number(value, 1)} percentage points {interval(metrics, LIFT, 1)}".rstrip()
    said = f"Quality: swap lift of {points}, {found} than without any knowledge of the head (0)."
    return said if found == "better" else f"{said} {NO_QUALITY}"
