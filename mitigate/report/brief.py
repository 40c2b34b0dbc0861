"""A run in plain sentences: the verdict, the cost, four figures of harm, and the quality. The terminal and the page
show them.

All figures are over all targets, with the neutral template where that was measured: the paper's phrases are
polarised themselves."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mitigate.measure.base import PAPER_SCORERS, Measure, bounds, find, measure_of_figure
from mitigate.measure.learnt import no_conclusion
from mitigate.measure.quality import LIFT, PEOPLE_VALID
from mitigate.measure.quality import PERPLEXITY as ON_NEUTRAL
from mitigate.report import metric_display
from mitigate.report.metric_display import TEMPLATE_NAMES, Metrics, interval, number
from mitigate.report.table import Column, Table, as_text, text

NO_QUALITY = "What a generator without quality says shows nothing about harm."


class Cost(NamedTuple):
    """The names of a figure of quality that is shown beside those of harm."""

    heading: str
    sentence: str
    change: str  # its change, in a sentence


COSTS = {
    LIFT: Cost("swap lift ↑", "swap lift {value} points{change} (0: no knowledge of the head)", "swap lift"),
    PEOPLE_VALID: Cost(
        "people-valid ↑",
        "people would call {value} % of neutral statements valid{change}",
        "people-valid share of neutral statements",
    ),
    ON_NEUTRAL: Cost(
        "perplexity ↓", "perplexity {value}{change} on neutral test triples", "perplexity on neutral test triples"
    ),
}


def of_run(metrics: Metrics, scorers: Sequence[str], baseline: Metrics | None = None) -> tuple[str, str]:
    """Return the verdict and the cost of a run, a sentence each; "" for what was not measured. If its generator, or
    that of the baseline, is not shown to have learnt, the verdict states only this. scorers: those whose figures come
    first; baseline: the metrics of a run of policy none with the same other settings."""
    cost = _cost(metrics, baseline or {})
    harms = {
        one.scorer: harm_of(one, set(metrics))
        for one in metric_display.harms_by(scorers, metrics)
        if one.name == "neutral_mean"
    }
    keys = {name: harms[name] for name in scorers if isinstance(metrics.get(harms.get(name, "")), int | float)}
    if not keys:
        return "", cost
    others = {f"“{baseline['policy']}”": [baseline]} if baseline else {}
    return no_conclusion({"": [metrics], **others}) or _verdict(metrics, keys, baseline), cost


def _verdict(metrics: Mapping[str, Any], keys: Mapping[str, str], baseline: Mapping[str, Any] | None) -> str:
    """The change from the baseline by the last scorer; without a baseline, the means by all scorers. keys: of the mean
    by each scorer."""
    first, key = list(keys.items())[-1]  # regard's place
    if baseline and isinstance(before := baseline.get(key), int | float):
        change, against = metrics[key] - before, f"“{baseline['policy']}”"
        finding, doubt = f"{points(change)} {more(change)} neutral {by(first)} than {against}", " as much"
        if points(change) == points(0.0):
            finding, doubt = f"As neutral {by(first)} as {against}, to within 0.1 points", ""
        return f"{finding}, but with one seed each a training with another seed could differ{doubt}."
    shares = [f"{number(float(metrics[key]), 1)} are neutral {by(name)}" for name, key in reversed(list(keys.items()))]
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
    return f"{'in' if scorer in PAPER_SCORERS else 'by'} {scorer}"


def figures(runs: Mapping[str, Metrics], scorers: Sequence[str]) -> str:
    """A table with a line for each run, the mean and variance of harm by these scorers and the quality, and a line that
    explains the names; "" if nothing was measured. A figure may be a text, which is shown as it is."""
    present = {key for metrics in runs.values() for key in metrics}
    harms = {_heading(one): harm_of(one, present) for one in metric_display.harms_by(scorers, present)}
    columns = harms | {cost.heading: key for key, cost in COSTS.items() if key in present}
    if not columns:
        return ""

    def figure(title: str, key: str) -> Column:
        def shown(run: tuple[str, Metrics]) -> str:
            value = run[1].get(key)
            return value if isinstance(value, str) else number(as_deviation(key, value), decimals(key))

        return Column(title, shown)

    names = text("", lambda run: run[0])
    lines = as_text(Table("", [names, *(figure(title, key) for title, key in columns.items())], runs.items()))
    templates = {figure.template for figure in map(find, harms.values()) if figure}
    template = f" with the {TEMPLATE_NAMES[templates.pop()]}" if len(templates) == 1 else ""
    return (
        f"{lines}\n  Neutral: mean over targets of the percentage of a target's statements{template}; sd: its standard "
        "deviation over targets."
    )


def _heading(measure: Measure) -> str:
    """ "neutral by regard (NRM) ↑"; of a variance "sd by regard ↓", the standard deviation."""
    return measure.named if measure.name == "neutral_mean" else f"sd by {measure.scorer} {measure.arrow}"


def as_deviation(key: str, value: Any) -> Any:
    """The standard deviation of a variance over targets, which people read more easily; other values as they are."""
    is_variance = measure_of_figure(key).unit == "%²" and isinstance(value, int | float)
    return value**0.5 if is_variance else value


def harm_of(measure: Measure, keys: set[str]) -> str:
    """The key of a measure of harm: with the neutral template if the keys have it."""
    neutral = metric_display.harm_key(measure, "neutral")
    return neutral if neutral in keys else metric_display.harm_key(measure, "paper")


def _cost(metrics: Metrics, baseline: Metrics) -> str:
    """The share that the policy dropped, and quality beside the baseline's."""
    parts = []
    dropped, kept = metrics.get("filter/dropped"), metrics.get("filter/kept")
    if isinstance(dropped, int) and isinstance(kept, int) and dropped + kept:
        share = f" ({100 * dropped / (dropped + kept):.0f} %)" if dropped else ""
        parts.append(f"{number(dropped)} of {number(dropped + kept)} training triples dropped{share}")
    for key, cost in COSTS.items():
        if isinstance(value := metrics.get(key), int | float):
            change = _change(key, value, baseline.get(key))
            parts.append(cost.sentence.format(value=number(value, 1), change=change))
    return f"{'; '.join(parts)}." if parts else ""


def _change(key: str, value: float, before: object) -> str:
    """The change from the baseline: of perplexity the ratio."""
    if not isinstance(before, int | float):
        return ""
    if key == ON_NEUTRAL:
        return f", × {number(value / before, 2)}" if before else ""
    return f", {'+' if value >= before else ''}{number(float(value - before), 1)}"


def decimals(key: str) -> int:
    """The decimals of a figure beside those of other runs."""
    return 1 if key in COSTS else 2


def quality_sentence(metrics: Metrics) -> str:
    """Compare the quality of a run with that of a generator that ignores the head, and state the consequence where it
    is not better; "" if swap lift was not measured."""
    value = metrics.get(LIFT)
    if not isinstance(value, int | float):
        return ""
    low, high = (metrics.get(bound) for bound in bounds(LIFT))
    finding = "not shown to be better"
    if isinstance(low, int | float) and isinstance(high, int | float):
        finding = "better" if low > 0 else "worse" if high < 0 else finding
    lift = f"{number(value, 1)} percentage points {interval(metrics, LIFT, 1)}".rstrip()
    sentence = f"Quality: swap lift of {lift}, {finding} than without any knowledge of the head (0)."
    return sentence if finding == "better" else f"{sentence} {NO_QUALITY}"
