"""Columns of a table of any size: CSV, TSV, JSON lines and JSON arrays, gzipped or plain, and Parquet. One reader for
all files that have columns, so that a quote, a null, a number and a list mean the same in each."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.columns import Column, Faults, Place, Table, lines_of, report, with_lists
from mitigate.load.file_format import ENDINGS, Layout, layout_of
from mitigate.load.lines import LONGEST, OPEN, OnBadLine, check_once, check_size, is_open, split_fields
from mitigate.load.records import open_array, open_json_lines, open_parquet
from mitigate.load.stream import LINES_OF_A_FIELD, Block, Counts, describe, split, text_blocks
from mitigate.words.outside_text import counted

UNREADABLE = "\N{REPLACEMENT CHARACTER}"  # in place of bytes that are not UTF-8
WITHIN = "a carriage return within the line; save the file with line ends of one kind"


def open_table(
    path: Path,
    columns: Mapping[str, Place | Column],
    separator: str | None = None,
    widths: Container[int] | None = None,
    *,
    width: int | None = None,
    stray_quotes: bool = False,
    layout: Layout | None = None,
    remedy: str = "",
    content: bytes | None = None,
) -> Table:
    """The columns of a file in any layout.

    separator: of a text file, in place of the one found. widths: the allowed numbers of columns of a text file. width:
    its number of columns; None: as in its first line. stray_quotes: whether a double quote that opens a field and is
    not closed is an ordinary character, as in resources that are published without quoting, and not a bad line. layout:
    the file's layout, if it is known. remedy: the end of the message for a missing column. content: the content in
    place of the file's. Raises MitigateError for a file that is not a table, and for columns that it does not have."""
    found = layout or layout_of(path, content)
    if separator and found.form not in ("table", "lines"):
        between = {"\t": "<TAB>"}.get(separator, separator)
        raise MitigateError(f"{path} is {found.shown}; expected lines '{between.join(columns)}'")
    wanted = {name: one if isinstance(one, Column) else Column((one,)) for name, one in columns.items()}
    if found.form == "Parquet":
        return open_parquet(path, _there(path, found, wanted, remedy))
    if found.form in ("JSON", "JSON lines"):
        opened = open_array if found.form == "JSON" else open_json_lines
        return opened(path, _there(path, found, wanted, remedy), content)
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if separator is None and found.form == "lines" and ending not in ENDINGS:
        allowed = ", ".join(ENDINGS)
        raise MitigateError(f"{path}: unknown ending {ending!r}; allowed: {allowed}, each also with .gz")
    return _delimited(path, wanted, separator or found.separator, widths, width, stray_quotes, remedy, content)


def read_table(
    path: Path, columns: Mapping[str, Place | Column], on_bad_line: OnBadLine | None = None, **how: Any
) -> tuple[pl.DataFrame, list[str]]:
    """All rows of a file in memory, and a sentence for each oddity. how: as open_table has it.

    Raises MitigateError as open_table does, for a file of more than LARGEST bytes of text, and for bad lines, unless
    on_bad_line is "skip"; None: there is no such setting."""
    rows, counts = read_all(path, open_table(path, columns, **how))
    return rows, describe(counts, on_bad_line)


def read_all(path: Path, table: Table) -> tuple[pl.DataFrame, Counts]:
    """All rows of a table in memory, and the counts of faults and oddities. Raises MitigateError for more than LARGEST
    bytes of text."""
    frames, counts, size = list[pl.DataFrame](), Counts(), 0
    for block in table.blocks():
        size += len(getattr(block, "content", b""))
        check_size(path, size)
        frames.append(table.frame(block, counts))
    return pl.concat(frames), +counts


def open_lines(path: Path, content: bytes | None = None) -> Table:
    """A text file whose unchanged lines are the only column, `statement`."""

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        faults: Faults = []
        lines = lines_of(block, counts, faults)
        report(path, faults, counts)
        return lines.rename({"text": "statement"})

    return Table(lambda: text_blocks(path, content=content), frame)


def _there(path: Path, layout: Layout, wanted: Mapping[str, Column], remedy: str) -> dict[str, Column]:
    """The wanted columns under the file's own names, with its capitals. Raises MitigateError where one is missing."""
    lower: dict[str, str] = {}
    for name in layout.names:
        parts = name.split(".")
        for end in range(len(parts), 0, -1):  # a nested column may itself be named: it is then of the wrong type
            lower.setdefault(".".join(parts[:end]).lower(), ".".join(parts[:end]))
    found: dict[str, Column] = {}
    for name, column in wanted.items():
        names = tuple(lower[str(one).lower()] for one in column.names if str(one).lower() in lower)
        if names:
            found[name] = replace(column, names=names)
    absent = [str(one.names[0]) for name, one in wanted.items() if name not in found and not one.optional]
    if absent and (layout.names or layout.form == "Parquet"):
        raise MitigateError(
            f"{path} ({layout.form}) has no column {', '.join(absent)} (found: {', '.join(layout.names)[:300]}){remedy}"
        )
    return found if layout.names else dict(wanted)


def _delimited(
    path: Path,
    wanted: Mapping[str, Column],
    separator: str,
    widths: Container[int] | None,
    width: int | None,
    stray_quotes: bool,
    remedy: str,
    content: bytes | None,
) -> Table:
    start = split(next(text_blocks(path, content=content)), Counts())
    number, line = next(((number, line) for number, line in enumerate(start, start=1) if line.strip()), (0, b""))
    names = split_fields(line.decode("utf-8", errors="replace"), separator) if width is None else [""] * width
    between = {",": "a comma", "\t": "a tab"}.get(separator, repr(separator))
    if widths is not None and len(names) not in widths:
        raise MitigateError(
            f"{path}: expected {', '.join(wanted)}, separated by {between}; its first line has "
            f"{counted(len(names), 'column')}: {names[0][:60]}"
        )
    places = _places(path, wanted, names, between, remedy)
    is_headed = any(isinstance(name, str) for one in wanted.values() for name in one.names)
    header = number if is_headed else 0
    fields = Fields(separator, len(names), stray_quotes, f"expected {len(names)} separated by {between}")

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        faults: Faults = []
        lines = lines_of(block, counts, faults).filter(pl.col("row") != header)
        named = (pl.col(f"field_{place}").alias(name) for name, place in places.items())
        rows = fields.of(lines, faults).select("row", *named)
        for name in [name for name in places if wanted[name].lists]:
            rows = with_lists(rows, name, faults)
        report(path, faults, counts)
        return rows

    return Table(lambda: text_blocks(path, quoted=True, content=content), frame)


@dataclass(frozen=True)
class Fields:
    """The fields of lines with separators, of which a record has so many."""

    separator: str
    width: int
    stray_quotes: bool
    expected: str  # in messages

    def of(self, lines: pl.DataFrame, faults: Faults) -> pl.DataFrame:
        """The lines with this width: row, field_0, field_1, ... Lines without a double quote, nearly all, are split at
        once."""
        text = pl.col("text")
        is_quoted = text.str.contains('"', literal=True)
        rows, taken = self._records(lines, is_quoted, faults)
        plain = lines.filter(~is_quoted & ~pl.col("row").is_in(taken))
        plain = plain.with_columns(width=text.str.count_matches(self.separator, literal=True) + 1)
        other = plain.filter((pl.col("width") != self.width) | text.str.contains("\r", literal=True))
        faults += [(row, WITHIN if "\r" in line else self._fault(found)) for row, line, found in other.iter_rows()]
        good = plain.join(other.select("row"), on="row", how="anti", maintain_order="left") if other.height else plain
        parts = text.str.split_exact(self.separator, self.width - 1).alias("fields")
        split = good.select("row", parts).unnest("fields")
        schema = {"row": pl.UInt32, **{f"field_{place}": pl.String for place in range(self.width)}}
        quoted = pl.DataFrame(rows, schema, orient="row")
        return pl.concat([split, quoted]).sort("row") if quoted.height else split

    def _fault(self, width: int) -> str:
        return f"{counted(width, 'column')}, {self.expected}"

    def _records(self, lines: pl.DataFrame, is_quoted: pl.Expr, faults: Faults) -> tuple[list[tuple], list[int]]:
        """The fields of records with a double quote, and the rows of lines that belong to a record before them."""
        rows, taken, end = list[tuple](), list[int](), -1
        for place, row, line in lines.with_row_index("place").filter(is_quoted).iter_rows():
            if place <= end:
                continue
            if is_open(line, self.separator):
                whole = self._closed(lines, place)
                if whole is None and not self.stray_quotes:
                    faults.append((row, OPEN))
                    continue
                line, end = whole or (line, place)
                taken += lines["row"][place + 1 : end + 1].to_list()
            fields = split_fields(line, self.separator)
            within = [field for field in fields if "\r" in field]
            if len(fields) != self.width:
                faults.append((row, self._fault(len(fields))))
            elif "\r" in line.replace("\r\n", "\n") and not any(f'"{field}"' in line for field in within):
                faults.append((row, WITHIN))
            else:
                rows.append((row, *fields))
        return rows, taken

    def _closed(self, lines: pl.DataFrame, place: int) -> tuple[str, int] | None:
        """The record that begins in a line where a field is open, with its line ends, and the place of its last line;
        None where none of the width is found."""
        rows, texts = lines["row"], lines["text"]
        whole = texts[place]
        for end in range(place + 1, min(place + LINES_OF_A_FIELD, lines.height)):
            whole += "\n" * (rows[end] - rows[end - 1]) + texts[end]  # blank lines between are part of the field
            if len(whole) > LONGEST:
                return None
            if texts[end].count('"') % 2 and not is_open(whole, self.separator):
                return (whole, end) if len(split_fields(whole, self.separator)) == self.width else None
        return None


def _places(
    path: Path, wanted: Mapping[str, Column], names: Sequence[str], separator: str, remedy: str
) -> dict[str, int]:
    """The place of each column, from 0."""
    if all(isinstance(name, int) for one in wanted.values() for name in one.names):
        numbers = {name: int(one.names[0]) - 1 for name, one in wanted.items()}
        if any(not 0 <= place < len(names) for place in numbers.values()):
            wished = ", ".join(f"{name} in column {place + 1}" for name, place in numbers.items())
            raise MitigateError(
                f"{path}: expected {wished}, separated by {separator}; its first line has {len(names)}: {names[0][:60]}"
            )
        return numbers
    lower = [name.strip().lower() for name in names]
    if any("\r" in name for name in names):
        raise MitigateError(f"{path}:1: {WITHIN}")
    places: dict[str, int] = {}
    absent: list[str] = []
    for name, column in wanted.items():
        there = [str(one).lower() for one in column.names if str(one).lower() in lower]
        if there:
            check_once(path, there[:1], lower)
            places[name] = lower.index(there[0])
        elif not column.optional:
            absent.append(str(column.names[0]))
    if absent and any(UNREADABLE in name for name in lower):
        raise MitigateError(f"{path} has no column {', '.join(absent)}; its first line is not UTF-8. Save it as UTF-8")
    if absent:
        raise MitigateError(
            f"{path} has no column {', '.join(absent)}; its first line is {' | '.join(lower)[:200]}{remedy}"
        )
    return places
