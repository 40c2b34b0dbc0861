"""The palette and style of all figures, and their conversion to a file or to a part of a page."""

import re
import warnings
import weakref
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Annotation

from mitigate import files
from mitigate.package_data import DATA
from mitigate.words.outside_text import readable

# Okabe and Ito's palette, which is safe for colour blindness.
PREJUDICE, FAVOURITISM, BOTH, KEPT = "#D55E00", "#0072B2", "#CC79A7", "#009E73"
INK = "#767676"  # 4.5 : 1 against white and against black; inside a page it becomes the page's text colour
SMALL = 8  # points
WIDTH = 4.8  # inches: 9 points are still read on a phone

styled = matplotlib.rc_context(fname=str(DATA.joinpath("figures.mplstyle")))
"""Decorate a function that draws, so that it runs with the project's matplotlib settings."""


def panel(height: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, `height` inches high."""
    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.add_subplot()


def legend(axes: Axes, handles: Sequence[Artist] | None = None, columns: int = 4) -> None:
    """The legend of the colours above the axes, so many names a line."""
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
    axes.legend(handles=handles, ncols=columns, handletextpad=0.3, columnspacing=1.2, **place)


def note(axes: Axes, text: str, point: tuple[float, float], shift: float, side: str) -> Annotation:
    """Write small text `shift` points to the right of a point, ignored by the layout."""
    note = axes.annotate(text, point, (shift, 0), textcoords="offset points", ha=side, va="center", size=SMALL)
    note.set_in_layout(False)
    return note


def name_points(figure: Figure, axes: Axes, names: Sequence[str], points: np.ndarray, chosen: Iterable[int]) -> None:
    """Write the names of the chosen points, in this order, each where it covers no point and no earlier name."""
    lay_out(figure)
    frame = axes.get_window_extent()
    shown = axes.transData.transform(points)
    written: list[Annotation] = []
    for place in chosen:
        for shift, side in ((5, "left"), (-5, "right")):
            name = note(axes, names[place], tuple(points[place]), shift, side)
            box = name.get_window_extent()
            free = not any(box.overlaps(other.get_window_extent()) for other in written)
            if free and not box.count_contains(shown) and frame.x0 <= box.x0 and box.x1 <= frame.x1:
                written.append(name)
                break
            name.remove()


def lay_out(figure: Figure) -> None:
    """Layout engine that places the axes once: a second time would move them a little, and a figure with its own engine
    would be drawn once more at each save."""
    if figure.axes and figure not in _laid_out:
        ConstrainedLayoutEngine().execute(figure)
        _laid_out.add(figure)


NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
_drawn: weakref.WeakKeyDictionary[Figure, str] = weakref.WeakKeyDictionary()
"""Cache of each figure's SVG, for pages and files; a drawn figure is not changed."""
_laid_out: weakref.WeakSet[Figure] = weakref.WeakSet()
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


@styled
def svg(figure: Figure, name: str = "figure", alt: str = "") -> str:
    """The figure as an <svg> element for a page, the same text for the same figure.

    name: prefix of every id, so that several figures can share a page; alt: the text alternative.
    Width and height are left to the page; greys follow its text colour."""
    text = _svg(figure)
    inner = text[text.index(">", text.index("<svg")) + 1 :]
    inner = re.sub(r'\bid="|(?<=href=")#|(?<=url\()#', lambda found: f"{found.group()}{name}-", inner)
    width, height = 72 * figure.get_size_inches()
    head = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(readable(alt))}" {NAMESPACES}>'
    return head + inner.replace(INK.lower(), "currentColor").strip()


@styled
def save(figure: Figure, path: Path) -> list[Path]:
    """Write the figure as path.png and path.svg, and create their folder."""
    return [
        files.write(path.with_name(f"{path.name}.png"), _bytes(figure, format="png", dpi=200)),
        files.write(path.with_name(f"{path.name}.svg"), _svg(figure)),
    ]


def _svg(figure: Figure) -> str:
    """The SVG file of the figure, without characters of outside texts that XML forbids."""
    if figure not in _drawn:
        _drawn[figure] = readable(_bytes(figure, format="svg", metadata=NO_METADATA).decode())
    return _drawn[figure]


def _bytes(figure: Figure, **options: Any) -> bytes:
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it; pages have more fonts
        lay_out(figure)
        figure.savefig(buffer, **options)
    return buffer.getvalue()
