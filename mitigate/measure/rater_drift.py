"""The change between two rated sets, the drift between their batches of raters, and the change without the drift.

Raters of another batch may rate the same statement differently. Drift is measured on anchors, the statements that both
sets have. Figures are percentages of votes. Errors are over words: each is left out in turn, of both sets and of the
anchors at once (jackknife.py), so that they include the covariance of change and drift. Nothing here depends on
labels."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mitigate.measure.change import Change
from mitigate.measure.jackknife import jackknife


class Votes(NamedTuple):
    """Votes on statements, (statements,) each. Words and relations are numbers from 0, the same in all sets."""

    shares: np.ndarray  # percentage of a statement's votes
    weights: np.ndarray  # of a statement within its relation: its number of votes, or 1
    words: np.ndarray
    relations: np.ndarray


class Drift(NamedTuple):
    """Differences in percentage points."""

    total: Change  # from the first set to the second
    drift: Change  # of the anchors, from the first batch of raters to the second
    remaining: Change  # total - drift


def without_drift(sets: Sequence[Votes], anchors: Sequence[Votes], *, equally: bool) -> Drift:
    """The change between two sets with the drift between them taken out.

    sets: the first and the second. anchors: the same statements as rated in the first batch and in the second.
    equally: every relation has the same weight; otherwise it is weighted by its statements in the set or the anchors.
    With `equally` every relation must have statements in all four."""
    sides = [*sets, *anchors]
    shape = 1 + max(side.relations.max() for side in sides), 1 + max(side.words.max() for side in sides)
    sums = np.zeros((len(sides), 2, *shape))  # weights, and weighted shares, (sides, 2, relations, words)
    for (weights, weighted), side in zip(sums, sides, strict=True):
        np.add.at(weights, (side.relations, side.words), side.weights)
        np.add.at(weighted, (side.relations, side.words), side.weights * side.shares)
    whole = sums.sum(axis=-1, keepdims=True)
    first, second, before, after = means = _means(whole, equally)[:, 0]
    apart = _means(whole - sums, equally)  # (sides, words)
    total, drift = apart[1] - apart[0], apart[3] - apart[2]
    errors = jackknife(np.column_stack([total, drift, total - drift]))
    changes = zip((first, before, means[3] - means[2]), (second, after, means[1] - means[0]), *errors, strict=True)
    return Drift(*(Change(float(a), float(b), "difference", float(size), float(df)) for a, b, size, df in changes))


def _means(sums: np.ndarray, equally: bool) -> np.ndarray:
    """Percentages of each side, (sides, n), from sums (sides, 2, relations, n)."""
    if not equally:
        sums = sums.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore"):
        return (sums[:, 1] / sums[:, 0]).mean(axis=1)
