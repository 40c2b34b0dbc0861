"""Verdicts of a comparison: with five seeds or more, that a policy helps; with fewer, how its models did; with one,
that two models differ. A verdict states which effects are not shown."""

from collections.abc import Mapping, Sequence
from typing import Any

ALPHA = 0.05
FEWEST_SEEDS = 5
"""Fewest seeds of each side for a claim about a policy. With three seeds, the standard error of the variation between
trainings has only four degrees of freedom."""
SAME, UNKNOWN, UNLEARNT = "the same numbers", "cannot be determined", "no conclusion"
HELPS, WORSENS, NO_EFFECT = "helps", "makes it worse", "no effect shown"
EXPLORED_BETTER, EXPLORED_WORSE = "better, exploratory", "worse, exploratory"
BETTER, WORSE, ALIKE = "differ, for the better", "differ, for the worse", "no difference shown"
MARGINS = LOST, UNSHOWN, KEPT = "lost", "not shown to be kept", "kept"
GATE = HOLDS, FAILS, OPEN = "shown to hold", "shown to fail", "not enough evidence"
"""Outcomes of a gate, from the primary endpoints."""
SAID_OF_MARGINS = {
    LOST: "quality is worse than its margins allow",
    UNSHOWN: "quality is not shown to be within its margins",
    KEPT: "quality is within its margins",
}


def verdict(row: Mapping[str, Any], better: str, seeds: int, is_same: bool = False) -> str:
    """The words for a primary endpoint: baseline, value, as, p_holm and the bounds of its corrected interval. better:
    "up" or "down"; seeds: the smaller number of the two sides."""
    if is_same:
        return SAME
    if row["value"] is None or row["baseline"] is None:
        return UNKNOWN
    gain = row["value"] - row["baseline"]
    good = gain > 0 if better == "up" else gain < 0
    if seeds == 1:
        if row["low_corrected"] is None:
            return UNKNOWN
        return (BETTER if good else WORSE) if _excludes_none(row) else ALIKE
    if row["p_holm"] is None:
        return UNKNOWN
    if row["p_holm"] >= ALPHA:
        return NO_EFFECT
    if seeds < FEWEST_SEEDS:
        return EXPLORED_BETTER if good else EXPLORED_WORSE
    return HELPS if good else WORSENS


def gate(finding: str, margin: str | None, seeds: int) -> str:
    """The outcome of a primary endpoint: HOLDS, FAILS or OPEN. finding: its verdict. margin: KEPT, LOST or UNSHOWN for
    an endpoint with a margin, which then decides; None: it must be shown to be better. Fewer than FEWEST_SEEDS on
    either side leave it OPEN."""
    if seeds < FEWEST_SEEDS or finding in (SAME, UNKNOWN, UNLEARNT):
        return OPEN
    known = {HELPS: HOLDS, WORSENS: FAILS} if margin is None else {KEPT: HOLDS, LOST: FAILS}
    return known.get(finding if margin is None else margin, OPEN)


def gates(outcomes: Sequence[str]) -> str:
    """The joint outcome of endpoints or policies: FAILS if one fails, HOLDS if all hold, else OPEN."""
    if FAILS in outcomes:
        return FAILS
    return HOLDS if outcomes and set(outcomes) == {HOLDS} else OPEN


def kept(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Test whether quality is worse than the baseline's by more than a margin (non-inferiority). rows: figures with the
    bounds of their change and their margin, the largest tolerated loss: points below 0, or a ratio above 1. KEPT if all
    intervals are on the good side of their margins, LOST if one is on the bad side, else UNSHOWN. None without rows."""
    found = {_side_of_margin(row) for row in rows}
    return next((word for word in MARGINS if word in found), None)


def _side_of_margin(row: Mapping[str, Any]) -> str:
    up = row["margin"] <= 0  # more is better
    worst, best = (row["low"], row["high"]) if up else (row["high"], row["low"])
    if worst is not None and (worst >= row["margin"] if up else worst <= row["margin"]):
        return KEPT
    return LOST if best is not None and (best < row["margin"] if up else best > row["margin"]) else UNSHOWN


def _excludes_none(row: Mapping[str, Any]) -> bool:
    """Return whether the corrected interval is on one side of no change."""
    none = 1 if row["as"] == "ratio" else 0
    low, high = row["low_corrected"], row["high_corrected"]
    return low > none or (high is not None and high < none)


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def p_value(p: float | None) -> str:
    """A p-value as shown: "0.031", "< 0.001", or a dash. A value below 0.05 is not rounded to it: "0.0498"."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.4f}" if 0.0495 <= p < 0.05 else f"{p:.3f}"
