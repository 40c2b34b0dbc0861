"""What a policy did to the training triples, in figures."""

from typing import Any

import polars as pl

from mitigate.measure import coverage
from mitigate.metrics import ADDED, DROPPED, KEPT, WEIGHT

OF_RESOURCE = pl.col("source_row").is_null()  # the others are a policy's


def measure_filter(ledger: pl.DataFrame) -> dict[str, Any]:
    """What the policy did to the training triples: how many it kept, dropped and added, and the shares of those about
    targets that it kept (measure.coverage). ledger: what apply_policy returns."""
    return filter_figures(ledger) | coverage.coverage(coverage.per_target(ledger))


def filter_figures(ledger: pl.DataFrame) -> dict[str, Any]:
    """Of the resource's training triples how many the policy kept, whatever they weigh, and dropped; how many it added;
    and what all weigh together."""
    train = ledger.filter(pl.col("split") == "train")
    known, kept = train.filter(OF_RESOURCE), train.filter(OF_RESOURCE, pl.col("weight") > 0)
    return {
        KEPT: kept.height,
        DROPPED: known.height - kept.height,
        ADDED: train.height - known.height,
        WEIGHT: float(train["weight"].cast(pl.Float64).sum()),
    }
