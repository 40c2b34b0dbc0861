"""Social Bias Frames (Sap et al. 2020): what annotators wrote down as implied by posts, and of which groups.

The part of the corpus in sbic/frames_test_posts.csv: posts that annotators found to imply something of a group, with
lists of implied statements and of groups. Posts without an implied statement are not in it."""

import csv
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import parsed

FILE = "frames_test_posts.csv"
COLUMNS = ("targetStereotype", "targetMinority")


def read_frames(folder: Path) -> pl.DataFrame:
    """A row for each post and implied statement, in lower case: post (its number), statement, groups (a list).

    Raises MitigateError for a missing file, columns that are not there, and cells that are no lists."""
    path = folder / FILE
    if not path.is_file():
        raise MitigateError(f"{folder} lacks {FILE}; data.root must name the folder that has sbic/")
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except (UnicodeDecodeError, csv.Error) as error:
        raise MitigateError(f"{path} is no CSV file in UTF-8 ({error}); it may be damaged: copy it again") from error
    if not rows or not set(COLUMNS) <= set(rows[0]):
        raise MitigateError(f"{path} must have the columns {', '.join(COLUMNS)}")
    found = [
        (number, statement, groups)
        for number, row in enumerate(rows)
        for statements, groups in [tuple(_texts(path, number, row[column]) for column in COLUMNS)]
        for statement in statements
    ]
    schema: dict[str, Any] = {"post": pl.Int64, "statement": pl.String, "groups": pl.List(pl.String)}
    return pl.DataFrame(found, schema=schema, orient="row")


def _texts(path: Path, number: int, cell: str) -> list[str]:
    try:
        return [" ".join(text.lower().split()) for text in parsed(cell) if text.strip()]
    except (ValueError, AttributeError, TypeError) as error:
        raise MitigateError(f'{path}, post {number + 1}: {cell!r} is no list of texts such as ["a", "b"]') from error
