"""Intervals for means over targets, by the bootstrap, and for variances and differences, by the jackknife.

The bootstrap resamples targets. Words of one cluster (she, her, hers; france, french) are drawn together; the number of
targets in a resample varies with the draw. Categories are not strata: the number of words that a list has of a category
is as accidental as the words themselves, and twelve words drawn among themselves vary less than twelve new ones would.
Intervals are BCa (Efron 1987), which follow the skewness of percentages near 100, their level widened for few clusters
as Student's t is (Hesterberg 2015).

The jackknife leaves out one word with all its inflections at a time (Efron and Tibshirani 1993, ch. 11), and needs no
draws. A few words may decide a variance. Its standard error is then an estimate from few, whatever the number of words,
and the degrees of freedom of Student's t follow from the kurtosis of the words' contributions (O'Neill 2014, Some
useful moment results in sampling problems). benchmarks/RESULTS.md shows how often all these intervals cover.

Values have the shape (targets, figures) or (words, figures): many figures share one set of resamples. Clusters are
numbers from 0 without gaps, one for each target. Nothing here depends on labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

MOST_VARIANCE = 2500.0
"""The largest variance of percentages: half of them 0, half 100."""
BATCH = 2**22
"""Draws at a time, about 100 MiB: 10,000 resamples of 400 clusters."""
Figure = Callable[[np.ndarray], np.ndarray]
"""A function from sums over targets, of powers 0, 1, 2 for means and variances, (sums, ..., figures), to (...,
figures)."""


TOO_SMALL = 1e-9
"""A standard error of the log of a variance that is 0 except for rounding."""


class Interval(NamedTuple):
    """Bounds of each figure, (figures,); NaN where a single cluster leaves nothing to resample."""

    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Bootstrap:
    """Settings of intervals: level, number of resamples, and the seed that fixes the draws."""

    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0

    def mean(self, values: np.ndarray, clusters: np.ndarray) -> Interval:
        """BCa interval of the mean, a point where all values are the same."""
        centre = values.mean(axis=0)  # keeps the sums small, and so exact
        return self._around(centre, cluster_sums(values - centre, clusters, powers=(0, 1)))

    def weighted_mean(self, values: np.ndarray, weights: np.ndarray, clusters: np.ndarray) -> Interval:
        """BCa interval of the weighted mean, weights (targets, 1)."""
        centre = (weights * values).sum(axis=0) / weights.sum()
        parts = np.broadcast_to(weights, values.shape), weights * (values - centre)
        return self._around(centre, np.concatenate([cluster_sums(part, clusters, powers=(1,)) for part in parts]))

    def _around(self, centre: np.ndarray, sums: np.ndarray) -> Interval:
        """The interval from sums over each cluster's weights and weighted distances from the centre, (2, clusters,
        figures)."""
        num_clusters = sums.shape[1]
        if num_clusters < 2:
            return Interval(*np.full((2, sums.shape[2]), np.nan))
        low, high = _bca(sums, resampled(sums, self.resamples, self.seed), self.level)
        return Interval(centre + low, centre + high)


@lru_cache(maxsize=8)  # all figures of a run are over its targets, or over those of a category
def draw(num_clusters: int, resamples: int, seed: int) -> np.ndarray:
    """The number of times that each resample has each cluster, (resamples, clusters), read-only; rows sum to
    num_clusters."""
    generator = np.random.default_rng(seed)
    counts = np.empty((resamples, num_clusters), dtype=np.uint8)  # above 255 with a probability below 1e-500
    for batch in _batches(counts):
        drawn = generator.integers(num_clusters, size=batch.shape)
        drawn += num_clusters * np.arange(len(batch))[:, None]
        batch[:] = np.bincount(drawn.ravel(), minlength=batch.size).reshape(batch.shape)
    counts.setflags(write=False)
    return counts


def resampled(sums: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """The sums of each resample, (..., resamples, figures), from those of each cluster, (..., clusters, figures)."""
    counts = draw(sums.shape[-2], resamples, seed)
    return np.concatenate([batch.astype(float) @ sums for batch in _batches(counts)], axis=-2)


def _batches(counts: np.ndarray) -> list[np.ndarray]:
    """Views of the rows, BATCH numbers or a row each."""
    height = max(1, BATCH // counts.shape[1])
    return [counts[start : start + height] for start in range(0, len(counts), height)]


def cluster_numbers(table: pl.DataFrame, clusters: Mapping[str, str], column: str = "target") -> np.ndarray:
    """A number for each row's word, from 0 without gaps; inflections of one word have the same.

    clusters: word -> the word that stands for its cluster (hers -> she, french -> france); any other word is a cluster
    of its own."""
    return np.unique([clusters.get(word, word) for word in table[column]], return_inverse=True)[1]


def cluster_sums(values: np.ndarray, clusters: np.ndarray, powers: tuple[int, ...]) -> np.ndarray:
    """Each cluster's sum of each power of its values, (powers, clusters, figures)."""
    order = np.argsort(clusters, kind="stable")
    values, starts = values[order].astype(float), np.searchsorted(clusters[order], np.arange(clusters.max() + 1))
    return np.stack([np.add.reduceat(values**power, starts, axis=0) for power in powers])


def _bca(sums: np.ndarray, resampled_sums: np.ndarray, level: float) -> tuple:
    from scipy import special  # half a second to load, which labels without intervals do without

    estimate = mean_of(sums.sum(axis=1))
    influence = sums[1] - estimate * sums[0]
    estimates = np.sort(mean_of(resampled_sums).T)  # (figures, resamples)
    num_clusters, resamples = sums.shape[1], estimates.shape[1]

    below = ((estimates < estimate[:, None]).mean(axis=1) + (estimates <= estimate[:, None]).mean(axis=1)) / 2
    bias = special.ndtri(np.clip(below, 1 / resamples, 1 - 1 / resamples))
    spread = (influence**2).sum(axis=0) ** 1.5
    acceleration = (influence**3).sum(axis=0) / np.where(spread > 0, 6 * spread, 1)
    width = special.stdtrit(num_clusters - 1, (1 + level) / 2) * np.sqrt(num_clusters / (num_clusters - 1))

    def bound(shift: float) -> np.ndarray:
        share = special.ndtr(bias + (bias + shift) / np.maximum(1 - acceleration * (bias + shift), 0.01))
        rank = np.rint(share * (resamples - 1)).astype(int)
        return np.take_along_axis(estimates, rank[:, None], axis=1)[:, 0]

    return bound(-width), bound(width)


def mean_of(sums: np.ndarray) -> np.ndarray:
    """The mean, from sums over targets of powers 0 and 1, (sums, ..., figures)."""
    return sums[1] / sums[0]


def variance_of(sums: np.ndarray) -> np.ndarray:
    """The population variance, from sums of powers 0, 1 and 2."""
    squares = sums[2] / sums[0]
    variance = squares - mean_of(sums) ** 2
    return np.where(variance > 1e-12 * squares, variance, 0.0)  # rounding is not variation


def exact_variance(values: np.ndarray) -> float:
    """The population variance of all values; exactly 0 where they are the same, without a rounding error of 1e-29."""
    return float(values.var()) if np.ptp(values) else 0.0


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
