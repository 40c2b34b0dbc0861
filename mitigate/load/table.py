"""Columns of a table of any size: CSV, TSV and JSON lines, gzipped or plain, JSON arrays, and Parquet, by the file's
ending; other files by their first lines. One reader for all files that have columns, so that a quote, a null, a number
and a list mean the same in each."""

import csv
import json
import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import (
    BLANK,
    LINES_OF_A_FIELD,
    Block,
    Counts,
    Faults,
    OnBadLine,
    describe,
    lines_of,
    not_opened,
    report,
    text_blocks,
    without_blanks,
)
from mitigate.words.outside_text import counted

Form = Literal["Parquet", "JSON lines", "JSON", "table", "lines"]
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
TABLES = (*SEPARATORS, *JSON_LINES, ".json", ".parquet")
LOOKED_AT = 200  # lines, or records, at the beginning of a file
SHOWN = 80  # characters of a line in a message
SLICE = 200_000  # rows of a Parquet file that one chunk is made of
OPEN = "a double quote opens a field and is not closed"
QUOTED = re.compile(r'(?s)^"((?:[^"]|"")*)"$')
TEXTS = (pl.String, pl.Categorical, pl.Enum, pl.Decimal, pl.Null)
USUAL = frozenset(
    [
        *("id", "text", "texts", "sentence", "sentences", "statement", "statements", "generic_sentence"),
        *("sent1", "sent2", "post", "comment", "tweet", "body", "content", "prompt", "generation", "response"),
        *("label", "labels", "target", "targets", "category", "score", "split", "title", "term", "event"),
        *("head", "relation", "tail", "subject", "predicate", "object", "source"),
    ]
)
"""Names of columns, two of which show that the first line of a text file is one of names."""

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
    def shown(self) -> str:
        """The kind of file and its columns, for a message: "JSON lines with the columns prompt, generation"."""
        kinds = {"\t": "TSV", ",": "CSV"}
        kind = (
            kinds.get(self.separator, f"a table (separator {self.separator!r})") if self.form == "table" else self.form
        )
        return f"{kind} with the columns {', '.join(self.names)[:200] or '(none)'}"


class Slice(NamedTuple):
    """A block of a Parquet file."""

    first: int  # row, from 1
    share: float  # of the file read so far


def layout_of(path: Path, content: bytes | None = None) -> Layout:
    """The layout of a file. content: of standard input, in place of the file's.

    Raises MitigateError for a file that is missing, empty, or can be neither text nor Parquet."""
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending == ".parquet":
        return Layout("Parquet", list(_paths(_schema_of(path))))
    start = next(text_blocks(path, content=content)).content.decode("utf-8", errors="replace")
    lines = [line.removesuffix("\r") for line in start.split("\n") if line.strip()][:LOOKED_AT]
    if not lines:
        raise MitigateError(f"{path} is empty")
    first = lines[0].lstrip()
    if ending not in JSON_LINES and (first.startswith("[{") or (ending == ".json" and first[0] == "[")):
        return Layout("JSON", _names(_array(path, content)))
    if ending in (*JSON_LINES, ".json") or first.startswith('{"'):
        return Layout("JSON lines", _names(map(_parsed, lines)))
    separator = SEPARATORS.get(ending) or next((one for one in "\t,;|" if _is_table(lines, one)), None)
    if separator is None:
        return Layout("lines", [])
    if separator not in first:
        separator = max(separator + "\t,;|", key=first.count)
    return Layout("table", _split(first, separator), separator)


def _is_table(lines: Sequence[str], separator: str) -> bool:
    """Return whether usual names are in the first line, or most lines have as many tabs."""
    names = [name.strip().lower() for name in _split(lines[0], separator)]
    as_wide = sum(line.count("\t") == len(names) - 1 for line in lines)
    is_even = separator == "\t" and len(names) > 1 and as_wide > len(lines) / 2
    return is_even or len(USUAL.intersection(names)) > 1 or (len(names) > 1 and set(names) <= USUAL)


def _split(line: str, separator: str) -> list[str]:
    return (
        next(csv.reader([line.replace("\r", " ")], delimiter=separator), [""]) if '"' in line else line.split(separator)
    )


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
    """All keys that the first records have."""
    found = (_paths(record) for record in islice(records, LOOKED_AT) if isinstance(record, dict))
    return list(dict.fromkeys(name for names in found for name in names))


def _parsed(text: str) -> Any:
    """The value of a line of JSON, or the ValueError with its fault."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return ValueError(f"not JSON ({error.msg} at column {error.colno})")
    except (RecursionError, ValueError) as error:  # brackets within brackets, a number of thousands of digits
        return ValueError(f"not JSON that can be read ({error})")


def _array(path: Path, content: bytes | None) -> list[Any]:
    """The values of a JSON array, which is read whole."""
    whole = b"".join(block.content for block in text_blocks(path, content=content))
    try:
        return list(json.loads(whole))
    except (ValueError, TypeError, RecursionError) as error:
        raise MitigateError(f"{path} is not a JSON array ({error}); correct it, or save it as JSON lines") from error


def open_table(
    path: Path,
    columns: Mapping[str, Place | Column],
    separator: str | None = None,
    widths: Container[int] | None = None,
    *,
    stray_quotes: bool = False,
    layout: Layout | None = None,
    remedy: str = "",
    content: bytes | None = None,
) -> Table:
    """The columns of a file in any layout.

    separator: of a text file, in place of the one found. widths: the allowed numbers of columns of a text file.
    stray_quotes: whether a double quote that opens a field and is not closed is an ordinary character, as in resources
    that are published without quoting, and not a bad line. layout: the file's layout, if it is known. remedy: the end
    of the message for a missing column. content: the content in place of the file's. Raises MitigateError for a file
    that is not a table, and for columns that it does not have."""
    found = layout or layout_of(path, content)
    wanted = {name: one if isinstance(one, Column) else Column((one,)) for name, one in columns.items()}
    if found.form in ("table", "lines"):
        return _delimited(path, wanted, separator or found.separator, widths, stray_quotes, remedy, content)
    if separator:
        raise MitigateError(f"{path} is {found.shown}; expected lines '{_between(separator).join(columns)}'")
    there = _there(path, found, wanted, remedy)
    if found.form == "Parquet":
        return _parquet(path, there)

    if found.form == "JSON":
        content = "\n".join(map(json.dumps, _array(path, content))).encode()
        path = path.with_name(path.name.removesuffix(".gz"))

    def frame(block: Any, counts: Counts) -> pl.DataFrame:
        lines = without_blanks(lines_of(block), counts)
        return _of_records(path, there, ((row, _parsed(text), text) for row, text in lines.iter_rows()), counts)

    return Table(lambda: text_blocks(path, content=content), frame)


def read_table(
    path: Path, columns: Mapping[str, Place | Column], on_bad_line: OnBadLine | None = None, **how: Any
) -> tuple[pl.DataFrame, list[str]]:
    """All rows of a file in memory, and a sentence for each oddity. how: as open_table has it.

    Raises MitigateError as open_table does, and for bad lines, unless on_bad_line is "skip"; None: there is no such
    setting."""
    rows, counts = read_all(open_table(path, columns, **how))
    return rows, describe(counts, on_bad_line)


def read_all(table: Table) -> tuple[pl.DataFrame, Counts]:
    """All rows of a table in memory, and the counts of faults and oddities."""
    counts = Counts()
    frames = [table.frame(block, counts) for block in table.blocks()]
    return pl.concat(frames), +counts


def open_lines(path: Path, content: bytes | None = None) -> Table:
    """A text file whose unchanged lines are the only column, `statement`."""

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        return without_blanks(lines_of(block), counts).rename({"text": "statement"})

    return Table(lambda: text_blocks(path, content=content), frame)


def _there(path: Path, layout: Layout, wanted: Mapping[str, Column], remedy: str) -> dict[str, Column]:
    """The wanted columns under the file's own names, with its capitals. Raises MitigateError where one is missing, or
    stands twice."""
    lower: dict[str, str] = {}
    for name in layout.names:
        parts = name.split(".") if layout.form != "table" else [name]
        for end in range(len(parts), 0, -1):  # a nested column may itself be named: it is then of the wrong type
            lower.setdefault(".".join(parts[:end]).lower(), ".".join(parts[:end]))
    found: dict[str, Column] = {}
    for name, column in wanted.items():
        if names := tuple(lower[str(one).lower()] for one in column.names if str(one).lower() in lower):
            found[name] = replace(column, names=names)
            if (num := layout.names.count(names[0])) > 1:
                raise MitigateError(f"{path} has {num} columns named {names[0]}, expected one; rename the others")
    absent = [str(one.names[0]) for name, one in wanted.items() if name not in found and not one.optional]
    if absent and (layout.names or layout.form == "Parquet"):
        names_of_file = ("its first line is " + " | ".join(layout.names))[:220]
        if layout.form != "table":
            names_of_file = f"it is {layout.shown}"
        raise MitigateError(f"{path} has no column {', '.join(absent)}; {names_of_file}{remedy}")
    return found if layout.names else dict(wanted)


def _of_records(
    path: Path, columns: Mapping[str, Column], records: Iterable[tuple[int, Any, str]], counts: Counts
) -> pl.DataFrame:
    """The frame of JSON values with their numbers and texts; those that are a ValueError, not an object, or without a
    wanted text are bad lines."""
    needed = [one for one in columns.values() if not one.optional]
    expected = "{" + ", ".join(f'"{one.names[0]}": {"[...]" if one.lists else "..."}' for one in needed) + "}"
    rows, faults = list[tuple](), Faults()
    for number, record, text in records:
        try:
            rows.append((number, *_values(record, columns)))
        except ValueError as error:
            faults.append((number, f"{error}; found {text[:SHOWN]!r}, expected {expected}"))
    report(path, faults, counts)
    kinds = {name: pl.List(pl.String) if one.lists else pl.String for name, one in columns.items()}
    return pl.DataFrame(rows, {"row": pl.UInt32, **kinds}, orient="row")


def _values(record: Any, columns: Mapping[str, Column]) -> Iterator[Any]:
    if isinstance(record, ValueError):
        raise record
    if isinstance(record, str) and len(columns) == 1:  # lines of texts alone
        yield _text(record)
        return
    if not isinstance(record, dict):
        raise ValueError("not an object")
    for column in columns.values():
        found = next((part for name in column.names for part in _part(record, str(name))), KeyError)
        if found is KeyError and not column.optional:
            plain = [str(name) for name in column.names if "." not in str(name)] or map(str, column.names)
            raise ValueError(f"no {' or '.join(map(repr, plain))}")
        value = None if found is KeyError else found
        yield as_list(value) if column.lists else _text(value)


def _part(record: Any, name: str) -> list[Any]:
    """The value under a name, or under a dotted one in nested objects; none where it is absent."""
    if not isinstance(record, dict):
        return []
    first, _, rest = name.partition(".")
    return [record[name]] if name in record else _part(record.get(first), rest) if rest else []


def _text(value: Any) -> str | None:
    """A text or a number as text; NaN is null. Raises ValueError for anything else."""
    if isinstance(value, str):
        value.encode()  # raises for half of a pair that stands for one character
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise ValueError(f"{json.dumps(value)[:SHOWN]} is not a text")
    return None if value is None or not math.isfinite(value) else str(value)


def as_list(value: Any) -> list[str | None] | None:
    """A list of texts; one text becomes a list of one."""
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str | None) for part in values):
        raise ValueError(f"{json.dumps(value)[:SHOWN]} is not a text or a list of texts")
    return [_text(part) for part in values]


def _parquet(path: Path, columns: Mapping[str, Column]) -> Table:
    """The columns of a Parquet file. Raises MitigateError for one of another type than text, number or list."""
    schema, scan = _schema_of(path), pl.scan_parquet(path, glob=False)
    height = scan.select(pl.len()).collect().item()
    if not height:
        raise MitigateError(f"{path} is empty: it has columns and no rows")
    as_text = [_cell(path, schema, column).alias(name) for name, column in columns.items()]

    def frame(piece: Slice, counts: Counts) -> pl.DataFrame:
        faults = Faults()
        try:
            rows = scan.slice(piece.first - 1, SLICE).select(as_text).collect().with_row_index("row", piece.first)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise MitigateError(f"{path} cannot be read from row {piece.first:,} on: {error}") from error
        rows = _with_lists(rows, columns, faults)
        report(path, faults, counts)
        return rows

    return Table(
        lambda: (Slice(start + 1, min(1.0, (start + SLICE) / height)) for start in range(0, height, SLICE)), frame
    )


def _cell(path: Path, schema: Mapping[str, Any], column: Column) -> pl.Expr:
    """A column, or the part of a nested one, as text or a list of texts."""
    name = str(column.names[0])
    first, *parts = [name] if name in schema else name.split(".")
    cell, kind = pl.col(first), schema[first]
    for part in parts:
        cell, kind = cell.struct.field(part), dict(kind)[part]
    if column.lists and isinstance(kind, pl.List | pl.Array) and kind.inner in (pl.String, pl.Null, pl.Categorical):
        return cell.cast(pl.List(pl.String))
    if kind.is_numeric() or kind.base_type() in TEXTS:
        return (cell.fill_nan(None) if kind.is_float() else cell).cast(pl.String)
    raise MitigateError(
        f"{path}: the column {name} is {kind}, expected {'lists of texts' if column.lists else 'texts'}"
    )


def _with_lists(rows: pl.DataFrame, columns: Mapping[str, Column], faults: Faults) -> pl.DataFrame:
    """The rows with columns of lists in JSON as lists; an empty cell is null. Rows with another cell are faults."""
    wrong: list[int] = []
    for name in [name for name, dtype in rows.schema.items() if dtype == pl.String and columns[name].lists]:
        values: list[list[str | None] | None] = []
        for row, cell in zip(rows["row"], rows[name], strict=True):
            try:
                values.append(as_list(json.loads(cell)) if cell and cell.strip() else None)
            except (ValueError, RecursionError):
                values.append(None)
                wrong.append(row)
                faults.append((row, f'{name} {cell[:SHOWN]!r} is not a list of texts such as ["a", "b"]'))
        rows = rows.with_columns(pl.Series(name, values, pl.List(pl.String)))
    return rows.filter(~pl.col("row").is_in(wrong)) if wrong else rows


def _between(separator: str) -> str:
    return {"\t": "<TAB>"}.get(separator, separator)


def _delimited(
    path: Path,
    wanted: Mapping[str, Column],
    separator: str,
    widths: Container[int] | None,
    stray_quotes: bool,
    remedy: str,
    content: bytes | None,
) -> Table:
    number, line = without_blanks(lines_of(next(text_blocks(path, content=content))), Counts()).row(0)
    names = _split(line, separator)
    between = {",": "a comma", "\t": "a tab", " ": "a space"}.get(separator, repr(separator))
    if widths is not None and len(names) not in widths:
        raise MitigateError(
            f"{path}: expected {', '.join(wanted)}, separated by {between}; its first line has "
            f"{counted(len(names), 'column')}: {names[0][:60]}"
        )
    places = _places(path, wanted, names, between, remedy)
    expected = f"expected {len(names)} separated by {between}"
    header = number if any(isinstance(name, str) for one in wanted.values() for name in one.names) else 0

    def frame(block: Block, counts: Counts) -> pl.DataFrame:
        found, faults = _fields(block, separator, len(names), stray_quotes, counts, expected)
        rows = found.filter(pl.col("row") != header) if block.first <= header else found
        rows = rows.select("row", *(pl.col(f"{place}").alias(name) for name, place in places.items()))
        rows = _with_lists(rows, wanted, faults)
        report(path, [fault for fault in faults if fault[0] != header], counts)
        return rows

    return Table(lambda: text_blocks(path, quoted=True, content=content), frame)


def _fields(
    block: Block, separator: str, width: int, stray_quotes: bool, counts: Counts, expected: str
) -> tuple[pl.DataFrame, Faults]:
    """The records of a block with this width: row, 0, 1, ...; and the faults of other lines."""
    lines = lines_of(block)
    if b'"' in block.content:
        return _quoted(lines, separator, width, stray_quotes, counts, expected)
    lines = without_blanks(lines, counts)
    found = pl.col("text").str.count_matches(separator, literal=True) + 1
    wrong = lines.filter(found != width).select("row", found)
    fields = lines.filter(found == width).select("row", pl.col("text").str.split_exact(separator, width - 1))
    names = list(map(str, range(width)))
    faults = [(row, f"{counted(num, 'column')}, {expected}") for row, num in wrong.iter_rows()]
    return fields.select("row", pl.col("text").struct.rename_fields(names).struct.unnest()), faults


def _quoted(
    lines: pl.DataFrame, separator: str, width: int, stray_quotes: bool, counts: Counts, expected: str
) -> tuple[pl.DataFrame, Faults]:
    """The records of a block with double quotes, one by one. A quote within a field is an ordinary character."""
    numbers, texts = lines["row"].to_list(), lines["text"].to_list()
    rows, faults, at = list[tuple](), Faults(), 0
    while at < len(texts):
        line, fields, used, is_open = texts[at], texts[at].split(separator), 1, False
        if '"' in line:
            record = (f"{one}\n" for one in islice(texts, at, at + LINES_OF_A_FIELD))
            reader = csv.reader(record, delimiter=separator, strict=True)
            try:
                found = next(reader)
            except csv.Error:
                found = []
            if len(found) == width or (reader.line_num == 1 and found):
                fields, used = found, reader.line_num
            else:
                fields = [QUOTED.sub(lambda field: field[1].replace('""', '"'), field) for field in fields]
                is_open = line.count('"') % 2 == 1 and not stray_quotes
        if used == 1 and not line.strip():
            counts["noted", BLANK] += 1
        elif len(fields) == width and not is_open:
            rows.append((numbers[at], *fields))
        else:
            faults.append((numbers[at], OPEN if is_open else f"{counted(len(fields), 'column')}, {expected}"))
        at += used
    schema = {"row": pl.UInt32, **dict.fromkeys(map(str, range(width)), pl.String)}
    return pl.DataFrame(rows, schema, orient="row"), faults


def _places(
    path: Path, wanted: Mapping[str, Column], names: Sequence[str], separator: str, remedy: str
) -> dict[str, int]:
    """The place of each column, from 0."""
    numbers = {name: int(one.names[0]) - 1 for name, one in wanted.items() if isinstance(one.names[0], int)}
    if len(numbers) < len(wanted):
        there = _there(path, Layout("table", [name.strip().lower() for name in names]), wanted, remedy)
        return {name: [name.strip().lower() for name in names].index(str(one.names[0])) for name, one in there.items()}
    if any(not 0 <= place < len(names) for place in numbers.values()):
        wished = ", ".join(f"{name} in column {place + 1}" for name, place in numbers.items())
        raise MitigateError(
            f"{path}: expected {wished}, separated by {separator}; its first line has {len(names)}: {names[0][:60]}"
        )
    return numbers
