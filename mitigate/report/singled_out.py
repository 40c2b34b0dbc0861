"""Which targets a page may single out: a percentage of a few statements says more of chance than of the target."""

import polars as pl

FEWEST_STATEMENTS = 20
"""One statement is 5 % then."""


def often_told(targets: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The targets with FEWEST_STATEMENTS or more, and whether there are such; all of them where there are none."""
    found = targets.filter(pl.col("statements") >= FEWEST_STATEMENTS)
    return (targets, False) if found.is_empty() else (found, True)
