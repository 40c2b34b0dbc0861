"""The same share of prejudice and of favouritism for every target of a category, by weights: what lowers the disparity
between targets (NSV, NRV) and not the mean."""

import polars as pl

MOST = 4.0
"""As many times its weight a statement may count: the one prejudice about a target is not to be learnt by heart."""


def even_out(ledger: pl.DataFrame, direction: pl.Expr, filtered: pl.Expr) -> pl.DataFrame:
    """The ledger with new weights for the triples about a target (its whole head or tail).

    Prejudiced, neutral and favouring triples about a target each get the share of the target's weight that they have
    of its category's, but at most MOST times its own. So a target keeps its weight if it has all three and none is
    at that limit; where it lacks one, or is at the limit, it loses weight and never gains any."""
    about = filtered & pl.col("target").is_not_null()
    cells = ledger.with_columns(about=about, sign=direction.sign().fill_nan(0.0))
    weight = pl.col("weight").sum()
    of_target = weight.over("about", "split", "category", "target")
    share = weight.over("about", "split", "category", "sign") / weight.over("about", "split", "category")
    factor = (of_target * share / weight.over("about", "split", "category", "target", "sign")).clip(upper_bound=MOST)
    balanced = pl.col("about") & (pl.col("weight") > 0)
    reason = pl.when(pl.col("reason") == "kept").then(pl.lit("balanced")).otherwise(pl.col("reason") + ", balanced")
    return cells.with_columns(
        weight=pl.when(balanced).then(pl.col("weight") * factor).otherwise("weight"),
        reason=pl.when(balanced).then(reason).otherwise("reason"),
    ).drop("about", "sign")
