"""What a policy did to the training triples, and how long a generator was trained on them, in figures."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from mitigate.measure import coverage
from mitigate.metrics import ADDED, DROPPED, KEPT, TRAINING_PASSES, TRAINING_STEPS, WEIGHT

OF_RESOURCE = pl.col("source_row").is_null()  # the others are a policy's


def measure_filter(ledger: pl.DataFrame) -> dict[str, Any]:
    """What the policy did to the training triples: how many it kept, dropped and added, and the shares of those about
    targets that it kept (measure.coverage). ledger: what apply_policy returns."""
    return filter_figures(ledger) | coverage.coverage(coverage.per_target(ledger))


def untrained_relations(ledger: pl.DataFrame, relations: Iterable[str]) -> list[str]:
    """Those of the relations that no training triple is left of, in their order."""
    trained = set(ledger.filter(pl.col("weight") > 0, split="train")["relation"])
    return [relation for relation in relations if relation not in trained]


def training_figures(training: Mapping[str, Any]) -> dict[str, Any]:
    """Steps, and passes over the data; nothing of a generator that was not trained. training: what train_generator
    returns."""
    if "steps" not in training:
        return {}
    return {TRAINING_STEPS: training["steps"], TRAINING_PASSES: training.get("passes")}


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
