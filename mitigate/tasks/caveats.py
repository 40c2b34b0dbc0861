"""What must be said beside figures, whichever recipe found them."""

from collections.abc import Iterable

import polars as pl

from mitigate.measure import uncertainty
from mitigate.target_list import PAPER, TargetList

SAME_POSTS = ("crowd", "frames")
"""Scorers that learn from posts of the Social Bias Inference Corpus."""


def same_posts(scorers: Iterable[str]) -> list[str]:
    """A notice where two of these scorers have learnt from the same posts."""
    if not set(SAME_POSTS) <= set(scorers):
        return []
    return ["The scorers crowd and frames learn from the same posts. Where one filters, the other does not assess it."]


def few_targets(table: pl.DataFrame, target_list: TargetList = PAPER) -> list[str]:
    """A notice where categories of a table with a row a target (target, category, statements) are too small."""
    few = uncertainty.few_targets(table, target_list.clusters)
    if not few:
        return []
    return [
        f"Few targets in {', '.join(few)} (under {uncertainty.FEW_TARGETS}): their figures say little about other "
        "words of these categories. A comparison of several seeds has intervals for these targets alone, a comparison "
        "of single models has none."
    ]
