"""Social Bias Frames (Sap et al. 2020): statements that annotators found implied by posts, with their groups.

The part of the corpus in sbic/frames_test_posts.csv: posts that annotators found to imply something of a group, with
lists of implied statements and of groups. Posts without an implied statement are not in it."""

from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.table import Column, read_table

FILE = "frames_test_posts.csv"
COLUMNS = ("targetStereotype", "targetMinority")


def read_frames(folder: Path) -> pl.DataFrame:
    """A row for each post and implied statement, in lower case: post (its number), statement, groups (a list).

    Raises MitigateError for a missing file, missing columns, and cells that are not lists."""
    path = folder / FILE
    if not path.is_file():
        raise MitigateError(f"{folder} has no {FILE}; set data.root to the folder that contains sbic/")
    wanted = {name: Column((name,), lists=True) for name in COLUMNS}
    rows, _ = read_table(path, wanted)
    found = [
        (
            number,
            " ".join(statement.lower().split()),
            [" ".join(group.lower().split()) for group in groups or [] if group],
        )
        for number, (_, statements, groups) in enumerate(rows.iter_rows())
        for statement in statements or []
        if statement and statement.strip()
    ]
    schema: dict[str, Any] = {"post": pl.Int64, "statement": pl.String, "groups": pl.List(pl.String)}
    return pl.DataFrame(found, schema=schema, orient="row")
