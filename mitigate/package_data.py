"""Rows of tables in data/ with comments.

A module that reads one has the file's name as a literal, by which fingerprints find the dependency."""

import csv
from functools import cache
from importlib.resources import files


@cache
def rows_of(name: str) -> tuple[dict[str, str], ...]:
    """The rows of data/`name`, by column. A line that begins with # is a comment."""
    with files("mitigate").joinpath(f"data/{name}").open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(line for line in lines if not line.startswith("#")))
