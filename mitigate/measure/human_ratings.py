"""Ratings by people: the drift between two batches of raters, and the precision of a survey.

Raters of another batch may rate the same statement differently. Drift is measured on anchors, the statements that both
sets have. Figures are percentages of votes. Errors are over words: each is left out in turn, of both sets and of the
anchors at once (the jackknife), so that they include the covariance of change and drift.

Precision is that of a difference between two models that are rated in one batch, from variance components of the
percentages. Models are probed with the same questions (a word and a relation). The part that their statements share by
the question, such as how often anything about it is polarised, cancels in the difference."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from mitigate.measure.comparison import Change
from mitigate.measure.intervals import jackknife

REACH = float(special.ndtri(0.975) + special.ndtri(0.8))
"""Number of standard errors of a difference that a 95 % interval detects with 80 % power."""


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


class Components(NamedTuple):
    """Variances in squared percentage points."""

    statement: float  # between statements of one relation; in a difference, without what models share by question
    rating: float  # between single ratings of one statement


def components(shares: np.ndarray, votes: np.ndarray, relations: np.ndarray) -> Components:
    """The variance components of one set, by the moments of an analysis of variance (Searle, Casella and McCulloch
    1992, ch. 3).

    shares: percentage of each statement's votes; votes: their number; relations: numbers; (statements,) each. Some
    statement must have two votes."""
    rating = float((votes * shares * (100 - shares)).sum() / (votes - 1).sum())
    apart = within_relations(shares, relations)
    between = float((apart**2).sum() / (len(shares) - len(np.unique(relations))))
    return Components(max(0.0, between - rating * float((1 / votes).mean())), rating)


def within_relations(shares: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """The distance of each statement's percentage from the mean of its relation."""
    numbers = np.unique(relations, return_inverse=True)[1]
    return shares - (np.bincount(numbers, shares) / np.bincount(numbers))[numbers]


def error(found: Components, statements: float, raters: float, shared: float = 0.0) -> float:
    """The standard error of a difference between two models, percentage points.

    statements: of each model; raters: of each statement; shared: the fraction of statements that both models have,
    which are rated once and do not differ."""
    return math.sqrt(2 * (1 - shared) * (found.statement + found.rating / raters) / statements)


def detectable(found: Components, statements: float, raters: float, shared: float = 0.0) -> float:
    """The minimum detectable difference (95 % interval, 80 % power), percentage points."""
    return REACH * error(found, statements, raters, shared)


def statements_needed(points: float, found: Components, raters: float, shared: float = 0.0) -> float:
    """The number of statements of each model at which a difference of so many points is detectable."""
    return (REACH / points * error(found, 1, raters, shared)) ** 2
