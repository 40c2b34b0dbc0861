"""How far the figures of two sets of trainings differ."""

from typing import NamedTuple

import numpy as np
from scipy.stats import ttest_ind

LEVEL = 0.95


class Difference(NamedTuple):
    """The mean of the second minus that of the first, with Welch's interval of 95 %; None where it is not known."""

    change: float
    low: float | None
    high: float | None


def between_trainings(first: np.ndarray, second: np.ndarray) -> Difference:
    """Of a figure of each training of both, (n,) and (m,). Trainings are independent draws, also where their seeds have
    the same numbers. Fewer than two trainings of either have no interval."""
    first, second = (np.asarray(values, dtype=float) for values in (first, second))
    change = float(second.mean() - first.mean())
    if min(len(first), len(second)) < 2:
        return Difference(change, None, None)
    if not np.ptp(first) and not np.ptp(second):
        return Difference(change, change, change)
    found = ttest_ind(second, first, equal_var=False).confidence_interval(LEVEL)
    return Difference(change, float(found.low), float(found.high))
