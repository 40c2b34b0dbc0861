"""Harm against quality: a small mark for each trained model, a large one for the mean of its policy, and a line
through the policies that no other betters in both."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

from mitigate.measure.base import Measure, bounds, key_of, measure_of_figure
from mitigate.measure.quality import LIFT, PEOPLE_VALID, PERPLEXITY, PLAUSIBLE
from mitigate.report.drawing import BOTH, FAVOURITISM, INK, KEPT, PREJUDICE, legend, panel, styled
from mitigate.report.metric_display import number
from mitigate.report.run_figures import Picture

MARKS = (  # in the order of the policies, the baseline's first; Okabe and Ito's colours, and no two shapes alike
    (INK, "o"),
    (FAVOURITISM, "^"),
    (PREJUDICE, "D"),
    (KEPT, "s"),
    (BOTH, "v"),
    ("#E69F00", "P"),
    ("#56B4E9", "X"),
)


class Axis(NamedTuple):
    """A figure of metrics.json as an axis."""

    key: str
    name: str
    slug: str

    @property
    def metric(self) -> Measure:
        return measure_of_figure(self.key)

    @property
    def label(self) -> str:
        return f"{self.name} ({'← better' if self.metric.better == 'down' else 'better →'})"

    @property
    def limits(self) -> tuple[float, float]:
        """The range of the figure: of a percentage, a difference of two, or a perplexity."""
        return {"points": (-100.0, 100.0), "%": (0.0, 100.0)}.get(self.metric.unit, (1.0, math.inf))


HARMS = tuple(
    Axis(key_of("neutral_mean", scorer, "neutral"), f"% neutral in {scorer}", scorer)
    for scorer in ("regard", "sentiment")
)
QUALITIES = (
    Axis(LIFT, "swap lift, percentage points", "lift"),
    Axis(PERPLEXITY, "perplexity on neutral test triples", "perplexity"),
    Axis(PEOPLE_VALID, "% of neutral statements that people would call valid", "people"),
    Axis(PLAUSIBLE, "% of statements accepted as plausible", "valid"),
)


def pictures(models: pl.DataFrame, harms: Sequence[Axis] = HARMS) -> Iterator[Picture]:
    """Every harm against every quality that all models have: models has a row each, with policy, seed and a column
    for each key."""
    complete = {series.name for series in models if not series.null_count()}
    for quality, harm in product(QUALITIES, harms):
        if {harm.key, quality.key} <= complete:
            yield Picture(
                f"pareto-{harm.slug}-{quality.slug}",
                "pareto",
                f"{harm.slug.capitalize()} against {quality.metric.title}",
                alt(models, harm, quality),
                pareto(models, harm, quality),
            )


def means(models: pl.DataFrame, harm: Axis, quality: Axis) -> pl.DataFrame:
    """policy, x (quality), y (harm), and whether no other policy is at least as good in both and better in one; in the
    models' order."""
    table = models.group_by("policy", maintain_order=True).agg(x=pl.col(quality.key).mean(), y=pl.col(harm.key).mean())
    signs = [1 if axis.metric.better == "up" else -1 for axis in (quality, harm)]
    scores = table.select("x", "y").to_numpy() * signs
    beaten = [((scores >= mine).all(1) & (scores > mine).any(1)).any() for mine in scores]
    return table.with_columns(unbeaten=~pl.Series(beaten))


def alt(models: pl.DataFrame, harm: Axis, quality: Axis) -> str:
    """The plot in words."""
    table = means(models, harm, quality)
    seen = "; ".join(f"{name} {number(x)} and {number(y)}" for name, x, y, _ in table.iter_rows())
    plotted = " and ".join(f"{axis.name} ({axis.metric.said_better})" for axis in (quality, harm))
    return (
        f"Scatter plot of {models.height} models of {table.height} policies: {plotted}. Means: {seen}. Bettered in "
        f"both by no other: {', '.join(table.filter('unbeaten')['policy'])}."
    )


def bars(models: pl.DataFrame, axis: Axis) -> list[list[float]] | None:
    """The reach of the 95 % interval of a policy's mean below and above it: [[below], [above]]. Of several models by
    Student's t over these, no further than the figure can go; of a single one by the interval that its run has; None
    where there is none."""
    values = models[axis.key].to_numpy()
    if len(values) > 1:
        from scipy.stats import t  # a second to load, which pages without such a plot do without

        reach = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
        low, high = np.clip([values.mean() - reach, values.mean() + reach], *axis.limits).tolist()
    else:
        low, high = (models[bound][0] if bound in models.columns else None for bound in bounds(axis.key))
    if low is None or high is None:
        return None
    return [[max(0.0, values.mean() - low)], [max(0.0, high - values.mean())]]


def mark(place: int) -> tuple[str, str]:
    """The colour and the shape of a policy; once all are used, colours get other shapes."""
    colour, _ = MARKS[place % len(MARKS)]
    return colour, MARKS[(place + place // len(MARKS)) % len(MARKS)][1]


@styled
def pareto(models: pl.DataFrame, harm: Axis, quality: Axis) -> Figure:
    """The plot; better is to the side that each axis says."""
    table = means(models, harm, quality)
    columns = 4 if max(map(len, table["policy"])) < 14 else 1
    figure, axes = panel(3.2 + 0.2 * -(-table.height // columns))
    front = table.filter("unbeaten").sort("x")
    if front.height > 1:
        axes.plot(front["x"], front["y"], color=INK, lw=0.8, ls=(0, (4, 3)), zorder=1)
    for place, row in enumerate(table.iter_rows(named=True)):
        colour, marker = mark(place)
        mine = models.filter(policy=row["policy"])
        style: dict[str, Any] = {"c": colour, "marker": marker, "lw": 0, "clip_on": False}
        if mine.height > 1:
            axes.scatter(mine[quality.key], mine[harm.key], s=22, alpha=0.55, zorder=2, **style)
        ends = bars(mine, harm), bars(mine, quality)
        axes.errorbar(row["x"], row["y"], *ends, fmt="none", ecolor=colour, elinewidth=0.9, alpha=0.7, zorder=2)
        axes.scatter(row["x"], row["y"], s=75, label=row["policy"], zorder=3, **style)
    axes.margins(0.12)
    axes.set_xlim(*np.clip(axes.get_xlim(), *quality.limits))
    axes.set_ylim(*np.clip(axes.get_ylim(), *harm.limits))
    if quality.metric.unit == "":
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(6))  # those of powers of ten would leave most of the axis bare
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.grid(which="both")
    axes.set_xlabel(quality.label)
    axes.set_ylabel(harm.label)
    legend(axes, columns=columns)
    return figure
