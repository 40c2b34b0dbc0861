"""The harms paper's figures for any run: frames in, matplotlib figures out.

Every frame has one row a target: (target, category, statements, prejudice, favouritism, neutral), the last
three in percent. Figures are narrow enough for a phone, and none relies on colour alone."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from mitigate.report.drawing import FAVOURITISM, INK, KEPT, PREJUDICE, SMALL, legend, note, panel, styled
from mitigate.report.legend import ordered

LONGEST_NAME = 32  # characters of a target or a relation beside its bar


@styled
def boxes(targets: pl.DataFrame, top: float | None = None) -> Figure:
    """Box plots of prejudice and favouritism over the targets of each category (Fig. 1, 5).

    `top`, the largest percentage there is, makes several of them comparable."""
    figure, axes = panel(3.4)
    categories = ordered(targets["category"].to_list())
    for column, sign, colour, shift in (
        ("prejudice", "negative", PREJUDICE, -0.19),
        ("favouritism", "positive", FAVOURITISM, 0.19),
    ):
        boxplot(axes, values_of(targets, categories, column), np.arange(len(categories)) + shift, colour)
        axes.plot([], [], "s", color=colour, alpha=0.6, label=sign)
    categories_below(axes, categories)
    axes.set_ylabel("% of a target's statements")
    axes.set_ylim(0, 1.04 * top if top else None)
    legend(axes)
    return figure


@styled
def counts(targets: pl.DataFrame) -> Figure:
    """Box plots of the number of statements over the targets of each category (Fig. 4, 11); where there is a column
    `kept`, of what a filter kept of them too."""
    figure, axes = panel(3.0)
    categories = ordered(targets["category"].to_list())
    if "kept" not in targets.columns:
        boxplot(axes, values_of(targets, categories, "statements"), np.arange(len(categories)), KEPT)
    else:
        for column, sign, colour, shift in (("statements", "all", INK, -0.19), ("kept", "kept", KEPT, 0.19)):
            boxplot(axes, values_of(targets, categories, column), np.arange(len(categories)) + shift, colour)
            axes.plot([], [], "s", color=colour, alpha=0.6, label=sign)
        legend(axes)
    categories_below(axes, categories)
    axes.set_yscale("symlog", linthresh=10, subs=[2, 5])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylabel("number for each target")
    return figure


@styled
def bars(targets: pl.DataFrame) -> Figure:
    """Prejudice to the left and favouritism to the right, a bar for each target in the order given (Fig. 3)."""
    figure, axes = panel(0.8 + 0.24 * targets.height)
    places = np.arange(targets.height)
    decimals = 0 if targets.select(pl.max_horizontal(pl.max("prejudice", "favouritism"))).item() >= 10 else 1
    for column, sign, colour, side, align in (
        ("prejudice", "negative", PREJUDICE, -1, "right"),
        ("favouritism", "positive", FAVOURITISM, 1, "left"),
    ):
        lengths = side * targets[column].to_numpy()
        axes.barh(places, lengths, height=0.68, color=colour, alpha=0.8, lw=0, label=sign)
        for place, length in zip(places, lengths, strict=True):
            if not length:
                continue  # at the line itself, on the names where no other bar goes to that side
            note(axes, f"{abs(length):.{decimals}f}", (length, float(place)), 3 * side, align)
    name_targets(axes, targets["target"].to_list())
    legend(axes)
    return figure


def shorten(name: str) -> str:
    """A name beside its bar: of a long one the beginning, so that the bars keep their width."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def name_targets(axes: Axes, names: list[str]) -> None:
    """Of bars to both sides of 0: the targets beside them, the first on top, and no scale, since bars bear numbers."""
    axes.axvline(0, color=INK, lw=0.6)
    axes.set_yticks(range(len(names)), [shorten(name) for name in names])
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set_xticks([])
    axes.set_xlabel("% of the target's statements")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)


@styled
def kept(relations: pl.DataFrame) -> Figure:
    """The share of each relation's triples that the filter kept, from (relation, input, dropped,
    share_dropped), in the order given."""
    figure, axes = panel(0.7 + 0.2 * relations.height)
    places = np.arange(relations.height)
    shares = 100 - relations["share_dropped"].to_numpy()
    axes.barh(places, 100 - shares, left=shares, height=0.66, color=INK, alpha=0.25, lw=0)
    axes.barh(places, shares, height=0.66, color=KEPT, alpha=0.85, lw=0)
    for place, row in zip(places, relations.iter_rows(named=True), strict=True):
        label = f"{row['dropped']:,} of {row['input']:,}"
        axes.annotate(label, (100, place), (4, 0), textcoords="offset points", va="center", size=SMALL)
    axes.annotate("dropped", (100, -0.6), (4, 6), textcoords="offset points", va="center", size=SMALL)
    axes.set_yticks(places, [shorten(name) for name in relations["relation"]], size=SMALL)
    axes.invert_yaxis()
    axes.set_ylim(relations.height - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% kept")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


def values_of(targets: pl.DataFrame, categories: Sequence[str], column: str) -> list[np.ndarray]:
    """A column's values for each category."""
    return [targets.filter(pl.col("category") == name)[column].drop_nulls().to_numpy() for name in categories]


def boxplot(axes: Axes, values: Sequence[np.ndarray], places: np.ndarray, colour: str, opacity: float = 0.45) -> None:
    """A box for each list of values."""
    axes.boxplot(
        values,
        positions=places,
        widths=0.3,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": to_rgba(colour, opacity), "edgecolor": colour},
        medianprops={"color": INK, "linewidth": 1.6},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        flierprops={
            "marker": "o",
            "markersize": 3,
            "markerfacecolor": colour,
            "markeredgewidth": 0,
            "alpha": 0.7,
        },
    )


def categories_below(axes: Axes, categories: Sequence[str]) -> None:
    """Name the categories along the axis, at 0, 1, 2 ..."""
    axes.set_xticks(range(len(categories)), categories)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
