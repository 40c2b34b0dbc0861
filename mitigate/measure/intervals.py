"""Intervals of means over targets, by scipy's bootstrap, and of variances, by the jackknife.

The bootstrap resamples targets. Words of one cluster (she, her, hers; france, french) are drawn together, as sums; the
number of targets in a resample varies with the draw. Categories are not strata: the number of words that a list has of
a category is as accidental as the words themselves, and twelve words drawn among themselves vary less than twelve new
ones would. Intervals are BCa (Efron 1987; scipy.stats.bootstrap, paired), which follow the skewness of percentages near
100, their level widened for few clusters as Student's t is (Hesterberg 2015).

The jackknife leaves out one word with all its inflections at a time (Efron and Tibshirani 1993, ch. 11), and needs no
draws. A few words may decide a variance. Its standard error is then an estimate from few, whatever the number of words,
and the degrees of freedom of Student's t follow from the kurtosis of the words' contributions (O'Neill 2014, Some
useful moment results in sampling problems). benchmarks/RESULTS.md shows how often all these intervals cover.

Values have the shape (targets, figures) or (words, figures): many figures share one set of resamples. Clusters are
numbers from 0 without gaps, one for each target. Nothing here depends on labels."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

MOST_VARIANCE = 2500.0
"""The largest variance of percentages: half of them 0, half 100."""
BATCH = 2**22
"""Numbers drawn at a time, about 100 MiB."""
Figure = Callable[[np.ndarray], np.ndarray]
"""A function from sums over targets, of powers 0, 1, 2 for means and variances, (sums, ..., figures), to (...,
figures)."""


FEW_TARGETS = 20
"""The fewest different words for figures that hold for others; the paper's religion has twelve."""
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
        """The interval of the mean, a point where all values are the same."""
        return self.weighted_mean(values, np.ones((len(values), 1)), clusters)

    def weighted_mean(self, values: np.ndarray, weights: np.ndarray, clusters: np.ndarray) -> Interval:
        """The interval of the weighted mean, weights (targets, 1)."""
        num_clusters = int(clusters.max()) + 1
        if num_clusters < 2:
            return Interval(*np.full((2, values.shape[1]), np.nan))
        from scipy.stats import bootstrap, norm, t  # half a second to load, which labels do without

        centre = (weights * values).sum(axis=0) / weights.sum()  # keeps the sums small, and so exact
        parts = np.broadcast_to(weights, values.shape), weights * (values - centre)
        whole, apart = (cluster_sums(part, clusters, powers=(1,))[0].T for part in parts)  # (figures, clusters)
        width = t.ppf((1 + self.level) / 2, num_clusters - 1) * np.sqrt(num_clusters / (num_clusters - 1))
        varies = np.ptp(apart, axis=1) > 0
        ends = np.zeros((2, len(centre)))
        if varies.any():
            found = bootstrap(
                (whole[varies], apart[varies]),
                lambda whole, apart, axis: apart.sum(axis) / whole.sum(axis),
                n_resamples=self.resamples,
                batch=max(1, BATCH // apart.size),
                paired=True,
                vectorized=True,
                axis=-1,
                confidence_level=min(2 * norm.cdf(width) - 1, 1 - 1e-12),  # two words reach from one to the other
                rng=np.random.default_rng(self.seed),
            )
            ends[:, varies] = found.confidence_interval
        return Interval(*(centre + ends))


def resampled_sums(sums: np.ndarray, bootstrap: Bootstrap) -> np.ndarray:
    """The sums of resampled clusters, (resamples, sums), from those of each cluster, (clusters, sums)."""
    drawn, size = np.random.default_rng(bootstrap.seed), len(sums)
    step = max(1, BATCH // size)
    batches = (min(step, bootstrap.resamples - start) for start in range(0, bootstrap.resamples, step))
    return np.concatenate([drawn.multinomial(size, np.full(size, 1 / size), batch) @ sums for batch in batches])


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


def mean_over_targets(
    table: pl.DataFrame, clusters: Mapping[str, str], bootstrap: Bootstrap
) -> tuple[float | None, float | None, float | None]:
    """The mean of the percentages of targets (target, share) with the bounds of its interval; None without targets, and
    for bounds of fewer than two words."""
    if table.is_empty():
        return None, None, None
    values = table["share"].to_numpy()[:, None]
    interval = share_interval(values, cluster_numbers(table, clusters), bootstrap)
    low, high = (None if math.isnan(end.item()) else end.item() for end in interval)
    return float(values.mean()), low, high


def share_interval(values: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> Interval:
    """The interval of the mean of percentages of targets, (targets, figures): the bootstrap's, and where all are 0, or
    all are 100, the rule of three (Hanley and Lippman-Hand 1983), without rounding. If none of n words differs, up to 1
    - 0.05 ** (1 / n) of all words may differ, about 3 / n, and these may differ completely. n counts words and not
    statements, since statements about one word are correlated. NaN for a single word, and where all have the same
    percentage between 0 and 100."""
    interval = bootstrap.mean(values, clusters)
    others = 100 * (1 - (1 - bootstrap.level) ** (1 / (clusters.max() + 1)))
    constant, first = (values == values[0]).all(axis=0) & ~np.isnan(interval.low), values[0]
    return Interval(
        np.select([~constant, first == 100, first == 0], [interval.low, 100 - others, 0], np.nan),
        np.select([~constant, first == 0, first == 100], [interval.high, others, 100], np.nan),
    )


def as_bound(value: float) -> float | None:
    """A bound of an interval of percentages; None for NaN and for MOST_VARIANCE, which bounds all variances."""
    return None if math.isnan(value) or value >= MOST_VARIANCE else float(value)
