"""Uncertainty of figures of knowledge-graph embeddings: intervals over trainings, bands of permuted graphs, and
agreement of trainings in the ranks of professions."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata, t

LEVEL = 0.95


class Mean(NamedTuple):
    """A mean with Student's 95 % interval; NaN for unknown bounds."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def over_seeds(values: np.ndarray) -> Mean:
    """The mean over trainings, (seeds, ...), and its interval. There is none for one training, nor for several with the
    same value: the next may have another."""
    values = np.asarray(values, dtype=float)
    return _student(values, 1 / len(values)) if len(values) > 1 else _without_interval(values)


def null_band(values: np.ndarray) -> Mean:
    """The mean over permuted graphs, (graphs, ...), and the band in which 95 % of the figures of further permuted
    graphs lie (Student's prediction interval, one training each); there is none for fewer than three graphs, nor for
    several with the same value."""
    values = np.asarray(values, dtype=float)
    return _student(values, 1 + 1 / len(values)) if len(values) > 2 else _without_interval(values)


def _student(values: np.ndarray, share: float) -> Mean:
    """The mean and Student's interval. share: the interval's variance, relative to that of a single value."""
    mean = values.mean(0)
    half = t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(0, ddof=1) * np.sqrt(share)
    half = np.where(np.ptp(values, axis=0) > 0, half, np.nan)
    return Mean(mean, mean - half, mean + half)


def _without_interval(values: np.ndarray) -> Mean:
    unknown = np.full_like(values.mean(0), np.nan)
    return Mean(values.mean(0), unknown, unknown)


def within(found: Mean, least: float, most: float) -> Mean:
    """The mean with its bounds clipped to the range of the figure."""
    return Mean(found.mean, np.maximum(found.low, least), np.minimum(found.high, most))


def outside_of_others(values: np.ndarray) -> int | None:
    """The number of figures outside the band of all others, (graphs,): about one of 20 is expected. None for fewer than
    four."""
    values = np.asarray(values, dtype=float)
    if len(values) < 4:
        return None
    bands = [null_band(np.delete(values, place)) for place in range(len(values))]
    return sum(bool(value < band.low or value > band.high) for value, band in zip(values, bands, strict=True))


def agreement(rankings: np.ndarray) -> float | None:
    """The mean of Spearman's rank correlation over all pairs of rankings (n, professions): 1 where all rank the same.
    None for fewer than two rankings or three professions, and for a ranking without any difference."""
    rankings = np.asarray(rankings, dtype=float)
    if len(rankings) < 2 or rankings.shape[1] < 3 or not np.ptp(rankings, axis=1).all():
        return None
    found = np.corrcoef(rankdata(rankings, axis=1))
    return float(found[np.triu_indices(len(found), 1)].mean())


def shared_ends(rankings: np.ndarray, size: int) -> float | None:
    """The share of the `size` largest and the `size` smallest of one ranking that another has among its own; mean over
    all pairs, 0 to 1. None for fewer than two rankings (n, professions)."""
    rankings = np.asarray(rankings)
    size = min(size, rankings.shape[1] // 2)
    if len(rankings) < 2 or not size:
        return None
    orders = np.argsort(rankings, axis=1, kind="stable")
    ends = [(set(order[:size].tolist()), set(order[-size:].tolist())) for order in orders]
    shares = [len(one[end] & other[end]) / size for one, other in combinations(ends, 2) for end in (0, 1)]
    return float(np.mean(shares))
