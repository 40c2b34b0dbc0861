"""The filter's ledger, summed up: what was kept and dropped by relation, target or reason, and examples."""

from collections.abc import Mapping

import polars as pl

KEPT = pl.col("weight") > 0
EXAMPLES = {"reason": 8, "relation": 3, "target": 2}  # how many of each are shown, at most


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


def dropped_examples(ledger: pl.DataFrame, most: Mapping[str, int] = EXAMPLES) -> pl.DataFrame:
    """Some dropped triples (reason, row, relation, target, statement) for each reason, relation and target, evenly
    spaced over the resource: typical ones, not the worst."""
    dropped = ledger.filter(~KEPT).sort("reason", "row")
    chosen = dropped.filter(pl.any_horizontal(_evenly(by, number) for by, number in most.items()))
    return chosen.select("reason", "row", "relation", "target", "statement")


def _evenly(by: str, number: int) -> pl.Expr:
    """At most `number` rows of each value of a column, the first among them; none where it is null."""
    step = (pl.len().over(by) / number).ceil().cast(pl.Int64)
    return pl.col(by).is_not_null() & (pl.int_range(pl.len()).over(by) % step == 0)
