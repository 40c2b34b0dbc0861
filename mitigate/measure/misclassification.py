"""The share of polarised statements corrected for the errors of the scorer that labelled them (Rogan and Gladen 1978).

A scorer with sensitivity Se and specificity Sp labels p = pi Se + (1 - pi)(1 - Sp) of the statements polarised where pi
are; so pi = (p + Sp - 1) / (Se + Sp - 1). It assumes that Se and Sp are the same as on the statements on which the
scorer was measured: they differ for another source, or another mix of statements."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
WORTH = 0.1
"""Least Se + Sp - 1: a scorer nearer to chance corrects nothing."""


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a scorer on one source, from 0 to 1, with standard errors. sensitivity: the share it labels
    polarised among statements that most raters find polarised. specificity: the share it labels neutral among the
    others."""

    sensitivity: float
    sensitivity_error: float
    specificity: float
    specificity_error: float


def corrected_share(share: float, error: float, accuracy: Accuracy) -> tuple[float, float, float] | None:
    """The share of truly polarised statements, from 0 to 1, with its 95 % interval, from the share that the scorer
    labels polarised and its standard error.

    The variance is Rogan and Gladen's (1978), which includes the errors of sensitivity and specificity. Values are
    clipped to 0 and 1. None where the scorer is nearly at chance, and where the whole interval is beyond 0 or 1: then
    sensitivity and specificity are not those of these statements."""
    gain = accuracy.sensitivity + accuracy.specificity - 1
    if gain < WORTH:
        return None
    found = (share + accuracy.specificity - 1) / gain
    variance = error**2 + (found * accuracy.sensitivity_error) ** 2 + ((1 - found) * accuracy.specificity_error) ** 2
    reach = Z * variance**0.5 / gain
    if found + reach < 0 or found - reach > 1:
        return None
    low, value, high = (min(max(bound, 0.0), 1.0) for bound in (found - reach, found, found + reach))
    return value, low, high


def share_error(polarised: np.ndarray, statements: np.ndarray, clusters: np.ndarray) -> float:
    """The standard error of a pooled share, sum of polarised over sum of statements, when targets of one cluster vary
    together: that of a ratio, from each cluster's influence on it. NaN where there are fewer than two clusters.

    polarised, statements: of each target, (targets,); clusters: a number for each target, from 0 without gaps."""
    sums = np.stack([np.bincount(clusters, part) for part in (polarised, statements)])
    above, below = sums.sum(axis=1)
    influence = (sums[0] - above / below * sums[1]) / below
    size = len(influence)
    return float(np.sqrt((influence**2).sum() * size / (size - 1))) if size > 1 else np.nan


def standard_error(low: float, high: float) -> float:
    """The standard error of a figure with this 95 % interval."""
    return (high - low) / (2 * Z)
