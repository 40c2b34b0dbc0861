"""What an audit meets on its way through a resource, as counts, and in which steps it goes."""

from collections.abc import Iterable
from typing import Literal

import polars as pl

from mitigate.load.stream import Met

CHUNK = 50_000  # rows worked through at once
Texts = Literal["targets", "all"]
COUNTS = {"kind": pl.String, "what": pl.String, "count": pl.Int64}
ROWS, ABOUT_A_TARGET, STATEMENTS = (
    ("counted", "rows"),
    ("counted", "about a target"),
    ("counted", "statements"),
)

REPEATED = "repeated statement about a target, each of which counts"


def counts_of(rows: pl.DataFrame, found: pl.DataFrame, num_about: int) -> Met:
    """How many rows there were, how many are about a target, and how many statements they make."""
    return Met({ROWS: rows.height, ABOUT_A_TARGET: num_about, STATEMENTS: found.height})


def as_frame(met: Met) -> pl.DataFrame:
    """Counts as a table (kind, what, count)."""
    return pl.DataFrame([(*key, count) for key, count in met.items()], schema=COUNTS, orient="row")


def as_met(parts: Iterable[pl.DataFrame]) -> Met:
    """The sum of tables of counts."""
    total = Met()
    for part in parts:
        for kind, what, count in part.iter_rows():
            total[kind, what] += count
    return total
