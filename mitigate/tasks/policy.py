"""A policy applied to labelled triples: filter."""

import polars as pl

from mitigate.filter import Policy, apply, check_left
from mitigate.words.target_list import PAPER, TargetList

__all__ = ["Policy", "apply_policy", "check_left"]


def apply_policy(
    policy: Policy,
    labelled: pl.DataFrame,
    target_list: TargetList = PAPER,
    *,
    generated: pl.DataFrame | None = None,
    may_be_empty: bool = False,
) -> pl.DataFrame:
    """The ledger: the labelled triples with `weight`, the `reason` for it, and `source_row`; after them what the policy
    adds.

    labelled: what label_statements returns for triples (head, relation, tail). Where they have no `split`, all are
    training triples; where they have no `row`, they are numbered from 1. target_list: what a policy's scope and swaps
    are about. generated: labelled tails that a policy which replaces tails may use (tasks.replacing). Raises
    MitigateError when no training triple is left, unless the ledger may_be_empty, and for labels that the policy needs
    and the table lacks."""
    if "row" not in labelled.columns:
        labelled = labelled.with_row_index("row", offset=1)
    if "split" not in labelled.columns:
        labelled = labelled.with_columns(split=pl.lit("train"))
    return apply(policy, labelled, target_list, generated=generated, may_be_empty=may_be_empty)
