"""Groups that fare worst: what a policy keeps of the statements about each target, which it can make neutral by leaving
none, and how much prejudice there is about the targets that have most of it."""

import numpy as np
import polars as pl

from mitigate.measure.harms import overall_and_categories
from mitigate.metrics import COVERAGE, LEAST_COVERAGE, TAIL_COVERAGE, with_part, without_scorer

FEWEST = 10
"""Triples about a target under which its own share says little: it is no worst target."""


def per_target(ledger: pl.DataFrame) -> pl.DataFrame:
    """A row for each target that training triples are about: target, category, triples and tails (distinct pairs of
    relation and tail) before the policy, `kept` and `kept_tails` after it.

    ledger: what apply_policy returns; triples that a policy adds do not count."""
    about = ledger.filter(pl.col("target").is_not_null(), pl.col("split") == "train", pl.col("source_row").is_null())
    kept = pl.col("weight") > 0
    pair = pl.struct("relation", "tail")
    return about.group_by("target", "category", maintain_order=True).agg(
        triples=pl.len(),
        kept=kept.sum(),
        tails=pair.n_unique(),
        kept_tails=pair.filter(kept).n_unique(),
    )


def coverage(table: pl.DataFrame) -> dict[str, float | None]:
    """The percentage of the triples about targets that is kept, of their distinct pairs of relation and tail, and of
    the triples about the target that keeps least, among those with at least FEWEST; overall and per category. 100: all
    are kept. None where there is none. table: what per_target returns. Source: this project."""
    metrics: dict[str, float | None] = {}
    for category, part in overall_and_categories(table):
        enough = part.filter(pl.col("triples") >= FEWEST)
        metrics[with_part(COVERAGE, category)] = _percentage(part, "kept", "triples")
        metrics[with_part(TAIL_COVERAGE, category)] = _percentage(part, "kept_tails", "tails")
        least = enough.select((100 * pl.col("kept") / pl.col("triples")).min()).item()
        metrics[with_part(LEAST_COVERAGE, category)] = least
    return metrics


def worst(table: pl.DataFrame) -> dict[str, float | None]:
    """The percentage labelled prejudice of the target where it is highest ("largest_O-"), and the one that a tenth of
    the targets exceeds ("p90_O-", between two of them along a line); overall and per category. None where no target has
    statements. table: what measure.harms.per_target returns."""
    quantiles = {without_scorer("prejudice", "largest"): 1.0, without_scorer("prejudice", "p90"): 0.9}
    metrics: dict[str, float | None] = {}
    for category, part in overall_and_categories(table):
        known = part["prejudice"].drop_nulls().to_numpy()
        for name, quantile in quantiles.items():
            metrics[with_part(name, category)] = float(np.quantile(known, quantile)) if known.size else None
    return metrics


def _percentage(part: pl.DataFrame, kept: str, known: str) -> float | None:
    """Of the sums over targets."""
    total = int(part[known].sum())
    return 100 * int(part[kept].sum()) / total if total else None
