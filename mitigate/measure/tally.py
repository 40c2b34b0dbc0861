"""Counts of labels by target: all that an audit's figures need, in a few rows for each target, whatever the number of
statements. Tallies of parts add up to the tally of the whole."""

from collections.abc import Iterable, Sequence

import polars as pl

from mitigate.measure.harms import EmptyTargets, of_every_target
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

TALLY = {"column": pl.String, "target": pl.String, "label": pl.Int8, "count": pl.Int64}


def tally(statements: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The number of statements (schema TALLY) for each of the label columns, each target and each label."""
    return total(
        statements.group_by("target", label=pl.col(column)).agg(count=pl.len()).with_columns(column=pl.lit(column))
        for column in columns
    )


def tally_rows(statements: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The tally of all rows, with target null: each row once, even if it is about several targets."""
    rows = statements.unique("row", keep="first", maintain_order=True)
    return tally(rows.with_columns(target=pl.lit(None, dtype=pl.String)), columns)


def total(tallies: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The sum of tallies, sorted."""
    whole = pl.DataFrame(schema=TALLY)
    for part in tallies:
        both = pl.concat([whole, part.select(pl.col(name).cast(dtype) for name, dtype in TALLY.items())])
        whole = both.group_by("column", "target", "label").agg(pl.col("count").sum())
    return whole.select(*TALLY).sort("column", "target", "label")


def per_target(
    tallied: pl.DataFrame, column: str, targets: pl.DataFrame, empty_targets: EmptyTargets = "exclude"
) -> pl.DataFrame:
    """The table of harms.per_target for one label column: (target, category, statements, prejudice, favouritism,
    neutral), the last three in percent, null or 0 for a target without statements."""

    def share(*labels: int) -> pl.Expr:
        return 100 * pl.col("count").filter(pl.col("label").is_in(labels)).sum() / pl.col("count").sum()

    counts = (
        tallied.filter(pl.col("column") == column)
        .group_by("target")
        .agg(
            statements=pl.col("count").sum(),
            prejudice=share(PREJUDICE),
            favouritism=share(FAVOURITISM),
            neutral=share(NEUTRAL, OTHER),
        )
    )
    return of_every_target(counts, targets, empty_targets)
