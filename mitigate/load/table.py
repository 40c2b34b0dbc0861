"""Columns of a table of any size, by the file's ending: CSV, TSV, JSON lines, JSON arrays and Parquet; text files also
gzipped. A file with another ending is a text of lines. A quote, a null, a number and a list mean the same in each form.
Text files are read a block of whole lines at a time."""

import csv
import gzip
import json
import re
import shlex
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from mitigate.errors import MitigateError, counted
from mitigate.load.stream import Block, Counts, Table, describe, report

SEPARATORS = {".csv": ",", ".tsv": "\t"}
OBJECTS = (".jsonl", ".ndjson", ".json", ".parquet")
TABLES = (*SEPARATORS, *OBJECTS)
LOOKED_AT = 200  # lines, or records, at the beginning of a file
SHOWN = 80  # characters of a line in a message
SLICE = 200_000  # rows of a Parquet file that one chunk is made of
BLOCK = 32 * 2**20  # bytes of text, unpacked, that one chunk is made of
PEEKED = 2**16  # bytes that show whether a file has the expected format
LINES_OF_A_FIELD = 1000  # that a field in quotes may have
csv.field_size_limit(BLOCK)  # the default, 128 KiB, is less than a long document
BLANK = "blank line"
NAME = re.compile(r"[^\W\d][\w.:-]*")  # of a column

Place = str | int
Columns = Mapping[str, Place]
"""The project's name of a column -> its name in the file, or its place, from 1, in a file without a line of names.
"a.b" is the part b of a nested column a."""


@dataclass(frozen=True)
class Column:
    """A wanted column."""

    names: tuple[Place, ...]  # its names in files; the first that a file, or a line of JSON, has
    lists: bool = False  # its cells are lists of texts; in CSV and TSV written as JSON
    optional: bool = False


class Layout(NamedTuple):
    """The layout of a file."""

    form: Literal["objects", "table", "lines"]  # objects: JSON and Parquet
    names: list[str]  # of its columns, as written; of nested ones "knowledge.sentence"; of a text its first line
    separator: str = "\t"

    @property
    def lower(self) -> list[str]:
        """The names in lower case."""
        return [name.strip().lower() for name in self.names]


def layout_of(path: Path, separator: str | None = None) -> Layout:
    """The layout of a file. A text with a line of column names, or of JSON, is a table under any ending. separator: in
    place of the one found."""
    ending = _ending(path)
    lines = _filled(_lines(next(blocks_of(path))), Counts())["statement"].head(LOOKED_AT).to_list()
    if not lines:
        raise MitigateError(f"{path} is empty")
    first = lines[0].lstrip()
    if ending in OBJECTS or first.startswith('{"'):
        names: dict[str, None] = {}
        for line in lines:
            with suppress(ValueError):  # a fault is named where the line is read
                names |= dict.fromkeys(_flat(json.loads(line)))
        if not names:
            raise MitigateError(f"{path} has no JSON objects with names; write one object a line, or an array of them")
        return Layout("objects", list(names))
    separator = separator or max(f"{SEPARATORS.get(ending, '')}\t,;", key=lambda one: one in first)
    header = next(csv.reader([first.replace("\r", " ")], delimiter=separator))  # csv takes no lone carriage return
    is_table = len(header) > 1 and all(map(NAME.fullmatch, header))
    is_table |= len(header) > 1 and separator == "\t" and all(line.count("\t") == len(header) - 1 for line in lines)
    return Layout("table" if ending in SEPARATORS or is_table else "lines", header, separator)


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _flat(record: Any, before: str = "") -> dict[str, Any]:
    """The values of an object by their names; those of objects within it by dotted names."""
    if not isinstance(record, dict):
        raise ValueError("not an object")
    flat = dict[str, Any]()
    for name, value in record.items():
        is_nested = isinstance(value, dict) and value
        flat |= _flat(value, f"{before}{name}.") if is_nested else {f"{before}{name}": value}
    return flat


def blocks_of(path: Path) -> Iterator[Block]:
    """Yield the blocks of a file; those of Parquet and of a JSON array, which is read whole, as JSON lines."""
    if _ending(path) == ".parquet":
        try:
            scan = pl.scan_parquet(path, glob=False)
            schema = scan.collect_schema()
            scan = scan.drop([name for name in schema if "Binary" in str(schema[name])])  # JSON has no bytes
            height = scan.select(pl.len()).collect().item()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise not_read(path, error, f"is not a readable Parquet file: {error}") from error
        for start in range(0, max(height, 1), SLICE):
            lines = scan.slice(start, SLICE).collect().write_ndjson().encode()
            yield Block(start + 1, min(1.0, (start + SLICE) / max(height, 1)), lines)
    elif _ending(path) == ".json" and next(_text_blocks(path)).content.lstrip().startswith(b"["):
        try:
            array = json.loads(b"".join(block.content for block in _text_blocks(path)))
        except ValueError as error:
            raise MitigateError(f"{path} is not a JSON array ({error}); save it as JSON lines") from error
        yield Block(1, 1.0, "\n".join(map(json.dumps, array)).encode())
    else:
        yield from _text_blocks(path)


def _text_blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a text file, gzipped or plain, cut at line ends that are not inside double quotes."""
    first = 1
    try:
        with path.open("rb") as raw:
            size, file = path.stat().st_size, gzip.GzipFile(fileobj=raw) if path.name.endswith(".gz") else raw
            while piece := file.read(BLOCK if first > 1 else PEEKED):
                piece += file.readline()
                for line in islice(file, LINES_OF_A_FIELD if piece.count(b'"') % 2 else 0):
                    piece += line
                    if line.count(b'"') % 2:  # the quote that closes the field
                        break
                _check_encoding(path, first, piece)
                yield Block(first, raw.tell() / size, piece.removeprefix(BOM_UTF8))
                first += max(1, piece.count(b"\n"))
    except (EOFError, zlib.error, OSError) as error:
        cut = f"is damaged or was cut short after line {first - 1:,} ({error}); get it again"
        raise not_read(path, error, cut) from error
    if first == 1:
        raise MitigateError(f"{path} is empty")


def not_read(path: Path, error: Exception, fault: str) -> MitigateError:
    """The error for a file that is missing or is a folder, or else has a fault in its content."""
    if isinstance(error, FileNotFoundError):
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        return MitigateError(f"no such file: {path}{where}; correct the path")
    fault = "is a folder; give a file" if isinstance(error, IsADirectoryError) else fault
    return MitigateError(f"{path} {fault}")


def _check_encoding(path: Path, first: int, piece: bytes) -> None:
    """Raise MitigateError for text that is not UTF-8, with its probable encoding and the command that converts it."""
    try:
        piece.decode("utf-8")
        return
    except UnicodeDecodeError as error:
        line, around = first + piece.count(b"\n", 0, error.start), max(0, error.start - PEEKED)
    from charset_normalizer import from_bytes  # comes with requests; half a second, for a fault only

    matches = from_bytes(piece[around : around + 2 * PEEKED])
    names = [name for match in matches for name in (match.encoding, *match.could_be_from_charset)]
    if not names:
        raise MitigateError(f"{path}:{line}: neither a text in UTF-8 nor in another known encoding; save it in UTF-8")
    name = ("cp1252" if "cp1252" in names else names[0]).upper().replace("_", "-")
    plain, given = Path(path.name.removesuffix(".gz")), shlex.quote(str(path))
    unpack, new = "gzip -dc" if path.suffix == ".gz" else "cat", shlex.quote(f"{plain.stem}-utf8{plain.suffix}")
    raise MitigateError(
        f"{path}:{line}: not UTF-8; the file seems to be in {name}. Convert it: {unpack} {given} | iconv -f {name} -t "
        f"UTF-8 > {new}, look at a few lines, and give the new file"
    )


def _lines(block: Block) -> pl.DataFrame:
    return pl.read_lines(block.content, name="statement", row_index_name="row", row_index_offset=block.first)


def _filled(lines: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """The lines with content; the others are counted."""
    kept = lines.filter(pl.col("statement").str.contains(r"\S"))
    counts["noted", BLANK] += lines.height - kept.height
    return kept


def open_lines(path: Path) -> Table:
    """A text file whose unchanged lines are the only column, `statement`."""
    return Table(lambda: blocks_of(path), lambda block, counts: _filled(_lines(block), counts))


def open_table(
    path: Path,
    columns: Mapping[str, Place | Column],
    *,
    widths: Container[int] | None = None,
    layout: Layout | None = None,
    remedy: str = "",
) -> Table:
    """The columns of a file in any layout.

    widths: the allowed numbers of columns of a text file. layout: the file's layout, if it is known. remedy: the end of
    the message for a missing column."""
    form, names, separator = layout or layout_of(path)
    wanted = {name: one if isinstance(one, Column) else Column((one,)) for name, one in columns.items()}
    places = [one for column in wanted.values() if isinstance(one := column.names[0], int)]
    by_place = form != "objects" and len(places) == len(wanted)
    between = {",": "a comma", "\t": "a tab", " ": "a space"}.get(separator, repr(separator))
    if by_place and (len(names) < max(places) or (widths is not None and len(names) not in widths)):
        raise MitigateError(
            f"{path}: expected {', '.join(f'{name} in column {one.names[0]}' for name, one in wanted.items())}, "
            f"separated by {between}; its first line has {counted(len(names), 'column')}: {names[0][:60]}"
        )
    header = [str(place + 1) for place in range(len(names))] if by_place else names
    in_file = {name.strip().lower(): name for name in reversed(header)}
    present: dict[str, Column] = {}
    for name, column in wanted.items():
        if names_in_file := [in_file[key] for key in map(str.lower, map(str, column.names)) if key in in_file]:
            present[name] = replace(column, names=tuple(names_in_file))
    if absent := [str(one.names[0]) for name, one in wanted.items() if name not in present and not one.optional]:
        shown = ", ".join(header)[:200] or "(none)"
        raise MitigateError(f"{path} has no column {', '.join(absent)}; its columns: {shown}{remedy}")
    lists = [str(column.names[0]) for column in present.values() if column.lists]

    def parse(record: dict[str, str]) -> dict[str, Any]:
        return record | {name: json.loads(record[name].strip() or "null") for name in lists}

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        if form == "objects":
            return _frame(path, present, _filled(_lines(block), counts).iter_rows(), counts, json.loads)
        records = _records(block, separator, len(header), counts)[int(block.first == 1 and not by_place) :]
        fields, is_whole = pl.col("fields"), pl.col("fields").list.len() == len(header)
        expected = f"expected {len(header)} separated by {between}; found"
        for row, cells in records.filter(~is_whole).iter_rows():
            fault = f"{counted(len(cells), 'column')}, {expected} {separator.join(cells)[:SHOWN]!r}"
            report(path, [(row, fault)], counts)
        rows = records.filter(is_whole)
        if lists:
            objects = ((row, dict(zip(header, cells, strict=True))) for row, cells in rows.iter_rows())
            return _frame(path, present, objects, counts, parse)
        indices = {name: header.index(str(column.names[0])) for name, column in present.items()}
        return rows.select("row", *(fields.list.get(index).alias(name) for name, index in indices.items()))

    return Table(lambda: blocks_of(path), frame)


def read_table(path: Path, columns: Mapping[str, Place | Column], **how: Any) -> tuple[pl.DataFrame, list[str]]:
    """All rows of a file in memory, none of which may be bad, and a sentence for each oddity. how: as open_table."""
    rows, counts = open_table(path, columns, **how).read()
    return rows, describe(counts, None)


def _records(block: Block, separator: str, width: int, counts: Counts) -> pl.DataFrame:
    """The records of a block: row, fields. Fields in double quotes may have separators and line ends; a quote within a
    field, and one that is not closed, is an ordinary character."""
    lines = _lines(block)
    texts, quoted, used = lines["statement"], list[tuple[int, list[str]]](), set[int]()
    for at in texts.str.contains('"', literal=True).arg_true():
        following = (f"{line}\n" for line in texts[at : at + LINES_OF_A_FIELD])
        reader = csv.reader(following, delimiter=separator, strict=True)
        with suppress(csv.Error):  # its quotes are ordinary characters
            fields = [] if at in used else next(reader)
            if fields and (len(fields) == width or reader.line_num == 1):
                quoted.append((block.first + at, fields))
                used.update(range(at, at + reader.line_num))
    filled = _filled(lines.filter(~pl.int_range(pl.len()).is_in(list(used))), counts)
    plain = filled.select("row", pl.col("statement").str.split(separator).alias("fields"))
    return pl.concat([plain, pl.DataFrame(quoted, plain.schema, orient="row")]).sort("row")


def _frame(
    path: Path,
    columns: Mapping[str, Column],
    records: Iterable[tuple[int, Any]],
    counts: Counts,
    parse: Callable[[Any], Any],
) -> pl.DataFrame:
    """The frame of records; those that cannot be parsed, and those without a wanted text, are bad lines."""
    rows = list[tuple]()
    for row, record in records:
        try:
            rows.append((row, *_values(parse(record), columns)))
        except ValueError as error:
            what = str(error)
            if isinstance(error, json.JSONDecodeError):
                what = f"not JSON ({error.msg} at column {error.colno})"
            report(path, [(row, f"{what}; found {str(record)[:SHOWN]!r}")], counts)
    kinds = {name: pl.List(pl.String) if one.lists else pl.String for name, one in columns.items()}
    return pl.DataFrame(rows, {"row": pl.UInt32, **kinds}, orient="row")


def _values(record: Any, columns: Mapping[str, Column]) -> Iterator[Any]:
    values = _flat(record)
    for column in columns.values():
        name = next((name for name in column.names if name in values), None)
        if name is None and not column.optional:
            raise ValueError(f"no {' or '.join(map(repr, column.names))}")
        value = None if name is None else values[name]
        if value is None or value != value:  # NaN alone differs from itself
            yield None
        elif column.lists:
            texts = value if isinstance(value, list) else [value]
            if not all(isinstance(text, str | None) for text in texts):
                raise ValueError(f"{column.names[0]} is not a text or a list of texts")
            yield texts
        elif isinstance(value, list | dict):
            raise ValueError(f"{column.names[0]} is not a text")
        else:
            yield str(value)
