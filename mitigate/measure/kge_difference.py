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
    the same numbers. There is no interval for fewer than two trainings of either, nor where those of neither side
    differ: further ones need not be the same."""
    first, second = (np.asarray(values, dtype=float) for values in (first, second))
    change = float(second.mean() - first.mean())
    if min(len(first), len(second)) < 2 or not (np.ptp(first) or np.ptp(second)):
        return Difference(change, None, None)
    found = ttest_ind(second, first, equal_var=False).confidence_interval(LEVEL)
    return Difference(change, float(found.low), float(found.high))
