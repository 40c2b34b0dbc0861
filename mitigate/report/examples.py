"""The most strongly labelled statements of each target, as examples: extremes, not a sample."""

from collections.abc import Sequence

import polars as pl

from mitigate.triples import FAVOURITISM, PREJUDICE


def examples(
    statements: pl.DataFrame, per_target: int = 6, scorers: Sequence[str] = ("sentiment", "regard")
) -> pl.DataFrame:
    """(target, category, statement, and the labels of those scorers that there are) of the polarised statements with
    the greatest strength, at most `per_target` distinct ones of each target, by target."""
    scorers = [name for name in scorers if name in statements.columns]
    strengths = [
        pl.when(pl.col(name).is_in([PREJUDICE, FAVOURITISM])).then(pl.col(f"{name}_strength").abs()) for name in scorers
    ]
    return (
        statements.with_columns(strength=pl.max_horizontal(strengths))
        .drop_nulls(["target", "strength"])
        .unique(["target", "statement"], keep="first", maintain_order=True)
        .sort("target", "strength", "statement", descending=[False, True, False])
        .group_by("target", maintain_order=True)
        .head(per_target)
        .select("target", "category", "statement", *scorers)
    )
