"""Summaries of the filter's ledger: triples kept, dropped and added by relation, target or reason, and examples."""

from collections.abc import Sequence

import polars as pl

from mitigate.measure.quality import OF_RESOURCE
from mitigate.triples import kind_of_reason, label_columns

KEPT = pl.col("weight") > 0


def summary(ledger: pl.DataFrame, by: str) -> pl.DataFrame:
    """Counts for each value of the column `by`, the largest first: (by, input, kept, dropped, added, weight,
    share_dropped).

    input, kept and dropped count the resource's triples, added those of the policy; weight is the sum of all their
    weights, share_dropped is in percent of the input. Rows where `by` is null are left out."""
    rows = ledger.with_columns(kind_of_reason(pl.col("reason"))).filter(pl.col(by).is_not_null())
    counts = rows.group_by(by).agg(
        input=OF_RESOURCE.sum(),
        kept=(OF_RESOURCE & KEPT).sum(),
        dropped=(OF_RESOURCE & ~KEPT).sum(),
        added=(~OF_RESOURCE).sum(),
        weight=pl.col("weight").cast(pl.Float64).sum(),
    )
    share = pl.when(pl.col("input") > 0).then(100 * pl.col("dropped") / pl.col("input")).otherwise(0.0)
    return counts.with_columns(share_dropped=share).sort("input", by, descending=[True, False])


def most_polarised(ledger: pl.DataFrame, scorers: Sequence[str], number: int = 10) -> pl.DataFrame:
    """The `number` kept and the `number` dropped triples of the resource that the scorers find most polarised (outcome,
    row, relation, target, statement, reason, weight, strength), the strongest first, each statement once.

    strength: the largest of the scorers' strengths without its sign, of the statement with the relation's neutral
    wording: so the relation's phrase has no part in it. Empty if the triples have no such strengths."""
    strengths = [label_columns(scorer, "neutral")[1] for scorer in scorers]
    strengths = [column for column in strengths if column in ledger.columns]
    columns = ["outcome", "row", "relation", "target", "statement", "reason", "weight", "strength"]
    outcome = pl.when(KEPT).then(pl.lit("kept")).otherwise(pl.lit("dropped"))
    strength = pl.max_horizontal(pl.col(strengths).abs()) if strengths else pl.lit(None, pl.Float32)
    rows = ledger.filter(OF_RESOURCE).with_columns(outcome=outcome, strength=strength).drop_nulls("strength")
    first = rows.unique(["outcome", "statement"], keep="first", maintain_order=True)
    ranked = first.sort("outcome", "strength", "row", descending=[True, True, False])
    return ranked.group_by("outcome", maintain_order=True).head(number).select(columns)
