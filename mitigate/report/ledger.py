"""The filter's ledger, summed up: what was kept and dropped by relation, target or reason, and examples."""

import polars as pl

KEPT = pl.col("weight") > 0


def summary(ledger: pl.DataFrame, by: str) -> pl.DataFrame:
    """For each value of column `by`, the largest first: (by, input, kept, dropped, weight, share_dropped,
    reasons).

    weight is the sum of the kept rows' weights, share_dropped in percent, reasons a text such as
    "sentiment +1 (12); regard -1 (3)", the commonest first. Rows where `by` is null are left out."""
    rows = ledger.filter(pl.col(by).is_not_null())
    counts = rows.group_by(by).agg(
        input=pl.len(), kept=KEPT.sum(), dropped=(~KEPT).sum(), weight=pl.col("weight").cast(pl.Float64).sum()
    )
    frame = counts.with_columns(share_dropped=100 * pl.col("dropped") / pl.col("input"))
    if by == "reason":
        return frame.sort("input", by, descending=[True, False])
    return frame.join(_reasons(rows, by), on=by, how="left").sort("input", by, descending=[True, False])


def _reasons(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    return (
        rows.filter(~KEPT)
        .group_by(by, "reason")
        .len()
        .sort("len", "reason", descending=[True, False])
        .group_by(by, maintain_order=True)
        .agg(reasons=pl.format("{} ({})", "reason", "len").str.join("; "))
    )


def dropped_examples(ledger: pl.DataFrame, per_reason: int = 8) -> pl.DataFrame:
    """Some dropped triples of each reason (reason, row, relation, statement), evenly spaced over the
    resource: typical ones, not the worst."""
    dropped = ledger.filter(~KEPT).select("reason", "row", "relation", "statement").sort("reason", "row")
    step = (pl.len().over("reason") / per_reason).ceil().cast(pl.Int64)
    place = pl.int_range(pl.len()).over("reason")
    return dropped.filter(place % step == 0)
