"""The targets that a page may name as extremes: a percentage of a few statements is mostly sampling noise."""

import polars as pl

FEWEST_STATEMENTS = 20
"""One of 20 statements is 5 %."""


def frequent_targets(targets: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The targets with FEWEST_STATEMENTS or more, and whether there are such; all of them where there are none."""
    found = targets.filter(pl.col("statements") >= FEWEST_STATEMENTS)
    return (targets, False) if found.is_empty() else (found, True)
