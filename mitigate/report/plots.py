"""The harms paper's figures for any run, from data frames to matplotlib figures.

Every frame has one row a target: (target, category, statements, prejudice, favouritism, neutral), the last three in
percent. Figures are narrow enough for a phone, and none relies on colour alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from mitigate.report.drawing import FAVOURITISM, INK, KEPT, PREJUDICE, WIDTH, legend, note, panel, styled
from mitigate.report.metric_display import ordered

LONGEST_NAME = 32  # characters of a target or a relation beside its bar
FULL = 0.6  # opacity
SIGNS = {"prejudice": ("negative", PREJUDICE), "favouritism": ("positive", FAVOURITISM)}


class Series(NamedTuple):
    """A column of the targets as boxes."""

    column: str
    label: str
    colour: str


SIGNED = [Series(column, sign, colour) for column, (sign, colour) in SIGNS.items()]
NUMBERS = [Series("statements", "all", KEPT)]
NUMBERS_AND_KEPT = [Series("statements", "all", INK), Series("kept", "kept", KEPT)]


@styled
def boxes(
    targets: pl.DataFrame,
    series: Sequence[Series] = SIGNED,
    label: str = "% of a target's statements",
    *,
    top: float | None = None,
    counted: bool = False,
) -> Figure:
    """Box plots of one or two columns over the targets of each category (Fig. 1, 5).

    top: the upper limit, the same for plots to be compared; counted: whether the columns are counts, which have a
    logarithmic scale (Fig. 4, 11)."""
    figure, axes = panel(3.2)
    categories = ordered(targets["category"].to_list())
    places = np.arange(len(categories))
    for one, shift in zip(series, (-0.19, 0.19) if len(series) > 1 else (0.0,), strict=True):
        values = [targets.filter(category=name)[one.column].drop_nulls().to_numpy() for name in categories]
        axes.boxplot(
            values,
            positions=places + shift,
            widths=0.3,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": to_rgba(one.colour, FULL), "edgecolor": one.colour},
            medianprops={"color": INK, "linewidth": 1.6},
            whiskerprops={"color": one.colour},
            capprops={"color": one.colour},
            flierprops={
                "markerfacecolor": one.colour,
                "markeredgewidth": 0,
                "marker": "o",
                "markersize": 3,
                "alpha": 0.7,
            },
        )
    axes.set_xticks(places, categories)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.set_ylabel(label)
    if counted:
        axes.set_yscale("symlog", linthresh=10, subs=[2, 5])
        for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            set_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylim(0, 1.04 * top if top else None)
    if len(series) > 1:
        legend(axes, [_patch(one.colour, one.label) for one in series])
    return figure


@styled
def bars(targets: pl.DataFrame) -> Figure:
    """Prejudice to the left and favouritism to the right, a bar for each target in the order given (Fig. 3)."""
    figure, axes = panel(0.8 + 0.24 * targets.height)
    decimals = 0 if targets.select(pl.max_horizontal(pl.max("prejudice", "favouritism"))).item() >= 10 else 1
    for column, direction, align in (("prejudice", -1, "right"), ("favouritism", 1, "left")):
        _, colour = SIGNS[column]
        lengths = direction * targets[column].to_numpy()
        axes.barh(range(len(lengths)), lengths, height=0.68, color=to_rgba(colour, FULL), ec=colour, lw=0.8)
        for place, length in enumerate(lengths):
            if length:  # at the line itself, on the names where no other bar goes to that side
                note(axes, f"{abs(length):.{decimals}f}", (length, float(place)), 3 * direction, align)
    axes.axvline(0, color=INK, lw=0.6)
    axes.margins(x=0.14)
    axes.set_xticks([])
    axes.set_xlabel("% of the target's statements")
    axes.spines["bottom"].set_visible(False)
    _name_rows(axes, [shorten(name) for name in targets["target"]])
    legend(axes, [_patch(colour, sign) for sign, colour in SIGNS.values()])
    return figure


def shorten(name: str) -> str:
    """The label beside a bar: a name, cut if it is long, so that the bars keep their width."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write the names of rows beside them, the first on top, without a line or ticks."""
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _patch(colour: str, label: str) -> Patch:
    return Patch(facecolor=to_rgba(colour, FULL), edgecolor=colour, lw=0.8, label=label)


@styled
def words(phrases: pl.DataFrame, most: int = 40) -> Figure:
    """A word cloud of the most frequent phrases (phrase, count), larger if more frequent, set in lines (Fig. 12)."""
    chosen = phrases.sort("count", "phrase", descending=[True, False]).head(most)
    lines: list[list[tuple[str, float, float]]] = []  # (phrase, size, width in points)
    line_width = 72 * WIDTH
    left = 0.0
    for phrase, count in chosen.select(pl.col("phrase").str.slice(0, 40), "count").iter_rows():
        per_point = 0.62 * (len(phrase) + 1)  # wide enough for any font of a page
        size = min(7 + 13 * count / chosen["count"][0], line_width / per_point)
        width = per_point * size
        if width > left:
            lines.append([])
            left = line_width
        lines[-1].append((phrase, size, width))
        left -= width
    heights = [1.5 * max(size for _, size, _ in line) for line in lines]
    figure = Figure(figsize=(WIDTH, sum(heights) / 72))
    for line, top in zip(lines, np.cumsum([0.0, *heights]), strict=False):
        x = (line_width - sum(width for *_, width in line)) / 2
        for phrase, size, width in line:
            figure.text((x + width / 2) / line_width, 1 - top / sum(heights), phrase, size=size, ha="center", va="top")
            x += width
    return figure
