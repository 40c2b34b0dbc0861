"""The parts of test triples and of generated statements that figures of quality are on."""

import polars as pl

from mitigate.metrics import relation_part
from mitigate.triples import NEUTRAL, OTHER, ROLES, label_columns

MANY_SHARED_TAILS = 50.0
"""Percent; beyond it a generator says much the same of every target."""


def subsets() -> dict[str, pl.Expr]:
    """The held-out triples that each quality figure is on. Neutral is neutral under both scorers with the phrase
    neutralised: what the phrase alone would make polar is not."""
    neutral = pl.all_horizontal(pl.col(label_columns(scorer, "neutral")[0]).is_in([NEUTRAL, OTHER]) for scorer in ROLES)
    return {"all": pl.lit(True), "neutral": neutral, "polar": ~neutral, "target": pl.col("target").is_not_null()}


def probed_parts(statements: pl.DataFrame) -> dict[str, pl.Expr]:
    """The generated statements that a share of plausible ones is on: all, neutral, polar, of a category."""
    parts = {name: condition for name, condition in subsets().items() if name != "target"}  # all are about one
    categories = statements["category"].unique(maintain_order=True)
    return parts | {category: pl.col("category") == category for category in categories}


def relation_parts(statements: pl.DataFrame) -> dict[str, pl.Expr]:
    """The same for each relation."""
    relations = statements["relation"].unique(maintain_order=True)
    return {relation_part(relation): pl.col("relation") == relation for relation in relations}
