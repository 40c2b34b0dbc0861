"""Precision of ratings: variance components of percentages of votes, and the number of ratings that shows a difference
between two models that are rated in one batch.

Models are probed with the same questions (a word and a relation). The part that their statements share by the question,
such as how often anything about it is polarised, cancels in a difference between the models."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

REACH = float(special.ndtri(0.975) + special.ndtri(0.8))
"""Number of standard errors of a difference that a 95 % interval detects with 80 % power."""


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


def shared_by_questions(first: np.ndarray, second: np.ndarray, questions: tuple[np.ndarray, np.ndarray]) -> float:
    """The covariance of questions' mean percentages in two sets, over the questions that both have.

    first, second: the results of within_relations for statements that only one of the sets has: (statements,) each;
    questions: their numbers, the same in both sets."""
    both = np.intersect1d(*questions)
    means = [
        [side[of == question].mean() for question in both] for side, of in zip((first, second), questions, strict=True)
    ]
    return float(np.cov(means)[0, 1])


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
