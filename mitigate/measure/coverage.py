"""The targets that fare worst: the statements about each target that a policy keeps (removing all of them would make it
neutral), and the prejudice about the targets with most of it."""

import numpy as np
import polars as pl

from mitigate.measure.harms import overall_and_categories
from mitigate.metrics import COVERAGE, LEAST_COVERAGE, TAIL_COVERAGE, with_part, without_scorer

FEWEST = 10
"""The fewest triples about a target for which its own share is used as the lowest one."""


def per_target(ledger: pl.DataFrame) -> pl.DataFrame:
    """A row for each target that training triples are about: target, category, triples and tails (distinct pairs of
    relation and tail) before the policy, `kept` and `kept_tails` after it.

    ledger: the result of apply_policy; triples that a policy adds do not count."""
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
    are kept. None where there is none. table: the result of per_target. Source: this project."""
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
    the targets exceeds ("p90_O-", interpolated linearly); overall and per category. None where no target has
    statements. table: the result of measure.harms.per_target."""
    quantiles = {without_scorer("prejudice", "largest"): 1.0, without_scorer("prejudice", "p90"): 0.9}
    metrics: dict[str, float | None] = {}
    for category, part in overall_and_categories(table):
        shares = part["prejudice"].drop_nulls().to_numpy()
        for name, quantile in quantiles.items():
            metrics[with_part(name, category)] = float(np.quantile(shares, quantile)) if shares.size else None
    return metrics


def _percentage(part: pl.DataFrame, kept: str, before: str) -> float | None:
    """The percentage of `before` that is `kept`, both summed over targets."""
    total = int(part[before].sum())
    return 100 * int(part[kept].sum()) / total if total else None
