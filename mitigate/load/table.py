"""Columns of a table of any size, by the file's ending: CSV, TSV, JSON lines, JSON arrays and Parquet; text files also
gzipped. A file with another ending is a text of lines. A quote, a null, a number and a list mean the same in each form.
Text files are read a block of whole lines at a time."""

import csv
import gzip
import json
import math
import re
import shlex
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import Counts, describe, report
from mitigate.words.outside_text import counted

Form = Literal["Parquet", "JSON lines", "JSON", "table", "lines"]
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
TABLES = (*SEPARATORS, *JSON_LINES, ".json", ".parquet")
LOOKED_AT = 200  # lines, or records, at the beginning of a file
SHOWN = 80  # characters of a line in a message
SLICE = 200_000  # rows of a Parquet file that one chunk is made of
BLOCK = 32 * 2**20  # bytes of text, unpacked, that one chunk is made of
PEEKED = 2**16  # bytes that show whether a file has the expected format
LINES_OF_A_FIELD = 1000  # that a field in quotes may have
BLANK = "blank line"
INVISIBLE = "[\u00ad\u200b\u2060\ufeff]"  # "law\u00adyer" names a lawyer
QUOTED = re.compile(r'(?s)^"((?:[^"]|"")*)"$')
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


@dataclass(frozen=True)
class Table:
    """A reader of a file's columns: its blocks, and a frame (row, and the columns wanted, as text) of each. Optional
    columns that the file lacks are not in the frame. row: the line, in Parquet and JSON arrays the row, from 1."""

    blocks: Callable[[], Iterator]
    frame: Callable[..., pl.DataFrame]  # of a block; counts faults and oddities


class Layout(NamedTuple):
    """The layout of a file."""

    form: Form
    names: list[str]  # of its columns, as written; of nested ones "knowledge.sentence"; of a table its first line
    separator: str = "\t"  # of a table

    @property
    def lower(self) -> list[str]:
        """The names in lower case."""
        return [name.strip().lower() for name in self.names]

    @property
    def shown(self) -> str:
        """The kind of file and its columns, for a message: "JSON lines with the columns prompt, generation"."""
        kind = {"\t": "TSV", ",": "CSV"}.get(self.separator, "a table") if self.form == "table" else self.form
        return f"{kind} with the columns {', '.join(self.names)[:200] or '(none)'}"


class Block(NamedTuple):
    """A piece of a file: whole lines of text, or rows of Parquet."""

    first: int  # its first line's, or row's, number, from 1
    share: float  # of the file read so far, 0 to 1
    content: bytes = b""


def layout_of(path: Path) -> Layout:
    """The layout of a file. A text with a line of column names, or of JSON, is a table under any ending."""
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending == ".parquet":
        return Layout("Parquet", list(_paths(_schema_of(path))))
    lines = lines_of(next(text_blocks(path)), Counts())["text"].head(LOOKED_AT).to_list()
    if not lines:
        raise MitigateError(f"{path} is empty")
    first = lines[0].lstrip()
    if ending == ".json" and first.startswith("["):
        return Layout("JSON", _names(_array(path)))
    if ending in (*JSON_LINES, ".json") or first.startswith('{"'):
        return Layout("JSON lines", _names(lines))
    separator = SEPARATORS.get(ending, "\t")
    if separator not in first:
        separator = max(separator + "\t,;|", key=first.count)
    names = _split(first, separator)
    is_table = len(names) > 1 and all(map(NAME.fullmatch, names))
    is_table |= len(names) > 1 and separator == "\t" and all(line.count("\t") == len(names) - 1 for line in lines)
    return Layout("table", names, separator) if ending in SEPARATORS or is_table else Layout("lines", [])


def _split(line: str, separator: str) -> list[str]:
    return next(csv.reader([line.replace("\r", " ")], delimiter=separator), [""])


def _schema_of(path: Path) -> dict[str, Any]:
    """The columns of a Parquet file and their types."""
    try:
        return dict(pl.scan_parquet(path, glob=False).collect_schema())
    except (OSError, pl.exceptions.PolarsError) as error:
        damaged = MitigateError(f"{path} is not a readable Parquet file: {error}")
        raise not_opened(path, error) or damaged from error


def _paths(record: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Yield the keys of an object, or the columns of a schema; for those with parts, the parts' dotted names."""
    for name, value in record.items():
        inner = dict(value) if isinstance(value, pl.Struct) else value
        if isinstance(inner, dict) and inner:
            yield from _paths(inner, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def _names(records: Iterable[Any]) -> list[str]:
    """All keys that the first records, or lines of JSON, have."""
    names: dict[str, None] = {}
    for record in islice(records, LOOKED_AT):
        with suppress(ValueError, RecursionError):  # a fault is named where the line is read
            found = json.loads(record) if isinstance(record, str) else record
            names |= dict.fromkeys(_paths(found) if isinstance(found, dict) else ())
    return list(names)


def _array(path: Path) -> list[Any]:
    """The values of a JSON array, which is read whole."""
    try:
        return list(json.loads(b"".join(block.content for block in text_blocks(path))))
    except (ValueError, TypeError, RecursionError) as error:
        raise MitigateError(f"{path} is not a JSON array ({error}); correct it, or save it as JSON lines") from error


def text_blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a text file, gzipped or plain, cut at line ends that are not inside double quotes."""
    first = 1
    try:
        with path.open("rb") as raw:
            size, file = path.stat().st_size, unpacked(path, raw)
            while piece := file.read(BLOCK if first > 1 else PEEKED):
                piece += (rest := file.readline())
                for line in islice(file, LINES_OF_A_FIELD if piece.count(b'"') % 2 else 0):
                    piece += line
                    if line.count(b'"') % 2:  # the quote that closes the field
                        break
                _check_encoding(path, first, piece)
                yield Block(first, raw.tell() / size, piece)
                first += piece.count(b"\n") or len(rest) + 1
    except (EOFError, zlib.error, OSError) as error:
        raise not_opened(path, error) or MitigateError(
            f"{path} is damaged or was cut short after line {first - 1:,} ({error}); download it again (`gzip -t` "
            "checks a packed file)"
        ) from error
    if first == 1:
        raise MitigateError(f"{path} is empty")


def unpacked(path: Path | str, raw: BinaryIO) -> BinaryIO:
    """The file's text, packed with gzip or not. Raises MitigateError for one that is only named so."""
    is_packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    if str(path).endswith(".gz") and not is_packed:
        raise MitigateError(f"{path} is named .gz and is not a gzip file; rename it, or download it again")
    file: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
    return file


def not_opened(path: Path, error: Exception) -> MitigateError | None:
    """The error for a file that is missing or is a folder; None where the fault is in its content."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        return MitigateError(f"no such file: {path}{where}; correct the path")
    return MitigateError(f"{path} is a folder; give a file") if isinstance(error, IsADirectoryError) else None


def _check_encoding(path: Path, first: int, piece: bytes) -> None:
    """Raise MitigateError for text that is not UTF-8, with its probable encoding and the command that converts it."""
    try:
        piece.decode("utf-8")
        return
    except UnicodeDecodeError as error:
        line, around = first + piece.count(b"\n", 0, error.start), max(0, error.start - PEEKED)
    from charset_normalizer import from_bytes  # comes with requests; half a second, for a fault only

    found = from_bytes(piece[around : around + 2 * PEEKED])
    names = [name for match in found for name in (match.encoding, *match.could_be_from_charset)]
    if not names:
        raise MitigateError(
            f"{path}:{line}: neither a text in UTF-8 nor in another known encoding; unpack it, or save it as CSV, TSV "
            "or JSON lines in UTF-8, or as Parquet"
        )
    name = ("cp1252" if "cp1252" in names else names[0]).upper().replace("_", "-")
    plain = Path(path.name.removesuffix(".gz"))
    unpack = "gzip -dc" if path.suffix == ".gz" else "cat"
    new = shlex.quote(f"{plain.stem}-utf8{plain.suffix}")
    raise MitigateError(
        f"{path}:{line}: not UTF-8; the file seems to be in {name}. Convert it: {unpack} {shlex.quote(str(path))} | "
        f"iconv -f {name} -t UTF-8 > {new}, look at a few lines, and give the new file"
    )


def lines_of(block: Block, counts: Counts | None = None) -> pl.DataFrame:
    """The block's lines (row, text), without characters that nobody sees; with counts those with content, and the
    number of others."""
    source: Any = block.content or b"\n"
    lines = pl.read_lines(source, name="text", row_index_name="row", row_index_offset=block.first)
    if not block.content.isascii():
        lines = lines.with_columns(pl.col("text").str.replace_all(INVISIBLE, ""))
    if counts is None:
        return lines
    kept = lines.filter(pl.col("text").str.strip_chars() != "")
    counts["noted", BLANK] += lines.height - kept.height
    return kept


def open_table(
    path: Path,
    columns: Mapping[str, Place | Column],
    separator: str | None = None,
    widths: Container[int] | None = None,
    *,
    layout: Layout | None = None,
    remedy: str = "",
) -> Table:
    """The columns of a file in any layout.

    separator: of a text file, in place of the one found. widths: the allowed numbers of columns of a text file. layout:
    the file's layout, if it is known. remedy: the end of the message for a missing column."""
    found = layout or layout_of(path)
    wanted = {name: one if isinstance(one, Column) else Column((one,)) for name, one in columns.items()}
    if found.form in ("table", "lines"):
        return _delimited(path, wanted, separator or found.separator, widths, remedy)
    if separator:
        raise MitigateError(f"{path} is {found.shown}; expected lines of {', '.join(columns)}")
    there = _there(path, found, wanted, remedy)
    if found.form == "Parquet":
        return _parquet(path, there)
    if found.form == "JSON":
        records = list(enumerate(_array(path), 1))
        return Table(lambda: iter([Block(1, 1.0)]), lambda _, counts: _of_records(path, there, records, counts))
    return Table(
        lambda: text_blocks(path),
        lambda block, counts: _of_records(path, there, lines_of(block, counts).iter_rows(), counts, json.loads),
    )


def read_table(path: Path, columns: Mapping[str, Place | Column], **how: Any) -> tuple[pl.DataFrame, list[str]]:
    """All rows of a file in memory, none of which may be bad, and a sentence for each oddity. how: as open_table."""
    rows, counts = read_all(open_table(path, columns, **how))
    return rows, describe(counts, None)


def read_all(table: Table) -> tuple[pl.DataFrame, Counts]:
    """All rows of a table in memory, and the counts of faults and oddities."""
    counts = Counts()
    return pl.concat([table.frame(block, counts) for block in table.blocks()]), counts


def open_lines(path: Path) -> Table:
    """A text file whose unchanged lines are the only column, `statement`."""
    return Table(lambda: text_blocks(path), lambda block, counts: lines_of(block, counts).rename({"text": "statement"}))


def _there(path: Path, layout: Layout, wanted: Mapping[str, Column], remedy: str) -> dict[str, Column]:
    """The wanted columns under the file's own names, with its capitals."""
    lower = dict(zip(reversed(layout.lower), reversed(layout.names), strict=True))
    found: dict[str, Column] = {}
    for name, column in wanted.items():
        if names := tuple(lower[str(one).lower()] for one in column.names if str(one).lower() in lower):
            found[name] = replace(column, names=names)
            if (num := layout.lower.count(names[0].strip().lower())) > 1 and layout.form == "table":
                raise MitigateError(f"{path} has {num} columns named {names[0]}, expected one; rename the others")
    if absent := [str(one.names[0]) for name, one in wanted.items() if name not in found and not one.optional]:
        raise MitigateError(f"{path} has no column {', '.join(absent)}; it is {layout.shown}{remedy}")
    return found


def _of_records(
    path: Path,
    columns: Mapping[str, Column],
    records: Iterable[tuple[int, Any]],
    counts: Counts,
    parse: Callable[[Any], Any] = lambda record: record,
) -> pl.DataFrame:
    """The frame of objects; other values, and objects without a wanted text, are bad lines. parse: makes the object."""
    expected = ", ".join(f'"{one.names[0]}"' for one in columns.values() if not one.optional)
    rows = list[tuple]()
    for row, record in records:
        try:
            rows.append((row, *_values(parse(record), columns)))
        except (ValueError, RecursionError) as error:
            what = str(error)
            if isinstance(error, json.JSONDecodeError):
                what = f"not JSON ({error.msg} at column {error.colno})"
            shown = (record if isinstance(record, str) else json.dumps(record, default=str))[:SHOWN]
            report(path, [(row, f"{what}; found {shown!r}, expected an object with {expected}")], counts)
    kinds = {name: pl.List(pl.String) if one.lists else pl.String for name, one in columns.items()}
    return pl.DataFrame(rows, {"row": pl.UInt32, **kinds}, orient="row")


def _values(record: Any, columns: Mapping[str, Column]) -> Iterator[Any]:
    if not isinstance(record, dict):
        raise ValueError("not an object")
    for column in columns.values():
        found = next((part for name in column.names for part in _part(record, str(name))), KeyError)
        if found is KeyError and not column.optional:
            raise ValueError(f"no {' or '.join(map(repr, column.names))}")
        value = None if found is KeyError else found
        yield _list(value) if column.lists else _text(value)


def _part(record: Any, name: str) -> list[Any]:
    """The value under a name, or under a dotted one in nested objects; none where it is absent."""
    if not isinstance(record, dict):
        return []
    first, _, rest = name.partition(".")
    return [record[name]] if name in record else _part(record.get(first), rest) if rest else []


def _text(value: Any) -> str | None:
    """A text or a number as text; NaN is null."""
    if isinstance(value, str):
        value.encode()  # raises for half of a pair that stands for one character
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise ValueError(f"{json.dumps(value, default=str)[:SHOWN]} is not a text")
    return None if value is None or not math.isfinite(value) else str(value)


def _list(value: Any) -> list[str | None] | None:
    """A list of texts; one text becomes a list of one."""
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str | None) for part in values):
        raise ValueError(f"{json.dumps(value, default=str)[:SHOWN]} is not a text or a list of texts")
    return [_text(part) for part in values]


def _parquet(path: Path, columns: Mapping[str, Column]) -> Table:
    scan, schema = pl.scan_parquet(path, glob=False), _schema_of(path)
    height = scan.select(pl.len()).collect().item()
    if not height:
        raise MitigateError(f"{path} is empty: it has columns and no rows")
    names = (str(name) for column in columns.values() for name in column.names)
    needed = list(dict.fromkeys(name if name in schema else name.partition(".")[0] for name in names))

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        records = scan.select(needed).slice(block.first - 1, SLICE).collect().iter_rows(named=True)
        return _of_records(path, columns, enumerate(records, block.first), counts)

    return Table(
        lambda: (Block(start + 1, min(1.0, (start + SLICE) / height)) for start in range(0, height, SLICE)), frame
    )


def _delimited(
    path: Path, wanted: Mapping[str, Column], separator: str, widths: Container[int] | None, remedy: str
) -> Table:
    number, line = lines_of(next(text_blocks(path)), Counts()).row(0)
    names = _split(line, separator)
    between = {",": "a comma", "\t": "a tab", " ": "a space"}.get(separator, repr(separator))
    places = {name: int(one.names[0]) - 1 for name, one in wanted.items() if isinstance(one.names[0], int)}
    header = 0 if len(places) == len(wanted) else number
    if header:
        layout = Layout("table", [name.strip() for name in names], separator)
        there = _there(path, layout, wanted, remedy)
        places = {name: layout.names.index(str(one.names[0])) for name, one in there.items()}
    elif len(names) <= max(places.values()) or (widths is not None and len(names) not in widths):
        raise MitigateError(
            f"{path}: expected {', '.join(f'{name} in column {place + 1}' for name, place in places.items())}, "
            f"separated by {between}; its first line has {counted(len(names), 'column')}: {names[0][:60]}"
        )
    expected = f"expected {len(names)} separated by {between}"

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        found, wrong = _fields(block, separator, len(names), counts)
        report(path, ((row, f"{counted(num, 'column')}, {expected}") for row, num in wrong if row != header), counts)
        rows = found.select("row", *(pl.col(f"{place}").alias(name) for name, place in places.items()))
        return _with_lists(path, rows.filter(pl.col("row") != header), wanted, counts)

    return Table(lambda: text_blocks(path), frame)


def _fields(block: Block, separator: str, width: int, counts: Counts) -> tuple[pl.DataFrame, list[tuple[int, int]]]:
    """The records of a block with this width: row, 0, 1, ...; and the number of columns of other lines."""
    names = list(map(str, range(width)))
    if b'"' in block.content:
        return _quoted(lines_of(block), separator, names, counts)
    lines = lines_of(block, counts)
    found = pl.col("text").str.count_matches(separator, literal=True) + 1
    fields = lines.filter(found == width).select("row", pl.col("text").str.split_exact(separator, width - 1))
    wrong = lines.filter(found != width).select("row", found)
    return fields.select("row", pl.col("text").struct.rename_fields(names).struct.unnest()), wrong.rows()


def _quoted(
    lines: pl.DataFrame, separator: str, names: Sequence[str], counts: Counts
) -> tuple[pl.DataFrame, list[tuple[int, int]]]:
    """The same of a block with double quotes, whose fields may have separators and line ends; a quote within a field,
    and one that is not closed, is an ordinary character."""
    numbers, texts = lines["row"].to_list(), lines["text"].to_list()
    rows, wrong, at = list[tuple](), list[tuple[int, int]](), 0
    while at < len(texts):
        line, used = texts[at], 1
        fields = line.split(separator)
        if '"' in line:
            last = min(at + LINES_OF_A_FIELD, len(texts))
            record = (f"{texts[place]}\n" for place in range(at, last))  # islice would pass over all lines before
            reader = csv.reader(record, delimiter=separator, strict=True)
            try:
                found = next(reader)
            except csv.Error:
                found = []
            if len(found) == len(names) or (reader.line_num == 1 and found):
                fields, used = found, reader.line_num
            else:
                fields = [QUOTED.sub(lambda field: field[1].replace('""', '"'), field) for field in fields]
        if used == 1 and not line.strip():
            counts["noted", BLANK] += 1
        elif len(fields) == len(names):
            rows.append((numbers[at], *fields))
        else:
            wrong.append((numbers[at], len(fields)))
        at += used
    return pl.DataFrame(rows, {"row": pl.UInt32, **dict.fromkeys(names, pl.String)}, orient="row"), wrong


def _with_lists(path: Path, rows: pl.DataFrame, columns: Mapping[str, Column], counts: Counts) -> pl.DataFrame:
    """The rows with columns of lists in JSON as lists; an empty cell is null. Rows with another cell are bad lines."""
    faults: dict[int, str] = {}
    for name in [name for name in rows.columns if name in columns and columns[name].lists]:
        values: list[list[str | None] | None] = []
        for row, cell in zip(rows["row"], rows[name], strict=True):
            try:
                values.append(_list(json.loads(cell)) if cell.strip() else None)
            except (ValueError, RecursionError):
                values.append(None)
                faults[row] = f'{name} {cell[:SHOWN]!r} is not a list of texts such as ["a", "b"]'
        rows = rows.with_columns(pl.Series(name, values, pl.List(pl.String)))
    report(path, faults.items(), counts)
    return rows.filter(~pl.col("row").is_in(list(faults))) if faults else rows
