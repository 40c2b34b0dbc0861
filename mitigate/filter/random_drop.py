"""The control of a policy that drops triples: as many of each relation, but drawn at random. Its effect is
that of fewer triples; any further effect of the policy is that of which triples it drops."""

import numpy as np
import polars as pl

DRAWN = "drawn at random"


def drop_at_random(rows: pl.DataFrame, reached: pl.Expr, in_scope: pl.Expr, seed: int) -> pl.DataFrame:
    """The rows with `weight` 0 and the reason DRAWN for as many of each split and relation as are reached, drawn by
    seed from those in the scope, polarised or not; the others with weight 1 and the reason "kept"."""
    of_relation = "split", "relation"
    lots = pl.Series(np.random.default_rng(seed).permutation(rows.height))
    drawn = rows.with_columns(_scope=in_scope, _lot=lots, _many=reached.sum().over(of_relation))
    place = pl.when("_scope").then("_lot").rank("ordinal").over(of_relation)  # null outside the scope
    is_drawn = (place <= pl.col("_many")).fill_null(False)
    return drawn.with_columns(
        weight=(~is_drawn).cast(pl.Float64), reason=pl.when(is_drawn).then(pl.lit(DRAWN)).otherwise(pl.lit("kept"))
    ).drop("_scope", "_lot", "_many")
