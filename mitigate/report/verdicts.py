"""What a comparison allows one to say, and no more: with several seeds that a policy helps, with one that two models
differ, and of what is not shown that it is not shown."""

from collections.abc import Mapping, Sequence
from typing import Any

ALPHA = 0.05
SAME, UNKNOWN = "the same numbers", "cannot be told"
HELPS, WORSENS, NO_EFFECT = "helps", "makes it worse", "no effect shown"
BETTER, WORSE, ALIKE = "differ, for the better", "differ, for the worse", "no difference shown"
KEPT, LOST, UNSHOWN = "kept", "lost", "not shown to be kept"

SENTENCES = {  # verdict -> of one, of several
    HELPS: ("{} helps", "{} help"),
    WORSENS: ("{} makes it worse", "{} make it worse"),
    NO_EFFECT: ("{} is not shown to change anything", "{} are not shown to change anything"),
    BETTER: ("the model of {} differs, for the better", "the models of {} differ, for the better"),
    WORSE: ("the model of {} differs, for the worse", "the models of {} differ, for the worse"),
    ALIKE: ("the model of {} is not shown to differ", "the models of {} are not shown to differ"),
    SAME: ("{} has the same numbers", "{} have the same numbers"),
    UNKNOWN: ("of {} nothing can be told", "of {} nothing can be told"),
}


def verdict(difference: float, p: float | None, better: str, several_seeds: bool, is_same: bool = False) -> str:
    """The words for a difference from the baseline, of which "up" or "down" is better, and its corrected p."""
    if is_same:
        return SAME
    if p is None:
        return UNKNOWN
    if p >= ALPHA:
        return NO_EFFECT if several_seeds else ALIKE
    good = difference > 0 if better == "up" else difference < 0
    if several_seeds:
        return HELPS if good else WORSENS
    return BETTER if good else WORSE


def kept(rows: Mapping[str, Mapping[str, Any] | None], margins: Mapping[str, float]) -> str | None:
    """Whether quality is no worse than the baseline's by more than a margin (non-inferiority). rows: by figure, its
    change from the baseline with the bounds of its interval; margins: by figure, how bad a change is no loss yet, in
    points below 0, or a ratio above 1. KEPT takes all intervals to lie on the good side of their margins, LOST one that
    lies on the bad side. None where a figure was not measured, or has no interval."""
    found = set()
    for figure, margin in margins.items():
        row = rows.get(figure)
        if row is None or row["low"] is None:
            return None
        worst, best = (row["low"], row["high"]) if margin <= 0 else (-row["high"], -row["low"])
        bound = margin if margin <= 0 else -margin
        found.add(KEPT if worst >= bound else LOST if best < bound else UNSHOWN)
    return next((word for word in (LOST, UNSHOWN, KEPT) if word in found), None)


def said_together(verdicts: Mapping[str, str]) -> str:
    """Several contrasts' verdicts in one sentence's body: "both and regard help; sentiment is not shown to change
    anything"."""
    parts = []
    for said, (singular, plural) in SENTENCES.items():
        names = [name for name, word in verdicts.items() if word == said]
        if names:
            parts.append((singular if len(names) == 1 else plural).format(listed(names)))
    return "; ".join(parts)


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def p_value(p: float | None) -> str:
    """As it is shown: "0.031", "< 0.001", or a dash."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
