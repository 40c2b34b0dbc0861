"""Notices that belong beside figures, whichever recipe measured them."""

from collections.abc import Iterable

import polars as pl

from mitigate.measure import harms
from mitigate.measure.intervals import FEW_TARGETS
from mitigate.words.targets import PAPER, TargetList

HALVES = ("first", "second")
WHOLE = "all"
"""Parts of the ratings of validity that a measure learns from (studies.classifier.half_of)."""


def same_sources(scorers: Iterable[str]) -> list[str]:
    """A notice where scorers have learnt from the same ratings of statements."""
    if {"crowd2", "crowd_lm"} <= set(scorers):
        one = "The scorers crowd2 and crowd_lm learn from the same ratings."
        return [f"{one} Where one filters, the other does not assess it."]
    return []


def of_critic(critic: object, people: object) -> list[str]:
    """A notice where a policy's critic and people_valid learnt from the same ratings of validity."""
    parts = {getattr(measure, "half", WHOLE) for measure in (critic, people)}
    if critic is None or people is None or parts == set(HALVES):
        return []
    return [
        "The policy's critic (score.critic) and people_valid learn from the same ratings, so people_valid does not "
        "assess this policy. Fit each to a half of the targets: recipe=classifier classifier=people "
        "recipe.validity.half=first, and second."
    ]


def few_targets(table: pl.DataFrame, target_list: TargetList = PAPER) -> list[str]:
    """A notice where categories of a table with a row a target (target, category, statements) are too small."""
    few = harms.few_targets(table, target_list.clusters)
    if not few:
        return []
    return [
        f"Few targets in {', '.join(few)} (under {FEW_TARGETS}): their figures say little about other "
        "words of these categories. A comparison of several seeds has intervals for these targets alone, a comparison "
        "of single models has none."
    ]
