"""Texts of one's own to be labelled: the lines of a text file or of standard input, or a column of a CSV, TSV, JSON
lines or Parquet file; all but the last also packed (.gz). A text of a table may have several lines."""

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.load.files import LoadedStatements
from mitigate.load.lines import not_opened, parsed, read_whole
from mitigate.load.table import JSON_LINES
from mitigate.texts import counted

STANDARD_INPUT = "-"
NAMES = ("statement", "text", "sentence")  # of a column that is taken without being named
SEPARATORS = {".csv": ",", ".tsv": "\t"}
TABLES = (*SEPARATORS, *JSON_LINES, ".parquet")

Row = tuple[int, str | None]
"""The line that a text begins in, from 1, of a Parquet file its row; and the text."""


def load(path: str, column: str | None = None) -> LoadedStatements:
    """The texts of a file, known by its ending (any other than those of TABLES: a text a line), or of standard input
    ("-"): row, statement. Empty ones are left out and counted.

    column: of a table; None: `statement`, `text` or `sentence`, or the only one. Raises MitigateError for a file that
    cannot be read, is not UTF-8 or has no text, and for a column that is not there."""
    try:
        rows = list(_rows(path, column))
    except (OSError, csv.Error, pl.exceptions.PolarsError) as error:
        raise not_opened(Path(path), error) or MitigateError(f"{path} cannot be read: {error}") from error
    kept = [(row, text) for row, text in rows if text and text.strip()]
    if not kept:
        raise MitigateError(f"{'standard input' if path == STANDARD_INPUT else path} has no text to label")
    left_out = len(rows) - len(kept)
    notices = [f"{counted(left_out, 'empty text')} left out; `row` counts them too"] if left_out else []
    return LoadedStatements(pl.DataFrame(kept, {"row": pl.UInt32, "statement": pl.String}, orient="row"), notices)


def _rows(path: str, column: str | None) -> Iterator[Row]:
    ending = Path(path.lower().removesuffix(".gz")).suffix
    if ending == ".parquet":
        frame = pl.read_parquet(path, glob=False)
        texts = frame[_column(path, frame.columns, column)].cast(pl.String)
        return ((row, text) for row, text in enumerate(texts, start=1))
    content = _decoded(path)
    if ending in SEPARATORS:
        return _of_table(path, content, SEPARATORS[ending], column)
    if ending in JSON_LINES:
        return _of_json(path, content, column)
    if column is not None:
        raise MitigateError(f"recipe.column={column}: {path} has no columns; tables end in {', '.join(TABLES)}")
    return ((row, line) for row, line in enumerate(_lines(content), start=1))


def _decoded(path: str) -> str:
    raw = sys.stdin.buffer.read() if path == STANDARD_INPUT else read_whole(Path(path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise MitigateError(f"{path}:{line}: not UTF-8 ({error.reason}); save the file as UTF-8") from error


def _lines(content: str) -> list[str]:
    return [line.removesuffix("\r") for line in content.removesuffix("\n").split("\n")]


def _of_table(path: str, content: str, separator: str, column: str | None) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    names = next(reader, [])
    if not names:
        raise MitigateError(f"{path} has no names of columns: its first line is empty")
    place = names.index(_column(path, names, column))
    first = reader.line_num + 1
    for fields in reader:
        if fields and len(fields) != len(names):
            raise MitigateError(f"{path}:{first}: {counted(len(fields), 'column')}, expected {len(names)}")
        yield first, fields[place] if fields else None
        first = reader.line_num + 1


def _of_json(path: str, content: str, column: str | None) -> Iterator[Row]:
    for row, line in enumerate(_lines(content), start=1):
        if not line.strip():
            yield row, None
            continue
        try:
            found = parsed(line)
        except ValueError as error:
            raise MitigateError(f"{path}:{row}: {error}") from error
        text = found[_column(f"{path}:{row}", list(found), column)] if isinstance(found, dict) else found
        if not isinstance(text, str | None):
            raise MitigateError(f"{path}:{row}: expected a text, found {line[:60]}")
        yield row, text


def _column(path: str, names: list[str], wanted: str | None) -> str:
    """The column of the texts."""
    if wanted in names:
        return str(wanted)
    if wanted is not None:
        raise MitigateError(
            f"recipe.column={wanted}: {path} has no such column, but {', '.join(names)}{did_you_mean(wanted, names)}"
        )
    found = next((name for name in NAMES if name in names), names[0] if len(names) == 1 else None)
    if found is None:
        raise MitigateError(f"{path} has the columns {', '.join(names)}; name that of the texts: recipe.column=NAME")
    return found
