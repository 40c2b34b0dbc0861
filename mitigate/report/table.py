"""Tables of figures, declared once and shown on a page, on the terminal, in a card, and as CSV and LaTeX files.

A table knows neither runs nor metrics: its rows are mappings or objects, and its columns say what each cell shows."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate import files
from mitigate.measure.base import ENDS
from mitigate.report.metric_display import number, span
from mitigate.report.verdicts import p_value

ARROWS = {"up": " ↑", "down": " ↓"}


class Cell(NamedTuple):
    """The content of a cell."""

    text: str  # markup is shown as such, any other text letter by letter
    below: Sequence[str] = ()  # in small type: an interval, a count

    @property
    def line(self) -> str:
        """The text with what stands below it."""
        return " ".join([self.text, *self.below])


@dataclass(frozen=True)
class Column:
    """A column: its heading, the value that a row has in it, and how the value is shown."""

    title: str
    value: str | Callable[[Any], Any]  # the name of a field, or a function of the row
    better: str = ""  # "up" or "down": the direction of the arrow after the title
    show: int | Callable[[Any], str | Cell] = 2  # decimals of a number, or a function of the value
    kind: str = ""  # classes of style: "text" for the left side, "sentence", "whole" for a line that does not break
    note: str = ""  # in small type below the title
    bounds: str | None = None  # the interval is in the fields {bounds}_low and {bounds}_high; "": in low and high
    ends: int | None = None  # decimals of the bounds, where they have others

    @property
    def heading(self) -> str:
        return self.title + ARROWS.get(self.better, "")

    @property
    def is_text(self) -> bool:
        return "text" in self.kind

    def cell(self, row: Any) -> Cell:
        """The cell of a row. A function that returns a cell, and text, pass as they are."""
        value = self.value(row) if callable(self.value) else _field(row, self.value)
        if self.bounds is not None and isinstance(self.value, str) and isinstance(self.show, int):
            return with_bounds(row, self.value, self.show, ends=self.ends, of=self.bounds)
        if callable(self.show) and not isinstance(value, Cell):
            value = self.show(value)
        if isinstance(value, Cell):
            return value
        if isinstance(value, str):
            return Cell(value)
        assert isinstance(self.show, int)
        return Cell(number(value, self.show))


def text(title: str, value: str | Callable[[Any], Any], kind: str = "") -> Column:
    """A column of words; a dash stands for a missing one."""
    return Column(title, value, show=_words, kind=f"text {kind}".rstrip())


def figures(show: int, *names: str, **titles: str) -> list[Column]:
    """Columns of numbers by the names of their fields, which are their headings too unless a heading is given."""
    return [Column(title, name, show=show) for name, title in {**{name: name for name in names}, **titles}.items()]


def bounded(title: str, name: str, decimals: int = 1, *, better: str = "", ends: int | None = None) -> Column:
    """A column of figures with their intervals, from the fields {name}, {name}_low and {name}_high."""
    return Column(title, name, better=better, show=decimals, bounds=name, ends=ends)


def with_bounds(row: Any, name: str, decimals: int = 1, *, ends: int | None = None, of: str | None = None) -> Cell:
    """A figure of a row and its interval. ends: decimals of the bounds, those of the figure if not given; of: the name
    whose _low and _high the bounds are, where that is another; "" for the fields low and high."""
    low, high = (_field(row, f"{name if of is None else of}{end}".removeprefix("_")) for end in ENDS[1:])
    shown = [] if low is None else [f"[{span(low, high, decimals if ends is None else ends)}]"]
    return Cell(number(_field(row, name), decimals), shown)


@dataclass(frozen=True)
class Table:
    """Rows under columns, the first of which names the row."""

    caption: str
    columns: Sequence[Column]
    rows: Iterable[Any] | Mapping[str, Iterable[Any]] | pl.DataFrame  # or groups of rows by their titles
    label: str = ""  # the name for assistive technology, where it is not the first sentence of the caption
    name: str = ""  # the identifier on its page, by which a search field finds it
    kind: str = ""  # classes of style: "narrow", "tall", "sided"
    search: Callable[[Any], str] | None = None  # the words by which a row is found
    headed: bool = True  # whether the first cell of a row is its heading
    empty: str = ""  # stands in place of rows
    total: int = 0  # the number of rows of which these are some; 0: these are all

    @cached_property
    def groups(self) -> list[tuple[str, list[Any]]]:
        """Titles with their rows; one without a title where rows are not grouped."""
        rows = self.rows.rows(named=True) if isinstance(self.rows, pl.DataFrame) else self.rows
        groups = rows.items() if isinstance(rows, Mapping) else [("", rows)]
        return [(title, list(found)) for title, found in groups]

    @property
    def title(self) -> str:
        """The name for assistive technology."""
        return self.label or self.caption.partition(". ")[0].rstrip(".")

    @property
    def height(self) -> int:
        return sum(len(rows) for _, rows in self.groups)

    @cached_property
    def is_stacked(self) -> bool:
        """True if a phone shows each row as a block of lines."""
        return len(self.columns) > 3 or any("sentence" in column.kind for column in self.columns)

    def cells(self, row: Any) -> list[Cell]:
        return [column.cell(row) for column in self.columns]


def grouped(rows: Iterable[Any], title: Callable[[Any], str]) -> dict[str, list[Any]]:
    """Rows by the title of their group, in the order of the first of each."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(title(row), []).append(row)
    return found


def _field(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name)


def _words(value: Any) -> str | Cell:
    return "–" if value is None else value if isinstance(value, str | Cell) else str(value)


def as_text(table: Table, width: float = inf) -> str:
    """The table for the terminal: titles of groups at the margin, names of rows below them, numbers to the right.

    Where the columns do not fit the width, the intervals go first; then the columns are shown in blocks."""
    first, *others = table.columns
    rows = [row for _, group in table.groups for row in group]
    names = [f"  {first.cell(row).text}" for row in rows]
    margin = max(map(len, [*names, f"  {first.heading}" if first.title else ""]), default=0)
    columns = [_aligned(column, rows, intervals=True) for column in others]
    if margin + sum(len(column[0]) for column in columns) > width:
        columns = [_aligned(column, rows, intervals=False) for column in others]
    head = f"  {first.heading}" if first.title else ""
    return "\n\n".join(_block(table, head, names, margin, block) for block in _blocks(columns, width - margin))


def _aligned(column: Column, rows: Sequence[Any], intervals: bool) -> list[str]:
    """The heading and the cells of a column, all of one width."""
    cells = [column.cell(row) for row in rows]
    ranges = [" ".join(cell.below) if intervals else "" for cell in cells]
    value_width, range_width = (max(map(len, texts), default=0) for texts in ([cell.text for cell in cells], ranges))
    shown = [
        f"{cell.text:>{value_width}} {found:>{range_width}}" if range_width else cell.text
        for cell, found in zip(cells, ranges, strict=True)
    ]
    width = max(map(len, [column.heading, *shown]))
    side = "<" if column.is_text else ">"
    return [f"  {shown_text:{side}{width}}" for shown_text in [column.heading, *shown]]


def _blocks(columns: Sequence[list[str]], width: float) -> Iterator[list[list[str]]]:
    block: list[list[str]] = []
    for column in columns:
        if block and sum(len(other[0]) for other in block) + len(column[0]) > width:
            yield block
            block = []
        block.append(column)
    yield block


def _block(table: Table, head: str, names: Sequence[str], margin: int, columns: Sequence[list[str]]) -> str:
    heads, *cells = zip(*columns, strict=True)
    body = iter([f"{name:<{margin}}" + "".join(values) for name, values in zip(names, cells, strict=True)])
    lines = [f"{head:<{margin}}" + "".join(heads)]
    for title, rows in table.groups:
        lines += [*([title] if title else []), *(next(body) for _ in rows)]
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(table: Table) -> str:
    """The table for a card; its texts have to be safe for Markdown, and an interval stands after its figure."""
    rows = [table.cells(row) for _, group in table.groups for row in group]
    lines = [[column.heading for column in table.columns]]
    lines += [[cell.line.rstrip() for cell in cells] for cells in rows]
    head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
    rule = "".join("---|" if column.is_text else "---:|" for column in table.columns)
    return "\n".join([head, f"|{rule}", *body])


def save_csv(frame: pl.DataFrame, path: Path) -> Path:
    return files.write(path, frame.write_csv(float_precision=4))


def save_latex(frame: pl.DataFrame, path: Path, caption: str) -> Path:
    """The frame as a LaTeX table, which needs the package booktabs. p-values are words, since two decimals would make
    0.05 of 0.049."""
    shown = [name for name in ("p", "p_holm") if name in frame.columns]
    frame = frame.with_columns(pl.Series(name, [p_value(p) for p in frame[name]]) for name in shown)
    return files.write(path, latex(frame, caption))


def latex(frame: pl.DataFrame, caption: str) -> str:
    alignment = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    body = [frame.columns, *frame.with_columns(pl.col(pl.String).fill_null("")).iter_rows()]
    head, *lines = (" & ".join(_latex_cell(value) for value in row) + r" \\" for row in body)
    inside = [r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]
    rows = textwrap.indent("\n".join(inside), "    ")
    return (
        "\\begin{table}\n  \\centering\n"
        f"  \\caption{{{_latex_cell(caption)}}}\n  \\begin{{tabular}}{{{alignment}}}\n{rows}\n"
        "  \\end{tabular}\n\\end{table}\n"
    )


_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$", "–": "--", "−": "$-$"}
)


def _latex_cell(value: object) -> str:
    words = number(value) if isinstance(value, int | float) or value is None else str(value)
    return words.translate(_LATEX)
