"""Texts of one's own to be labelled: the lines of a text file or of standard input, or a column of a CSV, TSV, JSON or
Parquet file; all but the last also packed (.gz). A text of a table may have several lines."""

import sys
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.load.files import LoadedStatements
from mitigate.load.layout import layout_of
from mitigate.load.lines import OnBadLine, check
from mitigate.load.sentences import open_texts
from mitigate.load.stream import BLANK, describe
from mitigate.load.table import read_all
from mitigate.words.texts import counted

STANDARD_INPUT = "-"


def load(path: str, column: str | None = None, on_bad_line: OnBadLine = "error") -> LoadedStatements:
    """The texts of a file, or of standard input ("-"): row, statement. Empty ones are left out and counted.

    column: of a table; None: `statement`, `text` or `sentence`, or the only one. Raises MitigateError for a file that
    cannot be read or has no text, for a column that is not there, and, unless on_bad_line is "skip", for bad lines."""
    check(on_bad_line)
    content = sys.stdin.buffer.read() if path == STANDARD_INPUT else None
    place = Path(path if content is None else "standard input")
    if column is not None:
        _check_column(place, column, content)
    table = open_texts(place, column, "recipe.column=NAME", content)
    rows, met = read_all(place, table)
    blank = pl.col("statement").fill_null("").str.strip_chars() == ""
    left_out = rows.filter(blank).height + met.pop(("noted", BLANK), 0)
    notices = describe(met, on_bad_line)
    kept = rows.filter(~blank)
    if kept.is_empty():
        raise MitigateError(f"{place} has no text to label")
    notices += [f"{counted(left_out, 'empty text')} left out; `row` counts them too"] if left_out else []
    return LoadedStatements(kept, notices)


def _check_column(place: Path, column: str, content: bytes | None) -> None:
    layout = layout_of(place, content)
    if layout.form == "lines":
        raise MitigateError(f"recipe.column={column}: {place} has no columns: its lines are texts; leave it out")
    if layout.names and column.lower() not in [name.strip().lower() for name in layout.names]:
        raise MitigateError(
            f"recipe.column={column}: {place} has no such column, but {', '.join(layout.names)[:300]}"
            f"{did_you_mean(column, layout.names)}"
        )
