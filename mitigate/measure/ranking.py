"""How well a score ranks what people accept above what they do not: the area under the ROC curve, and the same of a
single rater, as a ceiling to compare with."""

import numpy as np
from scipy.stats import rankdata


def auc(scores: np.ndarray, valid: np.ndarray) -> float | None:
    """The chance that a valid item has a higher score than one that is not, ties counted half: the area under the ROC
    curve. scores (n,), valid (n,) bool. .5 is chance; None where all are valid, or none is."""
    valid = np.asarray(valid, dtype=bool)
    above, below = int(valid.sum()), int((~valid).sum())
    if not above or not below:
        return None
    ranks = rankdata(scores)
    return float((ranks[valid].sum() - above * (above + 1) / 2) / (above * below))


def auc_of_a_rater(votes: np.ndarray) -> float | None:
    """The same of one rater's vote as the score, where the two others agree on what is valid: the mean over the three.

    votes: (n, 3) bool. The vote has two values and a score has many, so a score may exceed it. None as in auc."""
    found = []
    for rater in range(3):
        others = np.delete(votes, rater, axis=1)
        agreed = others[:, 0] == others[:, 1]
        found.append(auc(votes[agreed, rater], others[agreed, 0]))
    return None if None in found else float(np.mean(np.array(found, dtype=float)))
