"""Columns of a table of any size: CSV, TSV, JSON lines and JSON arrays, gzipped or plain, and Parquet. One reader for
all files that have columns, so that a quote, a null, a number and a list mean the same in each."""

import json
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.file_format import ENDINGS, Layout, elements, layout_of, schema_of
from mitigate.load.lines import (
    LONGEST,
    OPEN,
    TOO_LONG,
    OnBadLine,
    check_once,
    check_size,
    is_open,
    parsed,
    read_whole,
    split_fields,
)
from mitigate.load.stream import BLANK, LINES_OF_A_FIELD, Block, Met, bad, describe, split, text_blocks
from mitigate.words.outside_text import counted

SLICE = 200_000  # rows of a Parquet file, or objects of a JSON array, that one chunk is made of
SHOWN = 80  # characters of a line in a message
UNREADABLE = "\N{REPLACEMENT CHARACTER}"  # in place of bytes that are not UTF-8
TEXTS = (pl.String, pl.Categorical, pl.Enum, pl.Decimal, pl.Null)

Place = str | int
Columns = Mapping[str, Place]
"""The project's name of a column -> its name in the file, or its place, from 1, in a file without a line of names.
"a.b" is the part b of a nested column a."""

Faults = list[tuple[int, str]]
"""Lines, or rows, and the fault of each."""


@dataclass(frozen=True)
class Column:
    """A wanted column."""

    names: tuple[Place, ...]  # its names in files; the first that a file, or a line of JSON, has
    lists: bool = False  # its cells are lists of texts; in CSV and TSV written as JSON
    optional: bool = False
    numbers: bool = False  # its cells are numbers as text; NaN is an unknown one


@dataclass(frozen=True)
class Table:
    """A reader of a file's columns: its blocks, and a frame (row, and the columns wanted, as text) of each. Optional
    columns that the file lacks are not in the frame. row: the line, in Parquet and JSON arrays the row, from 1."""

    blocks: Callable[[], Iterator]
    frame: Callable[..., pl.DataFrame]  # of a block; counts faults and oddities


class Slice(NamedTuple):
    """A block of a Parquet file."""

    first: int
    share: float


class Objects(NamedTuple):
    """A block of a JSON array."""

    first: int
    values: list[Any]
    share: float


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
        return _parquet(path, _there(path, found, wanted, remedy))
    if found.form == "JSON":
        there = _there(path, found, wanted, remedy)
        return Table(lambda: _objects(path, content), lambda block, met: _of_objects(path, there, block, met))
    if found.form == "JSON lines":
        there = _there(path, found, wanted, remedy)
        blocks = lambda: text_blocks(path, content=content)  # noqa: E731
        return Table(blocks, lambda block, met: _of_json_lines(path, there, block, met))
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
    rows, met = read_all(path, open_table(path, columns, **how))
    return rows, describe(met, on_bad_line)


def read_all(path: Path, table: Table) -> tuple[pl.DataFrame, Met]:
    """All rows of a table in memory, and the counts of faults and oddities. Raises MitigateError for more than LARGEST
    bytes of text."""
    frames, met, size = list[pl.DataFrame](), Met(), 0
    for block in table.blocks():
        size += len(getattr(block, "content", b""))
        check_size(path, size)
        frames.append(table.frame(block, met))
    return pl.concat(frames), +met


def open_lines(path: Path, column: str, content: bytes | None = None) -> Table:
    """A text file whose unchanged lines are the only column."""

    def frame(block: Block, met: Met) -> pl.DataFrame:
        faults: Faults = []
        lines = _lines(block, met, faults)
        _report(path, faults, met)
        return lines.rename({"text": column})

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


def _lines(block: Block, met: Met, faults: Faults) -> pl.DataFrame:
    """The block's lines with content: row, text. Blank ones are counted, and those that are not UTF-8 or too long are
    faults."""
    content = split(block, met)
    texts: list[str | None]
    texts = [None]
    if is_short := max(map(len, content)) <= LONGEST:
        with suppress(UnicodeDecodeError):
            texts = b"\n".join(content).decode("utf-8").split("\n")  # type: ignore[assignment]
            is_short = False
    if texts == [None] or is_short:
        texts = [_decoded(line, number, faults) for number, line in enumerate(content, start=block.first)]
    frame = pl.DataFrame({"text": texts}, {"text": pl.String}).with_row_index("row", block.first).drop_nulls()
    blank = frame["text"].str.strip_chars() == ""
    met["noted", BLANK] += int(blank.sum())
    return frame.filter(~blank)


def _decoded(line: bytes, number: int, faults: Faults) -> str | None:
    try:
        if len(line) <= LONGEST:
            return line.decode("utf-8")
        faults.append((number, TOO_LONG))
    except UnicodeDecodeError as error:
        faults.append((number, f"not UTF-8 ({error.reason} at byte {error.start})"))
    return None


def _report(path: Path, faults: Faults, met: Met) -> None:
    bad(met, (f"{path}:{row}: {fault}" for row, fault in sorted(faults, key=lambda one: one[0])))


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
    start = split(next(text_blocks(path, content=content)), Met())
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
    expected = f"expected {len(names)} separated by {between}"

    def frame(block: Block, met: Met) -> pl.DataFrame:
        faults: Faults = []
        lines = _lines(block, met, faults).filter(pl.col("row") != header)
        fields = _split(lines, separator, len(names), stray_quotes, faults, expected)
        rows = fields.select("row", *(pl.col(f"field_{place}").alias(name) for name, place in places.items()))
        for name in [name for name in places if wanted[name].lists]:
            rows = _with_lists(rows, name, faults)
        _report(path, faults, met)
        return rows

    return Table(lambda: text_blocks(path, quoted=True, content=content), frame)


def _split(
    lines: pl.DataFrame, separator: str, width: int, stray_quotes: bool, faults: Faults, expected: str
) -> pl.DataFrame:
    """The lines with so many fields: row, field_0, field_1, ... Lines without a double quote, nearly all, are split at
    once."""
    text = pl.col("text")
    is_quoted = text.str.contains('"', literal=True)
    rows, taken = _records(lines, is_quoted, separator, width, stray_quotes, faults, expected)
    plain = lines.filter(~is_quoted & ~pl.col("row").is_in(taken))
    plain = plain.with_columns(width=text.str.count_matches(separator, literal=True) + 1)
    other = plain.filter((pl.col("width") != width) | text.str.contains("\r", literal=True))
    for row, line, found in other.iter_rows():
        faults.append((row, WITHIN if "\r" in line else f"{counted(found, 'column')}, {expected}"))
    good = plain.join(other.select("row"), on="row", how="anti", maintain_order="left") if other.height else plain
    split = good.select("row", text.str.split_exact(separator, width - 1).alias("fields")).unnest("fields")
    schema = {"row": pl.UInt32, **{f"field_{place}": pl.String for place in range(width)}}
    quoted = pl.DataFrame(rows, schema, orient="row")
    return pl.concat([split, quoted]).sort("row") if quoted.height else split


WITHIN = "a carriage return within the line; save the file with line ends of one kind"


def _records(
    lines: pl.DataFrame,
    is_quoted: pl.Expr,
    separator: str,
    width: int,
    stray_quotes: bool,
    faults: Faults,
    expected: str,
) -> tuple[list[tuple], list[int]]:
    """The fields of records with a double quote, and the rows of lines that belong to a record before them."""
    quoted = lines.with_row_index("place").filter(is_quoted)
    rows: list[tuple] = []
    taken: list[int] = []
    end = -1
    for place, row, line in quoted.iter_rows():
        if place <= end:
            continue
        if is_open(line, separator):
            whole = _closed(lines, place, separator, width)
            if whole is None and not stray_quotes:
                faults.append((row, OPEN))
                continue
            line, end = whole or (line, place)
            taken += lines["row"][place + 1 : end + 1].to_list()
        fields = split_fields(line, separator)
        if len(fields) != width:
            faults.append((row, f"{counted(len(fields), 'column')}, {expected}"))
        elif "\r" in line.replace("\r\n", "\n") and not any(f'"{field}"' in line for field in fields if "\r" in field):
            faults.append((row, WITHIN))
        else:
            rows.append((row, *fields))
    return rows, taken


def _closed(lines: pl.DataFrame, place: int, separator: str, width: int) -> tuple[str, int] | None:
    """The record that begins in a line where a field is open, with its line ends, and the place of its last line; None
    where none of the width is found."""
    rows, texts = lines["row"], lines["text"]
    whole = texts[place]
    for end in range(place + 1, min(place + LINES_OF_A_FIELD, lines.height)):
        whole += "\n" * (rows[end] - rows[end - 1]) + texts[end]  # blank lines between are part of the field
        if len(whole) > LONGEST:
            return None
        if texts[end].count('"') % 2 and not is_open(whole, separator):
            return (whole, end) if len(split_fields(whole, separator)) == width else None
    return None


def _with_lists(rows: pl.DataFrame, name: str, faults: Faults) -> pl.DataFrame:
    """The rows with a column of lists in JSON as lists; an empty cell is null."""
    values: list[list[str | None] | None] = []
    wrong: list[int] = []
    for row, cell in zip(rows["row"], rows[name], strict=True):
        try:
            values.append(_list(parsed(cell)) if cell and cell.strip() else None)
        except ValueError:
            values.append(None)
            wrong.append(row)
            faults.append((row, f'{name} {cell[:SHOWN]!r} is not a list of texts such as ["a", "b"]'))
    lists = rows.with_columns(pl.Series(name, values, pl.List(pl.String)))
    return lists.filter(~pl.col("row").is_in(wrong)) if wrong else lists


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


def _objects(path: Path, content: bytes | None) -> Iterator[Objects]:
    """Yield the values of a JSON array, which is read whole, in slices."""
    raw = read_whole(path) if content is None else content
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MitigateError(f"{path}:{line}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    first, values = 1, list[Any]()
    for value in elements(text):
        values.append(value)
        if len(values) == SLICE:
            yield Objects(first, values, 0.5)
            first, values = first + SLICE, []
    yield Objects(first, values, 1.0)


def _of_objects(path: Path, columns: Mapping[str, Column], block: Objects, met: Met) -> pl.DataFrame:
    return _of_records(
        path, columns, ((row, value, _as_json(value)) for row, value in enumerate(block.values, block.first)), met
    )


def _of_json_lines(path: Path, columns: Mapping[str, Column], block: Block, met: Met) -> pl.DataFrame:
    faults: Faults = []
    lines = _lines(block, met, faults)
    _report(path, faults, met)
    return _of_records(path, columns, ((row, _parsed(text), text) for row, text in lines.iter_rows()), met)


def _parsed(text: str) -> Any:
    """The value, or the ValueError with the fault."""
    try:
        return parsed(text)
    except ValueError as error:
        return error


def _of_records(
    path: Path, columns: Mapping[str, Column], records: Iterator[tuple[int, Any, str]], met: Met
) -> pl.DataFrame:
    """The frame of JSON values with their numbers and texts; those that are a ValueError, not an object, or without a
    wanted text are bad lines."""
    needed = [one for one in columns.values() if not one.optional]
    expected = "{" + ", ".join(f'"{one.names[0]}": {"[...]" if one.lists else "..."}' for one in needed) + "}"
    rows: list[tuple] = []
    for number, record, text in records:
        try:
            rows.append((number, *_values(record, columns)))
        except ValueError as error:
            bad(met, [f"{path}:{number}: {error}; found {text[:SHOWN]!r}, expected {expected}"])
    kinds = {name: pl.List(pl.String) if one.lists else pl.String for name, one in columns.items()}
    return pl.DataFrame(rows, {"row": pl.UInt32, **kinds}, orient="row")


def _values(record: Any, columns: Mapping[str, Column]) -> Iterator[Any]:
    if isinstance(record, ValueError):
        raise record
    if isinstance(record, str) and len(columns) == 1:  # lines of texts alone
        yield record
        return
    if not isinstance(record, dict):
        raise ValueError("no object")
    for column in columns.values():
        value = _ABSENT
        for name in column.names:
            if (value := _part(record, str(name))) is not _ABSENT:
                break
        if value is _ABSENT and not column.optional:
            plain = [str(name) for name in column.names if "." not in str(name)] or map(str, column.names)
            raise ValueError(f"no {' or '.join(map(repr, plain))}")
        value = None if value is _ABSENT or (column.numbers and value != value) else value  # NaN alone is not itself
        yield (_list if column.lists else _text)(value)


_ABSENT: Any = object()


def _part(record: Any, name: str) -> Any:
    """The value under a name, or under a dotted one in nested objects."""
    if isinstance(record, dict) and name in record:
        return record[name]
    first, dot, rest = name.partition(".")
    return _part(record[first], rest) if dot and isinstance(record, dict) and first in record else _ABSENT


def _text(value: Any) -> str | None:
    """A text or a number as text. Raises ValueError for anything else."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{_as_json(value)} is not a text")
    return str(value)


def _list(value: Any) -> list[str | None] | None:
    """A list of texts; one text becomes a list of one."""
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    if not isinstance(value, list) or not all(part is None or isinstance(part, str) for part in value):
        raise ValueError(f"{_as_json(value)} is not a text or a list of texts")
    return value


def _as_json(value: Any) -> str:
    return "" if isinstance(value, ValueError) else json.dumps(value, ensure_ascii=False)[:SHOWN]


def _parquet(path: Path, columns: Mapping[str, Column]) -> Table:
    schema = schema_of(path)
    scan = pl.scan_parquet(path, glob=False)
    height = scan.select(pl.len()).collect().item()
    if not height:
        raise MitigateError(f"{path} is empty: it has columns and no rows")
    cells = {name: _cell(schema, str(one.names[0])) for name, one in columns.items()}
    kinds = {name: kind for name, (_, kind) in cells.items()}
    as_text = [_as_text(cell, kind, columns[name].lists).alias(name) for name, (cell, kind) in cells.items()]
    is_wrong = [_is_wrong(cell, kind, columns[name]).alias(f"{name} wrong") for name, (cell, kind) in cells.items()]

    def frame(piece: Slice, met: Met) -> pl.DataFrame:
        faults: Faults = []
        try:
            rows = scan.slice(piece.first - 1, SLICE).select(*as_text, *is_wrong).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise MitigateError(f"{path} cannot be read from row {piece.first:,} on: {error}") from error
        rows = rows.with_row_index("row", piece.first)
        for name, kind in kinds.items():
            fault = f"{name} is {kind}" + (" that is not a number" if kind.is_float() else "") + ", expected a text"
            faults += [(row, fault) for row in rows.filter(pl.col(f"{name} wrong"))["row"]]
            if columns[name].lists and kind == pl.String:
                rows = _with_lists(rows, name, faults)
            elif not columns[name].lists:
                faults += [(row, TOO_LONG) for row in rows.filter(pl.col(name).str.len_bytes() > LONGEST)["row"]]
        _report(path, list(dict(reversed(faults)).items()), met)
        return rows.filter(~pl.col("row").is_in([row for row, _ in faults])).select("row", *columns)

    return Table(
        lambda: (Slice(start + 1, min(1.0, (start + SLICE) / height)) for start in range(0, height, SLICE)), frame
    )


def _cell(schema: Mapping[str, Any], name: str) -> tuple[pl.Expr, pl.DataType]:
    """A column, or the part of a nested one, and its type."""
    if name in schema:
        return pl.col(name), schema[name]
    first, _, rest = name.partition(".")
    cell, kind = pl.col(first), schema[first]
    for part in rest.split("."):
        cell, kind = cell.struct.field(part), dict(kind)[part]
    return cell, kind


def _as_text(cell: pl.Expr, kind: pl.DataType, lists: bool) -> pl.Expr:
    if lists and kind != pl.String:
        return cell.cast(pl.List(pl.String)) if _is_list_of_texts(kind) else pl.lit(None, pl.List(pl.String))
    return cell.cast(pl.String) if kind.is_numeric() or kind.base_type() in TEXTS else pl.lit(None, pl.String)


def _is_wrong(cell: pl.Expr, kind: pl.DataType, column: Column) -> pl.Expr:
    """Return whether a cell is not a text, or not a list of texts: true, NaN, a date."""
    if column.lists and kind != pl.String:
        return pl.lit(False) if _is_list_of_texts(kind) else cell.is_not_null()
    if kind.is_float() and not column.numbers:
        return (~cell.is_finite()).fill_null(False)
    return pl.lit(False) if kind.is_numeric() or kind.base_type() in TEXTS else cell.is_not_null()


def _is_list_of_texts(kind: pl.DataType) -> bool:
    inner = getattr(kind, "inner", None)
    return kind == pl.Null or (isinstance(kind, pl.List | pl.Array) and inner in (pl.String, pl.Null, pl.Categorical))
