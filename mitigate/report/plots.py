"""The figures of pages: palette and style, the harms paper's figures from frames of targets, and harm against quality.

A frame of targets has a row each: (target, category, statements, prejudice, favouritism, neutral), the last three in
percent. Figures are narrow enough for a phone, and none relies on colour alone."""

import re
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

from mitigate import files
from mitigate.errors import readable
from mitigate.files import DATA
from mitigate.words.targets import ordered

# Okabe and Ito's palette, which is safe for colour blindness.
PREJUDICE, FAVOURITISM, BOTH, KEPT = "#D55E00", "#0072B2", "#CC79A7", "#009E73"
INK = "#767676"  # 4.5 : 1 against white and against black; inside a page it becomes the page's text colour
SMALL = 8  # points
WIDTH = 4.8  # inches: 9 points are still read on a phone
FULL = 0.6  # opacity
LONGEST_NAME = 32  # characters beside a bar
SIGNS = {"prejudice": ("negative", PREJUDICE), "favouritism": ("positive", FAVOURITISM)}
COLOURS = (INK, FAVOURITISM, PREJUDICE, KEPT, BOTH, "#E69F00", "#56B4E9")  # of what is compared, the baseline first
SHAPES = "o^DsvPX"
styled = matplotlib.rc_context(fname=str(DATA.joinpath("figures.mplstyle")))
"""Decorate a function that draws, so that it runs with the project's matplotlib settings."""


class Picture(NamedTuple):
    """A figure of a page. Names are unique on a page and valid as file names."""

    name: str
    group: str  # of figures of one kind, for captions and W&B
    title: str
    alt: str  # the text alternative: what the figure shows, with its numbers
    figure: Figure


def panel(height: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, `height` inches high."""
    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.add_subplot()


def mark(place: int) -> tuple[str, str]:
    """The colour and the shape of the one that is compared at a place; once all are used, colours get other shapes."""
    return COLOURS[place % len(COLOURS)], SHAPES[(place + place // len(COLOURS)) % len(SHAPES)]


def legend(axes: Axes, columns: int = 4) -> None:
    """The legend of the colours above the axes, so many names a line."""
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
    axes.legend(ncols=columns, handletextpad=0.3, columnspacing=1.2, **place)


@styled
def tradeoff(points: pl.DataFrame, across: str, up: str, *, log: bool = False) -> Figure:
    """Harm against quality, or any two figures. points, a row each, the baseline's first: name, x, y, and perhaps
    x_low, x_high, y_low, y_high (an interval is drawn as a bar) and is_mean: a large mark, where the others of the name
    are small ones. across, up: what the axes show, and to which side it is better."""
    names = points["name"].unique(maintain_order=True)
    columns = 4 if max(map(len, names)) < 14 else 1
    figure, axes = panel(3.0 + 0.2 * -(-len(names) // columns))
    for place, name in enumerate(names):
        colour, marker = mark(place)
        label: str | None = name
        for row in points.filter(name=name).sort("is_mean", descending=True).rows(named=True):
            style: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 0.9, "alpha": 0.7, "zorder": 2}
            axes.errorbar(row["x"], row["y"], _reach(row, "y"), _reach(row, "x"), **style)
            size, alpha = (75, 1) if row["is_mean"] else (22, 0.55)
            axes.scatter(
                row["x"], row["y"], size, colour, marker=marker, lw=0, alpha=alpha, label=label, clip_on=False, zorder=3
            )
            label = None
    axes.margins(0.15)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(6))  # those of powers of ten would leave most of the axis bare
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.grid(which="both")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    legend(axes, columns)
    return figure


def _reach(row: Mapping[str, Any], name: str) -> list[list[float]] | None:
    """The lengths of an error bar below and above a figure; None without an interval."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return None if low is None or high is None else [[max(0, row[name] - low)], [max(0, high - row[name])]]


@styled
def intervals(rows: pl.DataFrame, label: str, zero: float | None = None) -> Figure:
    """A dot with its interval for each row (name, value, low, high, and perhaps series, which is a colour), the first
    on top. zero: where a line stands."""
    series = rows["series"].unique(maintain_order=True).to_list() if "series" in rows.columns else [""]
    names = rows["name"].unique(maintain_order=True).to_list()
    figure, axes = panel(0.9 + 0.22 * len(names) * (1 + 0.5 * (len(series) - 1)))
    for place, one in enumerate(series):
        part = rows.filter(series=one) if one else rows
        colour, marker = mark(place + (len(series) == 1))
        heights = [names.index(name) + 0.28 * (place - (len(series) - 1) / 2) for name in part["name"]]
        for height, row in zip(heights, part.rows(named=True), strict=True):
            if row["low"] is not None and row["high"] is not None:
                axes.plot([row["low"], row["high"]], [height, height], color=colour, lw=0.9, alpha=0.7)
        axes.scatter(part["value"], heights, 26, colour, marker=marker, lw=0, label=one, zorder=3)
    if zero is not None:
        axes.axvline(zero, color=INK, lw=0.6)
    axes.set_xlabel(label)
    axes.grid(axis="x")
    _name_rows(axes, names)
    if len(series) > 1:
        legend(axes)
    return figure


@styled
def boxes(targets: pl.DataFrame, top: float | None = None) -> Figure:
    """Box plots of prejudice and favouritism over the targets of each category (Fig. 1, 5). top: the upper limit."""
    figure, axes = panel(3.2)
    categories = ordered(targets["category"].to_list())
    places = np.arange(len(categories))
    for (column, (sign, colour)), shift in zip(SIGNS.items(), (-0.19, 0.19), strict=True):
        dots = {"markerfacecolor": colour, "markeredgewidth": 0, "marker": "o", "markersize": 3, "alpha": 0.7}
        axes.boxplot(
            [targets.filter(category=name)[column].drop_nulls().to_numpy() for name in categories],
            positions=places + shift,
            widths=0.3,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": to_rgba(colour, FULL), "edgecolor": colour},
            medianprops={"color": INK, "linewidth": 1.6},
            whiskerprops={"color": colour},
            capprops={"color": colour},
            flierprops=dots,
            label=sign,
        )
    axes.set_xticks(places, categories)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.set_ylabel("% of a target's statements")
    axes.set_ylim(0, 1.04 * top if top else None)
    legend(axes)
    return figure


@styled
def bars(rows: pl.DataFrame, label: str = "% of the target's statements") -> Figure:
    """Prejudice to the left and favouritism to the right, a bar for each row (target or another name first, prejudice,
    favouritism) in the order given (Fig. 3)."""
    figure, axes = panel(0.8 + 0.24 * rows.height)
    decimals = 0 if rows.select(pl.max_horizontal(pl.max("prejudice", "favouritism"))).item() >= 10 else 1
    for column, direction, align in (("prejudice", -1, "right"), ("favouritism", 1, "left")):
        sign, colour = SIGNS[column]
        lengths = direction * rows[column].to_numpy()
        axes.barh(range(len(lengths)), lengths, height=0.68, color=to_rgba(colour, FULL), ec=colour, lw=0.8, label=sign)
        for place, length in enumerate(lengths):
            if length:  # at the line itself, on the names where no other bar goes to that side
                words, shift = f"{abs(length):.{decimals}f}", (3 * direction, 0)
                at: dict[str, Any] = {"textcoords": "offset points", "ha": align, "va": "center", "size": SMALL}
                axes.annotate(words, (length, place), shift, **at).set_in_layout(False)
    axes.axvline(0, color=INK, lw=0.6)
    axes.margins(x=0.14)
    axes.set_xticks([])
    axes.set_xlabel(label)
    axes.spines["bottom"].set_visible(False)
    _name_rows(axes, rows.to_series(0).to_list())
    legend(axes)
    return figure


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write the names of rows beside them, the first on top, cut if they are long, without a line or ticks."""
    short = [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in names]
    axes.set_yticks(range(len(short)), short)
    axes.invert_yaxis()
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


@styled
def svg(picture: Picture) -> str:
    """The picture as an <svg> element for a page, the same text for the same figure. Ids begin with its name, so that
    several can share a page; width and height are left to the page; greys follow its text colour."""
    text = _svg(picture.figure)
    inner = text[text.index(">", text.index("<svg")) + 1 :]
    inner = re.sub(r'\bid="|(?<=href=")#|(?<=url\()#', lambda found: f"{found.group()}{picture.name}-", inner)
    width, height = 72 * picture.figure.get_size_inches()
    said = escape(readable(picture.alt))
    head = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{said}" {NAMESPACES}>'
    return head + inner.replace(INK.lower(), "currentColor").strip()


@styled
def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure as path.png and path.svg."""
    files.write(path.with_name(f"{path.name}.png"), _bytes(figure, format="png", dpi=200))
    files.write(path.with_name(f"{path.name}.svg"), _svg(figure))


@lru_cache(maxsize=64)
def _svg(figure: Figure) -> str:
    """The SVG file of the figure, without characters of outside texts that XML forbids."""
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    return readable(_bytes(figure, format="svg", metadata=metadata).decode())


def _bytes(figure: Figure, **options: Any) -> bytes:
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it; pages have more fonts
        figure.set_layout_engine("constrained")
        figure.savefig(buffer, **options)
    return buffer.getvalue()
