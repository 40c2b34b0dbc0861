"""The training triples about each target that a policy keeps: removing all of them would make it neutral."""

import polars as pl

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


def kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about targets that is kept; None where there is none. table: that of per_target, or
    a part of it. Source: this project."""
    return _percentage(table, "kept", "triples")


def kept_tails_share(table: pl.DataFrame) -> float | None:
    """The percentage of the distinct pairs of relation and tail that is kept, summed over targets."""
    return _percentage(table, "kept_tails", "tails")


def least_kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about a target that is kept, of the target that keeps least, among those with at
    least FEWEST."""
    enough = table.filter(pl.col("triples") >= FEWEST)
    return enough.select((100 * pl.col("kept") / pl.col("triples")).min()).item()


def _percentage(part: pl.DataFrame, kept: str, before: str) -> float | None:
    """The percentage of `before` that is `kept`, both summed over targets."""
    total = int(part[before].sum())
    return 100 * int(part[kept].sum()) / total if total else None
