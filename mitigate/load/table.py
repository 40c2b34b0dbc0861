"""Columns of a table of any size: CSV, TSV and JSON lines, gzipped or plain, and Parquet."""

import csv
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import LONGEST, TOO_LONG, check_once, not_opened, parsed
from mitigate.load.stream import Block, Met, bad, split, text_blocks
from mitigate.texts import counted

SLICE = 200_000  # rows of a Parquet file that one chunk is made of
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
JSON_LINES = (".jsonl", ".ndjson", ".json")
UNREADABLE = "\N{REPLACEMENT CHARACTER}"  # in the place of what is not UTF-8

Columns = Mapping[str, str | int]
"""What we call a column -> its name in the file, or its place, from 1, in a file without a line of names."""


@dataclass(frozen=True)
class Table:
    """How a file's columns are read: its blocks, and a frame (row, and the columns wanted, as text) of each."""

    blocks: Callable[[], Iterator]
    frame: Callable[..., pl.DataFrame]  # of a block; counts what it meets


class Slice(NamedTuple):
    """A block of a Parquet file."""

    first: int
    share: float


def open_table(
    path: Path, columns: Columns, separator: str | None = None, widths: Container[int] | None = None
) -> Table:
    """The columns of a file, known by its ending.

    separator: of a text file whose ending does not show it. widths: how many columns it may have. Raises MitigateError
    for another ending, and for columns that the file does not have."""
    ending = _ending(path)
    if ending == ".parquet":
        return _parquet(path, columns)
    if ending in JSON_LINES:
        return Table(lambda: text_blocks(path), lambda block, met: _json_lines(path, columns, block, met))
    separator = separator or SEPARATORS.get(ending)
    if separator is None:
        allowed = ", ".join((*SEPARATORS, *JSON_LINES, ".parquet"))
        raise MitigateError(f"{path}: the ending {ending!r} says no format; allowed: {allowed}, and .gz behind")
    return _delimited(path, columns, separator, widths)


def names_of(path: Path) -> list[str]:
    """What a table calls its columns, in lower case but for those of Parquet and JSON lines; of JSON lines what the
    first line has. A text file without a line of names gives its first row."""
    ending = _ending(path)
    if ending == ".parquet":
        return _schema(path).names()
    if ending in JSON_LINES:
        try:
            record = parsed(_first_line(path))
        except ValueError:  # said when the lines are read
            return []
        return list(record) if isinstance(record, dict) else []
    return [name.strip().lower() for name in _fields(path, SEPARATORS.get(ending, "\t"))]


def open_lines(path: Path, column: str) -> Table:
    """A text file whose lines are the one column."""

    def frame(block: Block, met: Met) -> pl.DataFrame:
        return _frame(list(_filled(block, _decoded(path, block, met), met)), {column: 1})

    return Table(lambda: text_blocks(path), frame)


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _first_line(path: Path) -> str:
    line = next(text_blocks(path)).content.partition(b"\n")[0].removesuffix(b"\r")
    return line.decode("utf-8", errors="replace")


def _fields(path: Path, separator: str) -> list[str]:
    """Those of a text file's first line."""
    line = _first_line(path)
    try:
        return next(csv.reader([line]), []) if separator == "," else line.split(separator)
    except csv.Error as error:
        raise MitigateError(f"{path}:1: {error}") from error


def _delimited(path: Path, columns: Columns, separator: str, widths: Container[int] | None) -> Table:
    quoted = separator == ","
    names = _fields(path, separator)
    found = "a comma" if quoted else "a tab"
    if widths is not None and len(names) not in widths:
        raise MitigateError(
            f"{path}: expected {', '.join(columns)}, separated by {found}; its first line has "
            f"{counted(len(names), 'column')}: {names[0][:60]}"
        )
    places, headed = _places(path, columns, [name.strip().lower() for name in names], found)

    def frame(block: Block, met: Met) -> pl.DataFrame:
        texts = _decoded(path, block, met)
        records = _quoted(path, block, texts, met) if quoted else _plain(block, texts, separator, met)
        rows: list[tuple] = []
        for number, fields in records:
            if headed and number == 1:
                continue
            if len(fields) == len(names):
                rows.append((number, *(fields[place] for place in places.values())))
            else:
                fault = f"{counted(len(fields), 'column')}, expected {len(names)} separated by {found}"
                bad(met, [f"{path}:{number}: {fault}"])
        return _frame(rows, places)

    return Table(lambda: text_blocks(path, quoted), frame)


def _places(path: Path, columns: Columns, names: Sequence[str], separator: str) -> tuple[dict[str, int], bool]:
    """Where each column stands, from 0, and whether the file's first line names them."""
    if all(isinstance(given, int) for given in columns.values()):
        places = {name: int(given) - 1 for name, given in columns.items()}
        if any(not 0 <= place < len(names) for place in places.values()):
            wanted = ", ".join(f"{name} in column {place + 1}" for name, place in places.items())
            raise MitigateError(
                f"{path}: expected {wanted}, separated by {separator}; its first line has {len(names)}: {names[0][:60]}"
            )
        return places, False
    absent = [str(given) for given in columns.values() if str(given).lower() not in names]
    if absent and any(UNREADABLE in name for name in names):
        raise MitigateError(f"{path} has no column {', '.join(absent)}; its first line is not UTF-8. Save it as UTF-8")
    if absent:
        raise MitigateError(
            f"{path} has no column {', '.join(absent)}; its first line is {' | '.join(names)[:200]}. Name its columns "
            f"with data.columns={{{', '.join(f'{name}: ...' for name in columns)}}}, by number, from 1, where the file "
            "has no line of names"
        )
    check_once(path, [str(given).lower() for given in columns.values()], names)
    return {name: names.index(str(given).lower()) for name, given in columns.items()}, True


def _decoded(path: Path, block: Block, met: Met) -> list[str | None]:
    """The block's lines as text, None for those that are not UTF-8 or too long."""
    lines = split(block, met)
    if max(map(len, lines)) <= LONGEST:
        with suppress(UnicodeDecodeError):
            return list(b"\n".join(lines).decode("utf-8").split("\n"))
    texts: list[str | None] = []
    for number, line in enumerate(lines, start=block.first):
        try:
            texts.append(None if len(line) > LONGEST else line.decode("utf-8"))
            fault = TOO_LONG
        except UnicodeDecodeError as error:
            texts.append(None)
            fault = f"not UTF-8 ({error.reason} at byte {error.start})"
        if texts[-1] is None:
            bad(met, [f"{path}:{number}: {fault}"])
    return texts


def _filled(block: Block, texts: Sequence[str | None], met: Met) -> Iterator[tuple[int, str]]:
    """The lines with content, with their numbers; blank ones are noted."""
    for number, text in enumerate(texts, start=block.first):
        if text and text.strip():
            yield number, text
        elif text is not None:
            met["noted", "blank lines"] += 1


def _plain(block: Block, texts: Sequence[str | None], separator: str, met: Met) -> Iterator[tuple[int, list[str]]]:
    return ((number, text.split(separator)) for number, text in _filled(block, texts, met))


def _quoted(path: Path, block: Block, texts: Sequence[str | None], met: Met) -> Iterator[tuple[int, list[str]]]:
    """CSV records with the number of their first line; a field may hold line ends within quotes."""
    reader = csv.reader((f"{text or ''}\n" for text in texts), strict=True)
    while True:
        number = block.first + reader.line_num
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            others = block.first + reader.line_num - number - 1
            bad(met, [f"{path}:{number}: {error}" + (f", and {others:,} lines behind it are lost" if others else "")])
            continue
        if fields and any(field.strip() for field in fields):
            yield number, fields


def _json_lines(path: Path, columns: Columns, block: Block, met: Met) -> pl.DataFrame:
    rows: list[tuple] = []
    for number, text in _filled(block, _decoded(path, block, met), met):
        try:
            record = parsed(text)
        except ValueError as error:
            bad(met, [f"{path}:{number}: {error}"])
            continue
        values = [record.get(given) if isinstance(record, dict) else None for given in columns.values()]
        if all(isinstance(value, str | int | float) for value in values):
            rows.append((number, *map(str, values)))
        else:
            wanted = ", ".join(str(given) for given in columns.values())
            bad(met, [f"{path}:{number}: expected an object with texts {wanted}, found {text[:60]!r}"])
    return _frame(rows, columns)


def _parquet(path: Path, columns: Columns) -> Table:
    present = _schema(path).names()
    scan = pl.scan_parquet(path, glob=False)
    height = scan.select(pl.len()).collect().item()
    if absent := [str(given) for given in columns.values() if given not in present]:
        raise MitigateError(f"{path} has no column {', '.join(absent)}, but {', '.join(present)}; see data.columns")
    if not height:
        raise MitigateError(f"{path} is empty: it has columns and no rows")

    def frame(piece: Slice, met: Met) -> pl.DataFrame:
        texts = [pl.col(str(given)).cast(pl.String).alias(name) for name, given in columns.items()]
        rows = scan.slice(piece.first - 1, SLICE).select(texts).collect().with_row_index("row", piece.first)
        too_long = pl.any_horizontal((pl.exclude("row").str.len_bytes() > LONGEST).fill_null(False))
        bad(met, (f"{path}:{row}: {TOO_LONG}" for row in rows.filter(too_long)["row"]))
        return rows.filter(~too_long)

    return Table(
        lambda: (Slice(start + 1, min(1.0, (start + SLICE) / height)) for start in range(0, height, SLICE)), frame
    )


def _schema(path: Path) -> pl.Schema:
    try:
        return pl.scan_parquet(path, glob=False).collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        damaged = MitigateError(f"{path} is no Parquet file that can be read: {error}")
        raise not_opened(path, error) or damaged from error


def _frame(rows: list[tuple], names: Mapping[str, object]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"row": pl.UInt32, **dict.fromkeys(names, pl.String)}, orient="row")
