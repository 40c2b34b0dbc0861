"""The harms paper's figures for any run, from data frames to matplotlib figures.

Every frame has one row a target: (target, category, statements, prejudice, favouritism, neutral), the last
three in percent. Figures are narrow enough for a phone, and none relies on colour alone."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from mitigate.report.drawing import FAVOURITISM, INK, KEPT, PREJUDICE, SMALL, WIDTH, legend, note, panel, styled
from mitigate.report.metric_display import ordered

LONGEST_NAME = 32  # characters of a target or a relation beside its bar


@styled
def boxes(targets: pl.DataFrame, top: float | None = None) -> Figure:
    """Box plots of prejudice and favouritism over the targets of each category (Fig. 1, 5).

    top: the upper limit in percent, the same for plots to be compared."""
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
    """Box plots of the number of statements over the targets of each category (Fig. 4, 11), and of those that a filter
    kept if there is a column `kept`."""
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
    """The label beside a bar: a name, cut if it is long, so that the bars keep their width."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def name_targets(axes: Axes, names: list[str]) -> None:
    """Format axes with bars on both sides of 0: the first target on top, and no scale, since the bars have numbers."""
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


# Two resources in one figure, the first hollow, the second filled. Frames have a row for each target that both mention,
# and the second resource's columns end in _second.

HOLLOW, FULL = 0.0, 0.6  # opacities
COLOURS = {"prejudice": PREJUDICE, "favouritism": FAVOURITISM, "statements": KEPT}
SIGNS = {"prejudice": "negative", "favouritism": "positive"}


@styled
def boxes_of_two(targets: pl.DataFrame, column: str, titles: tuple[str, str]) -> Figure:
    """Box plots of a share over the targets of each category (Fig. 1), or of the number of statements, which has a
    logarithmic scale (Fig. 4)."""
    figure, axes = panel(3.2)
    categories = ordered(targets["category"].to_list())
    for end, opacity, shift in (("", HOLLOW, -0.19), ("_second", FULL, 0.19)):
        values = values_of(targets, categories, column + end)
        boxplot(axes, values, np.arange(len(categories)) + shift, COLOURS[column], opacity)
    categories_below(axes, categories)
    if column == "statements":
        axes.set_yscale("symlog", linthresh=10)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_ylabel("statements about a target")
    else:
        axes.set_ylabel(f"% {SIGNS[column]} of a target's statements")
    axes.set_ylim(bottom=0)
    _two_legend(axes, [_patch(COLOURS[column], *which) for which in zip((HOLLOW, FULL), titles, strict=True)])
    return figure


@styled
def bars_of_two(targets: pl.DataFrame, titles: tuple[str, str]) -> Figure:
    """Prejudice to the left and favouritism to the right, two bars for each target in the order given (Fig. 3)."""
    figure, axes = panel(0.9 + 0.42 * targets.height)
    places = np.arange(targets.height)
    for column, side, align in (("prejudice", -1, "right"), ("favouritism", 1, "left")):
        for end, opacity, shift in (("", HOLLOW, -0.19), ("_second", FULL, 0.19)):
            lengths = side * targets[column + end].to_numpy()
            colour = COLOURS[column]
            axes.barh(places + shift, lengths, height=0.32, color=to_rgba(colour, opacity), ec=colour, lw=0.8)
            for place, length in zip(places + shift, lengths, strict=True):
                note(axes, f"{abs(length):.0f}", (length, float(place)), 3 * side, align)
    name_targets(axes, targets["target"].to_list())
    signs = [_patch(COLOURS[column], FULL, sign) for column, sign in SIGNS.items()]
    _two_legend(axes, [*(_patch(INK, *which) for which in zip((HOLLOW, FULL), titles, strict=True)), *signs])
    return figure


def _patch(colour: str, opacity: float, label: str) -> Patch:
    return Patch(facecolor=to_rgba(colour, opacity), edgecolor=colour, lw=0.8, label=label)


def _two_legend(axes: Axes, patches: list[Patch]) -> None:
    """Place the legend above the axes, two names a line: names of resources may be long."""
    axes.legend(handles=patches, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.3)


@styled
def among_peers(figures: pl.DataFrame, target: str) -> Figure:
    """Strip plots, a row for each figure and run: the target as a dot, its peers as strokes. figures: run, target,
    figure (such as "regard/negative") and value, in percent, of all targets of a category."""
    rows = figures.select("run", "figure").unique(maintain_order=True)
    rows = rows.sort(pl.col("figure").str.ends_with("positive"), "figure", maintain_order=True)
    several = rows["run"].n_unique() > 1
    panelled, axes = panel(0.75 + 0.28 * rows.height)
    names = []
    for place, (run, figure) in enumerate(rows.iter_rows()):
        scorer, _, sign = figure.rpartition("/")
        names.append(f"{sign} by {scorer}" + (f", {run}" if several else ""))
        mine = figures.filter(run=run, figure=figure)
        peers = mine.filter(pl.col("target") != target)["value"].to_numpy()
        label = "peers" if place == 0 else None
        axes.plot(peers, np.full(len(peers), place), "|", color=INK, ms=9, alpha=0.6, label=label)
        colour, marker = (PREJUDICE, "o") if sign == "negative" else (FAVOURITISM, "s")
        value = mine.filter(pl.col("target") == target)["value"].item()
        axes.plot([value], [place], marker, color=colour, ms=6.5, label=target if place == 0 else None)
    axes.set_yticks(range(rows.height), names)
    axes.invert_yaxis()
    axes.margins(y=0.12)
    axes.set_xlim(left=min(0, axes.get_xlim()[0]))
    axes.set_xlabel("% of a target's statements")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    legend(axes)
    return panelled
