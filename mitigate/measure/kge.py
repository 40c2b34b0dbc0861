"""How good embeddings of a knowledge graph are, and how far a sensitive attribute moves the scores of professions
(equation 1 of "Measuring social bias in knowledge graph embeddings")."""

import numpy as np
from scipy.stats import spearmanr

STEP = 0.01  # the paper's learning rate, footnote 5


def mean_reciprocal_rank(ranks: np.ndarray) -> float:
    """The mean of 1 / rank: 1 when every true entity is ranked first. ranks (n,), from 1."""
    return float(np.mean(1 / np.asarray(ranks, dtype=float)))


def hits(ranks: np.ndarray, k: int) -> float:
    """The share of ranks that are at most k, 0 to 1."""
    return float(np.mean(np.asarray(ranks) <= k))


def attribute_direction(weights: np.ndarray, values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The gradient of m of equation 1, (dimension,), where a score is linear in the person.

    weights: (k, dimension), the gradient of the score of each entity as the attribute by the person; values, others:
    (k,) bool, which entities are value a and which are value b. Several entities are averaged: ids with one name, or
    all other values."""
    if not values.any() or not others.any():
        raise ValueError("both values need an entity")
    return weights[values].mean(0) - weights[others].mean(0)


def change_of_scores(professions: np.ndarray, direction: np.ndarray, step: float = STEP) -> np.ndarray:
    """Equation 1 in closed form where a score is linear in the person, as all dot products are: the change of each
    profession's score, (p,), the same for every person.

    A person e moves to e + step * direction. The score weight . e + offset of a profession therefore changes by
    step * weight . direction, in which e is no longer. professions: (p, dimension), their weights. 0: the attribute
    does not move the profession; above 0: value a raises its score."""
    return step * professions @ direction


def log_count_ratio(of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """log((a + 1/2) / (b + 1/2)) of each profession; the halves keep it finite where a group has no holder."""
    return np.log((np.asarray(of_a) + 0.5) / (np.asarray(of_b) + 0.5))


def rank_correlation(changes: np.ndarray, ratios: np.ndarray) -> float | None:
    """Spearman's rank correlation, -1 to 1, 0 for none; None where there are fewer than three professions or one of the
    two does not vary."""
    if len(changes) < 3 or np.ptp(changes) == 0 or np.ptp(ratios) == 0:
        return None
    return float(spearmanr(changes, ratios).statistic)
