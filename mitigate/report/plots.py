"""The harms paper's figures for any run: frames in, matplotlib figures out.

Every frame has one row a target: (target, category, statements, prejudice, favouritism, neutral), the last
three in percent. Figures are narrow enough for a phone, and none tells things apart by colour alone."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from mitigate.report.drawing import BOTH, FAVOURITISM, INK, KEPT, PREJUDICE, SMALL, styled
from mitigate.targets import CATEGORIES

WIDTH = 4.8  # inches

REGIONS = {  # region -> colour and marker (Fig. 2's red, blue, purple and the rest)
    "prejudice": (PREJUDICE, "v"),
    "favouritism": (FAVOURITISM, "^"),
    "both": (BOTH, "D"),
    "neither": (INK, "o"),
}


def ordered(names: Sequence[str]) -> list[str]:
    """Categories in the paper's order, others after them."""
    found = set(names)
    return [name for name in CATEGORIES if name in found] + sorted(found - set(CATEGORIES))


@styled
def boxes(targets: pl.DataFrame, top: float | None = None) -> Figure:
    """Box plots of prejudice and favouritism over the targets of each category (Fig. 1, 5).

    `top`, the largest percentage there is, makes several of them comparable."""
    figure, axes = _panel(3.4)
    categories = ordered(targets["category"].to_list())
    for column, sign, colour, shift in (
        ("prejudice", "negative", PREJUDICE, -0.19),
        ("favouritism", "positive", FAVOURITISM, 0.19),
    ):
        _boxplot(axes, _values(targets, categories, column), np.arange(len(categories)) + shift, colour)
        axes.plot([], [], "s", color=colour, alpha=0.6, label=sign)
    _categories(axes, categories)
    axes.set_ylabel("% of a target's statements")
    axes.set_ylim(0, 1.04 * top if top else None)
    _legend(axes)
    return figure


@styled
def counts(targets: pl.DataFrame) -> Figure:
    """Box plots of the number of statements over the targets of each category (Fig. 4, 11)."""
    figure, axes = _panel(3.0)
    categories = ordered(targets["category"].to_list())
    _boxplot(axes, _values(targets, categories, "statements"), np.arange(len(categories)), KEPT)
    _categories(axes, categories)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("statements about a target")
    return figure


def with_regions(targets: pl.DataFrame) -> pl.DataFrame:
    """The targets that have statements, and their region: leaning to prejudice, favouritism, both or neither.

    The paper draws its regions by eye; here a target leans when it is above the upper quartile of all
    targets given."""
    against, towards = (
        pl.col(column) > pl.col(column).quantile(0.75, "linear") for column in ("prejudice", "favouritism")
    )
    region = (
        pl.when(against & towards)
        .then(pl.lit("both"))
        .when(against)
        .then(pl.lit("prejudice"))
        .when(towards)
        .then(pl.lit("favouritism"))
        .otherwise(pl.lit("neither"))
    )
    return targets.drop_nulls(["prejudice", "favouritism"]).with_columns(region=region)


@styled
def regions(targets: pl.DataFrame, category: str) -> Figure:
    """Prejudice against favouritism for each target of a category, by region (Fig. 2, 8, 9).

    Scales and regions are those of all targets given, so that categories can be compared."""
    figure, axes = _panel(3.6)
    everyone = with_regions(targets)
    rows = everyone.filter(pl.col("category") == category).sort("target")
    for region, (colour, marker) in REGIONS.items():
        points = rows.filter(pl.col("region") == region)
        axes.scatter(
            points["prejudice"], points["favouritism"], s=20, c=colour, marker=marker, alpha=0.75, lw=0, label=region
        )
    for draw, column in ((axes.axvline, "prejudice"), (axes.axhline, "favouritism")):
        draw(everyone[column].quantile(0.75, "linear") or 0.0, color=INK, lw=0.6, ls=(0, (4, 3)))
    axes.set_xlim(*_limits(everyone["prejudice"]))
    axes.set_ylim(*_limits(everyone["favouritism"]))
    axes.set_xlabel("% negative")
    axes.set_ylabel("% positive")
    _legend(axes)
    _name_outliers(figure, axes, rows)
    return figure


@styled
def bars(targets: pl.DataFrame) -> Figure:
    """Prejudice to the left and favouritism to the right, a bar for each target in the order given (Fig. 3)."""
    figure, axes = _panel(0.8 + 0.24 * targets.height)
    places = np.arange(targets.height)
    for column, sign, colour, side, align in (
        ("prejudice", "negative", PREJUDICE, -1, "right"),
        ("favouritism", "positive", FAVOURITISM, 1, "left"),
    ):
        lengths = side * targets[column].to_numpy()
        axes.barh(places, lengths, height=0.68, color=colour, alpha=0.8, lw=0, label=sign)
        for place, length in zip(places, lengths, strict=True):
            _note(axes, f"{abs(length):.0f}", (length, float(place)), 3 * side, align)
    axes.axvline(0, color=INK, lw=0.6)
    axes.set_yticks(places, targets["target"].to_list())
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set_xticks([])
    axes.set_xlabel("% of the target's statements")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    _legend(axes)
    return figure


@styled
def kept(relations: pl.DataFrame) -> Figure:
    """The share of each relation's triples that the filter kept, from (relation, input, dropped,
    share_dropped), in the order given."""
    figure, axes = _panel(0.7 + 0.2 * relations.height)
    places = np.arange(relations.height)
    shares = 100 - relations["share_dropped"].to_numpy()
    axes.barh(places, 100 - shares, left=shares, height=0.66, color=INK, alpha=0.25, lw=0)
    axes.barh(places, shares, height=0.66, color=KEPT, alpha=0.85, lw=0)
    for place, row in zip(places, relations.iter_rows(named=True), strict=True):
        label = f"{row['dropped']:,} of {row['input']:,}"
        axes.annotate(label, (100, place), (4, 0), textcoords="offset points", va="center", size=SMALL)
    axes.annotate("dropped", (100, -0.6), (4, 6), textcoords="offset points", va="center", size=SMALL)
    axes.set_yticks(places, relations["relation"].to_list(), size=SMALL)
    axes.invert_yaxis()
    axes.set_ylim(relations.height - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% kept")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


@styled
def words(phrases: pl.DataFrame, most: int = 40) -> Figure:
    """The commonest of the phrases (phrase, count), the larger the commoner, in lines like a text (Fig. 12)."""
    chosen = phrases.sort("count", "phrase", descending=[True, False]).head(most)
    lines: list[list[tuple[str, float, float]]] = []  # (phrase, size, width in points)
    room = 72 * WIDTH
    left = 0.0
    for phrase, count in chosen.select(pl.col("phrase").str.slice(0, 40), "count").iter_rows():
        size = 7 + 13 * count / chosen["count"][0]
        width = 0.62 * size * (len(phrase) + 1)  # wide enough for any font of a page
        if width > left:
            lines.append([])
            left = room
        lines[-1].append((phrase, size, width))
        left -= width
    heights = [1.5 * max(size for _, size, _ in line) for line in lines]
    figure = Figure(figsize=(WIDTH, sum(heights) / 72))
    figure.set_layout_engine("none")  # there are no axes to lay out
    for line, top in zip(lines, np.cumsum([0.0, *heights]), strict=False):
        x = (room - sum(width for *_, width in line)) / 2
        for phrase, size, width in line:
            figure.text((x + width / 2) / room, 1 - top / sum(heights), phrase, size=size, ha="center", va="top")
            x += width
    return figure


def _panel(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.add_subplot()


def _values(targets: pl.DataFrame, categories: Sequence[str], column: str) -> list[np.ndarray]:
    return [targets.filter(pl.col("category") == name)[column].drop_nulls().to_numpy() for name in categories]


def _boxplot(axes: Axes, values: Sequence[np.ndarray], places: np.ndarray, colour: str) -> None:
    axes.boxplot(
        values,
        positions=places,
        widths=0.3,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.45, "edgecolor": colour},
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


def _categories(axes: Axes, categories: Sequence[str]) -> None:
    axes.set_xticks(range(len(categories)), categories)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=4,
        borderaxespad=0,
        handletextpad=0.3,
        columnspacing=1.2,
    )


def _limits(values: pl.Series) -> tuple[float, float]:
    """From just below 0, so that points on the axis show whole, to just above the largest."""
    top = max(values.to_list(), default=0.0) or 1.0
    return -0.03 * top, 1.08 * top


def _name_outliers(figure: Figure, axes: Axes, rows: pl.DataFrame, most: int = 16) -> None:
    """Write the names of the targets furthest from the origin, each where no point and no
    earlier name is in its way."""
    scaled = [pl.col(column) / (pl.col(column).max() + 1e-9) for column in ("prejudice", "favouritism")]
    furthest = rows.sort(scaled[0] ** 2 + scaled[1] ** 2, descending=True, maintain_order=True).head(most)
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    points = axes.transData.transform(rows.select("prejudice", "favouritism").to_numpy())
    written: list[Annotation] = []
    for row in furthest.iter_rows(named=True):
        for shift, side in ((5, "left"), (-5, "right")):
            name = _note(axes, row["target"], (row["prejudice"], row["favouritism"]), shift, side)
            box = name.get_window_extent()
            free = not any(box.overlaps(other.get_window_extent()) for other in written)
            if free and not box.count_contains(points) and frame.x0 <= box.x0 and box.x1 <= frame.x1:
                written.append(name)
                break
            name.remove()


def _note(axes: Axes, text: str, point: tuple[float, float], shift: float, side: str) -> Annotation:
    """Small text beside a point, `shift` points to its right, that takes no part in the layout."""
    note = axes.annotate(text, point, (shift, 0), textcoords="offset points", ha=side, va="center", size=SMALL)
    note.set_in_layout(False)
    return note
