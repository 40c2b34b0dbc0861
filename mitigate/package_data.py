"""The version, and the tables in data/, whose lines that begin with # are comments."""

import csv
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

VERSION = "0.2.0"
DATA = files("mitigate").joinpath("data")


@cache
def rows_of(name: str) -> tuple[dict[str, str], ...]:
    """The rows of data/`name`, by column."""
    with DATA.joinpath(name).open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(line for line in lines if not line.startswith("#")))


def frame_of(name: str, **how: Any) -> "pl.DataFrame":
    """The table data/`name` as a data frame. how: as polars.read_csv has it."""
    import polars as pl  # a third of a second to load, which settings and headlines do without

    return pl.read_csv(DATA.joinpath(name).read_bytes(), comment_prefix="#", **how)
