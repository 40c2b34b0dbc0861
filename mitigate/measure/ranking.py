"""Areas under the receiver operating characteristic (ROC) curve: of scores of valid items, and of a scorer's strengths,
or how well these order statements by the label of most raters.

The latter is the mean of two areas: of prejudice against all other statements by low strengths, and of favouritism
against all others by high ones. 0.5 is chance. Unlike kappa it does not depend on a scorer's thresholds."""

import numpy as np

from mitigate.measure.agreement import CLASSES
from mitigate.measure.confusion import ratio

LEVELS = 50
"""Levels of strength in resamples: neighbouring strengths are one level where there are more. The figure itself has
them all."""


def level_counts(truth: np.ndarray, strength: np.ndarray, most: int | None = None) -> np.ndarray:
    """One row for each item with a 1 in the column of its class and its level of strength, (items, 3 * levels). most:
    the number of levels, if there are more strengths; None: a level for each strength.

    truth: labels -1, 0, 1, (items,)."""
    levels = np.unique(strength, return_inverse=True)[1]
    number = int(levels.max()) + 1
    if most is not None and number > most:
        levels, number = levels * most // number, most
    counts = np.zeros((len(truth), len(CLASSES) * number))
    counts[np.arange(len(truth)), number * np.searchsorted(list(CLASSES), truth) + levels] = 1
    return counts


def area(counts: np.ndarray) -> np.ndarray:
    """The mean of the areas of prejudice and favouritism from sums of level_counts, (..., 3 * levels) -> (...,); one
    alone where the other class does not occur, NaN where neither does."""
    by_class = counts.reshape(*counts.shape[:-1], len(CLASSES), -1)
    prejudice, favouritism, all_of = by_class[..., 0, :], by_class[..., -1, :], by_class.sum(axis=-2)
    areas = np.stack([_below(prejudice, all_of - prejudice), _below(all_of - favouritism, favouritism)])
    known = ~np.isnan(areas)
    return ratio(np.nan_to_num(areas).sum(axis=0), known.sum(axis=0))


def _below(lower: np.ndarray, higher: np.ndarray) -> np.ndarray:
    """The share of pairs in which the item of `lower` has the lower level, equal levels counting half."""
    until = np.cumsum(lower, axis=-1) - lower / 2
    return ratio((until * higher).sum(axis=-1), lower.sum(axis=-1) * higher.sum(axis=-1))


def auc(scores: np.ndarray, valid: np.ndarray) -> float | None:
    """The area under the ROC curve: the probability that a valid item has a higher score than an invalid one, ties
    counted half. scores (n,), valid (n,) bool. .5 is chance; None where all are valid, or none is."""
    valid = np.asarray(valid, dtype=bool)
    above, below = int(valid.sum()), int((~valid).sum())
    if not above or not below:
        return None
    from scipy.stats import rankdata  # a second to load, which filters and labels do without

    ranks = rankdata(scores)
    return float((ranks[valid].sum() - above * (above + 1) / 2) / (above * below))


def auc_of_a_rater(votes: np.ndarray) -> float | None:
    """The area under the ROC curve with one rater's vote as the score, on items where the two others agree; mean over
    the three. votes: (n, 3) bool. A vote has two values and a score has many, so that a score may exceed it. None as in
    auc."""
    found = []
    for rater in range(3):
        others = np.delete(votes, rater, axis=1)
        agreed = others[:, 0] == others[:, 1]
        found.append(auc(votes[agreed, rater], others[agreed, 0]))
    return None if None in found else float(np.mean(np.array(found, dtype=float)))
