"""Columns of values with types of their own: objects of JSON lines and JSON arrays, and Parquet."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.columns import SHOWN, Column, Faults, Table, as_json, as_list, lines_of, report, with_lists
from mitigate.load.file_format import elements, schema_of
from mitigate.load.lines import LONGEST, TOO_LONG, parsed, read_whole
from mitigate.load.stream import Block, Counts, bad, text_blocks

SLICE = 200_000  # rows of a Parquet file, or objects of a JSON array, that one chunk is made of
TEXTS = (pl.String, pl.Categorical, pl.Enum, pl.Decimal, pl.Null)
_ABSENT: Any = object()


class Slice(NamedTuple):
    """A block of a Parquet file or of a JSON array."""

    first: int  # row or value, from 1
    share: float  # of the file read so far
    values: Sequence[Any] = ()  # of an array


def open_array(path: Path, columns: Mapping[str, Column], content: bytes | None) -> Table:
    """The columns of the objects of a JSON array."""

    def frame(block: Slice, counts: Counts) -> pl.DataFrame:
        values = enumerate(block.values, block.first)
        return _of_records(path, columns, ((row, value, as_json(value)) for row, value in values), counts)

    return Table(lambda: _objects(path, content), frame)


def open_json_lines(path: Path, columns: Mapping[str, Column], content: bytes | None) -> Table:
    """The columns of JSON objects, one a line."""

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        faults: Faults = []
        lines = lines_of(block, counts, faults)
        report(path, faults, counts)
        return _of_records(path, columns, ((row, _parsed(text), text) for row, text in lines.iter_rows()), counts)

    return Table(lambda: text_blocks(path, content=content), frame)


def _objects(path: Path, content: bytes | None) -> Iterator[Slice]:
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
            yield Slice(first, 0.5, values)
            first, values = first + SLICE, []
    yield Slice(first, 1.0, values)


def _parsed(text: str) -> Any:
    """The value, or the ValueError with the fault."""
    try:
        return parsed(text)
    except ValueError as error:
        return error


def _of_records(
    path: Path, columns: Mapping[str, Column], records: Iterator[tuple[int, Any, str]], counts: Counts
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
            bad(counts, [f"{path}:{number}: {error}; found {text[:SHOWN]!r}, expected {expected}"])
    kinds = {name: pl.List(pl.String) if one.lists else pl.String for name, one in columns.items()}
    return pl.DataFrame(rows, {"row": pl.UInt32, **kinds}, orient="row")


def _values(record: Any, columns: Mapping[str, Column]) -> Iterator[Any]:
    if isinstance(record, ValueError):
        raise record
    if isinstance(record, str) and len(columns) == 1:  # lines of texts alone
        yield record
        return
    if not isinstance(record, dict):
        raise ValueError("not an object")
    for column in columns.values():
        value = _ABSENT
        for name in column.names:
            if (value := _part(record, str(name))) is not _ABSENT:
                break
        if value is _ABSENT and not column.optional:
            plain = [str(name) for name in column.names if "." not in str(name)] or map(str, column.names)
            raise ValueError(f"no {' or '.join(map(repr, plain))}")
        value = None if value is _ABSENT or (column.numbers and value != value) else value  # NaN alone is not itself
        yield (as_list if column.lists else _text)(value)


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
        raise ValueError(f"{as_json(value)} is not a text")
    return str(value)


def open_parquet(path: Path, columns: Mapping[str, Column]) -> Table:
    """The columns of a Parquet file."""
    schema = schema_of(path)
    scan = pl.scan_parquet(path, glob=False)
    height = scan.select(pl.len()).collect().item()
    if not height:
        raise MitigateError(f"{path} is empty: it has columns and no rows")
    cells = {name: _cell(schema, str(one.names[0])) for name, one in columns.items()}
    kinds = {name: kind for name, (_, kind) in cells.items()}
    as_text = [_as_text(cell, kind, columns[name].lists).alias(name) for name, (cell, kind) in cells.items()]
    is_wrong = [_is_wrong(cell, kind, columns[name]).alias(f"{name} wrong") for name, (cell, kind) in cells.items()]

    def frame(piece: Slice, counts: Counts) -> pl.DataFrame:
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
                rows = with_lists(rows, name, faults)
            elif not columns[name].lists:
                faults += [(row, TOO_LONG) for row in rows.filter(pl.col(name).str.len_bytes() > LONGEST)["row"]]
        report(path, list(dict(reversed(faults)).items()), counts)
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
