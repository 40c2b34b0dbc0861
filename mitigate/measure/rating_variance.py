"""How precise ratings are: what makes percentages of votes vary, and how many ratings show a difference between two
models that are rated in one batch.

Models are probed with the same questions (a word and a relation). The part that their statements share by
the question, such as how often anything about it is polarised, cancels in a difference between the models."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special


class Components(NamedTuple):
    """Variances in squared percentage points."""

    statement: float  # of statements of one relation; for a difference without what models share by the question
    rating: float  # of single ratings of one statement


def components(shares: np.ndarray, votes: np.ndarray, relations: np.ndarray) -> Components:
    """The variances of one set, by the moments of an analysis of variance (Searle, Casella and McCulloch 1992, ch. 3).

    shares: percentage of each statement's votes; votes: their number; relations: numbers; (statements,) each. Some
    statement must have two votes."""
    rating = float((votes * shares * (100 - shares)).sum() / (votes - 1).sum())
    apart = within_relations(shares, relations)
    between = float((apart**2).sum() / (len(shares) - len(np.unique(relations))))
    return Components(max(0.0, between - rating * float((1 / votes).mean())), rating)


def within_relations(shares: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """How far each statement's percentage is from the mean of its relation."""
    numbers = np.unique(relations, return_inverse=True)[1]
    return shares - (np.bincount(numbers, shares) / np.bincount(numbers))[numbers]


def shared_by_questions(first: np.ndarray, second: np.ndarray, questions: tuple[np.ndarray, np.ndarray]) -> float:
    """The covariance of questions' mean percentages in two sets, over the questions that both have.

    first, second: what within_relations returns, of statements that stand in one of the sets alone: (statements,) each;
    questions: their numbers, the same in both sets."""
    both = np.intersect1d(*questions)
    means = [
        [side[of == question].mean() for question in both] for side, of in zip((first, second), questions, strict=True)
    ]
    return float(np.cov(means)[0, 1])


def error(found: Components, statements: float, raters: float, shared: float = 0.0) -> float:
    """The standard error of a difference between two models, percentage points.

    statements: of each model; raters: of each statement; shared: the part of the statements that both models have,
    which are rated once and differ by nothing."""
    return math.sqrt(2 * (1 - shared) * (found.statement + found.rating / raters) / statements)


def detectable(found: Components, statements: float, raters: float, shared: float = 0.0) -> float:
    """The minimum detectable difference (95 % interval, 80 % power), percentage points."""
    return REACH * error(found, statements, raters, shared)


def statements_needed(points: float, found: Components, raters: float, shared: float = 0.0) -> float:
    """How many statements of each model make a difference of so many points detectable."""
    return (REACH / points * error(found, 1, raters, shared)) ** 2


REACH = float(special.ndtri(0.975) + special.ndtri(0.8))
"""Standard errors that a difference must have, to be found by a 95 % interval with 80 % power."""
