"""Standard errors of statistics of words, by leaving out one word with all its inflections at a time (Efron and
Tibshirani 1993, ch. 11). The jackknife needs no draws, and gives the same numbers each time.



A few words may decide a variance. Its standard error is then an estimate from few, whatever the number of words, and
the degrees of freedom of Student's t follow from the kurtosis of the words' contributions (O'Neill 2014, Some useful
moment results in sampling problems). benchmarks/simulate.py shows how often the intervals cover.

Values have the shape (words, figures). Nothing here depends on labels."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mitigate.measure.bootstrap import MOST_VARIANCE, Interval, cluster_sums, variance_of

Figure = Callable[[np.ndarray], np.ndarray]
"""A function from sums over targets, of powers 0, 1, 2 for means and variances, (sums, ..., figures), to (...,
figures)."""


TOO_SMALL = 1e-9
"""A standard error of the log of a variance that is 0 except for rounding."""


class Error(NamedTuple):
    """The standard error of an estimate and its degrees of freedom, (figures,) each."""

    size: np.ndarray  # standard error; infinite where the estimate without some word has no finite value
    degrees: np.ndarray  # of freedom of Student's t, at most the number of words less 1


def without_each(sums: np.ndarray, figure: Figure) -> np.ndarray:
    """The figure without each of the words, (words, figures), from each word's sums, (sums, words, figures)."""
    return figure(sums.sum(axis=1, keepdims=True) - sums)


def jackknife(without: np.ndarray) -> Error:
    """The error of a statistic, from its values without each of the words, (words, figures)."""
    num_words = len(without)
    finite = np.isfinite(without).all(axis=0)
    apart = np.where(finite, without, 0) - np.where(finite, without, 0).mean(axis=0)
    squared = (apart**2).sum(axis=0)
    size = np.where(finite, np.sqrt((num_words - 1) / num_words * squared), np.inf)
    kurtosis = num_words * (apart**4).sum(axis=0) / np.where(squared > 0, squared, 1) ** 2
    excess = np.maximum(kurtosis - (num_words - 3) / (num_words - 1), 1e-9)
    return Error(size, np.minimum(2 * num_words / excess, num_words - 1))


def log_variance(sums: np.ndarray) -> np.ndarray:
    """The logarithm of the population variance; minus infinity where all values are the same."""
    with np.errstate(divide="ignore"):
        return np.log(variance_of(sums))


def variance_interval(values: np.ndarray, clusters: np.ndarray, level: float = 0.95) -> Interval:
    """The interval of the population variance of percentages, on the log scale, about the estimate that the jackknife
    corrects for its bias, and wide enough to include the estimate itself. It reaches from 0 to MOST_VARIANCE where
    nothing bounds the variance of other words: all values are the same, or differ by one word only, or half of the
    words have one value and half another (leaving out any of them changes as much), or the lower bound of a few words
    would exceed MOST_VARIANCE. NaN for a single word."""
    if clusters.max() == 0:
        return Interval(*np.full((2, values.shape[1]), np.nan))
    sums = cluster_sums(values - values.mean(axis=0), clusters, powers=(0, 1, 2))
    whole, without = log_variance(sums.sum(axis=1)), without_each(sums, log_variance)
    num_words, bounded = len(without), np.isfinite(without).all(axis=0)
    error = jackknife(without)
    with np.errstate(invalid="ignore", over="ignore"):  # where nothing bounds it
        centre = num_words * whole - (num_words - 1) * without.mean(axis=0)
        from scipy import special  # half a second to load, which labels without intervals do without

        reach = special.stdtrit(error.degrees, (1 + level) / 2) * error.size
        low, high = np.exp(centre - reach), np.minimum(np.exp(centre + reach), MOST_VARIANCE)
        bounded &= ~(low >= MOST_VARIANCE)  # larger than any variance: there are too few words
        bounded &= error.size > TOO_SMALL
        low, high = np.minimum(low, np.exp(whole)), np.maximum(high, np.exp(whole))
    return Interval(np.where(bounded, low, 0), np.where(bounded, high, MOST_VARIANCE))
