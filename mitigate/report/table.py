"""Numbers as people read them, and tables of them, shown on a page, on the terminal and in a card.

Rows are mappings; the interval of a figure stands in the fields {name}_low and {name}_high, and is shown below it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import polars as pl

Row = Mapping[str, Any]
Value = float | int | str | None


def number(value: Value, decimals: int = 2) -> str:
    """The number as shown: separated thousands, a true minus, and a dash for a missing value."""
    if not isinstance(value, int | float) or value != value:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"
    return text.replace("-", "−" if text.strip("-0.,") else "")  # what rounds to 0 has no sign


def signed(value: Value, decimals: int = 1) -> str:
    """A difference with its sign: "+1.2", "−0.3"."""
    return f"{'+' if isinstance(value, int | float) and value > 0 else ''}{number(value, decimals)}"


def span(low: Value, high: Value, decimals: int = 2) -> str:
    """The bounds of an interval: "59.80, 62.70". A missing or infinite value is not a bound."""
    ends = {"no lower bound": low, "no upper bound": high}
    return ", ".join(
        none if value is None or value in (inf, -inf) else number(value, decimals) for none, value in ends.items()
    )


def p_value(p: float | None) -> str:
    """A p-value as shown: "0.031", "< 0.001", or a dash. A value below 0.05 is not rounded up to it: "0.0499"."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{min(p, 0.0499):.4f}" if 0.0495 <= p < 0.05 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """A time: "12.4 s", "1 min 39 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


class Cell(NamedTuple):
    """The content of a cell, and in small type below it an interval or a count."""

    text: str
    below: Sequence[str] = ()

    @property
    def line(self) -> str:
        return " ".join([self.text, *self.below]).rstrip()


@dataclass(frozen=True)
class Column:
    """A column: its heading, the field or function of a row that it shows, and decimals or a function of the value."""

    title: str
    value: str | Callable[[Any], Any]
    show: int | Callable[[Any], str | Cell] = 1
    kind: str = ""  # classes of style: "text" for the left side, "sentence" for long texts
    bounds: str | None = None  # the fields of the interval are {bounds}low and {bounds}high

    def cell(self, row: Row) -> Cell:
        value = self.value(row) if callable(self.value) else row.get(self.value)
        if callable(self.show) and not isinstance(value, Cell):
            value = self.show(value)
        if isinstance(value, Cell | str):
            return value if isinstance(value, Cell) else Cell(value)
        stem = f"{self.value}_" if self.bounds is None else self.bounds
        low, high = (row.get(f"{stem}{end}") for end in ("low", "high"))
        assert isinstance(self.show, int)
        below = [] if low is None and high is None else [f"[{span(low, high, self.show)}]"]
        return Cell(number(value, self.show), below)


def text(title: str, value: str | Callable[[Any], Any] = "", kind: str = "") -> Column:
    """A column of words, by default of the field that its title names; a dash stands for a missing one."""
    return Column(title, value or title, lambda word: "–" if word is None else str(word), kind=f"text {kind}".rstrip())


def figures(show: int, *names: str, **titles: str) -> list[Column]:
    """Columns of numbers by the names of their fields, which are the headings too unless given."""
    return [Column(title, name, show) for name, title in {**{name: name for name in names}, **titles}.items()]


@dataclass(frozen=True)
class Table:
    """Rows under columns, the first of which names the row."""

    caption: str
    columns: Sequence[Column]
    rows: Iterable[Any] | Mapping[str, Iterable[Any]] | pl.DataFrame  # or groups of rows by their titles
    kind: str = ""  # classes of style: "narrow", "tall"

    @cached_property
    def groups(self) -> list[tuple[str, list[Any]]]:
        """Titles with their rows; one without a title where rows are not grouped."""
        rows = self.rows.rows(named=True) if isinstance(self.rows, pl.DataFrame) else self.rows
        groups = rows.items() if isinstance(rows, Mapping) else [("", rows)]
        return [(title, list(found)) for title, found in groups]

    def present(self) -> "Table | None":
        """The table without columns in which no row has a figure; None without rows."""
        rows = [row for _, found in self.groups for row in found]
        first, *others = self.columns
        kept = [one for one in others if any(one.cell(row).line not in ("–", "") for row in rows)]
        return replace(self, columns=[first, *kept]) if rows else None


def grouped(rows: Iterable[Any], title: Callable[[Any], str]) -> dict[str, list[Any]]:
    """Rows by the title of their group, in the order of the first of each."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(title(row), []).append(row)
    return found


def as_text(table: Table, width: float = inf) -> str:
    """The table for the terminal: titles of groups at the margin, names of rows below them. Where the columns do not
    fit the width, the intervals are left out."""
    rows = [row for _, group in table.groups for row in group]
    for whole in (True, False):
        columns = []
        for column in table.columns:
            cells = [column.cell(row) for row in rows]
            texts = [column.title, *(cell.line if whole else cell.text for cell in cells)]
            size, side = max(map(len, texts)), "<" if "text" in column.kind else ">"
            columns.append([f"{words:{side}{size}}" for words in texts])
        lines = [f"  {'  '.join(cells)}".rstrip() for cells in zip(*columns, strict=True)]
        if max(map(len, lines)) <= width:
            break
    body = iter(lines[1:])
    blocks = [[title, *(next(body) for _ in part)] for title, part in table.groups]
    return "\n".join([lines[0], *(line for block in blocks for line in block if line)])


def as_markdown(table: Table) -> str:
    """The table for a card; its texts have to be safe for Markdown."""
    rows = [[column.cell(row).line for column in table.columns] for _, group in table.groups for row in group]
    head, *body = (f"| {' | '.join(cells)} |" for cells in [[column.title for column in table.columns], *rows])
    rule = "".join("---|" if "text" in column.kind else "---:|" for column in table.columns)
    return "\n".join([head, f"|{rule}", *body])
