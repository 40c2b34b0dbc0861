"""Intervals of means over targets, by scipy's bootstrap, and of variances, by the jackknife.

The bootstrap resamples targets; words of one cluster (she, her, hers; france, french) are drawn together, as sums.
Intervals are BCa (Efron 1987), which follow the skewness of percentages near 100, their level widened for few clusters
as Student's t is (Hesterberg 2015). The jackknife leaves out one word with its inflections at a time (Efron and
Tibshirani 1993, ch. 11). Since a few words may decide a variance, the degrees of freedom of Student's t follow from the
kurtosis of the words' contributions (O'Neill 2014). benchmarks/RESULTS.md shows how often all these intervals cover.

Clusters are numbers from 0 without gaps, one for each target."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import special

from mitigate.measure.base import Estimate

MOST_VARIANCE = 2500.0
"""The largest variance of percentages: half of them 0, half 100."""
BATCH = 2**22
"""Numbers drawn at a time, about 100 MiB."""
FEW_TARGETS = 20
"""The fewest different words for figures that hold for others; the paper's religion has twelve."""
TOO_SMALL = 1e-9
"""A standard error of the log of a variance that is 0 except for rounding."""
Statistic = Callable[[np.ndarray], np.ndarray]
"""A function of sums over targets, of powers 0, 1 and 2: (sums, ..., figures) to (..., figures)."""
Interval = tuple[float | None, float | None]
"""Bounds; None where a single cluster leaves nothing to resample, or nothing bounds the figure."""


@dataclass(frozen=True)
class Bootstrap:
    """Settings of intervals: level, number of resamples, and the seed that fixes the draws."""

    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0

    def mean(self, values: np.ndarray, clusters: np.ndarray, weights: np.ndarray | None = None) -> Interval:
        """The interval of the mean of values, (targets,), weighted if weights are given; a point if none differs."""
        num_clusters, weights = int(clusters.max()) + 1, np.ones(len(values)) if weights is None else weights
        if num_clusters < 2:
            return None, None
        centre = float((weights * values).sum() / weights.sum())  # keeps the sums small, and so exact
        parts = np.column_stack([weights, weights * (values - centre)])
        sizes, deviations = cluster_sums(parts, clusters, powers=(1,))[0].T
        if np.allclose(deviations, 0, atol=1e-9 * np.abs(weights * values).max()):  # rounding is not variation
            return centre, centre
        from scipy.stats import bootstrap  # half a second to load, which labels do without

        width = special.stdtrit(num_clusters - 1, (1 + self.level) / 2) * np.sqrt(num_clusters / (num_clusters - 1))
        low, high = bootstrap(
            (sizes, deviations),
            lambda sizes, deviations, axis: deviations.sum(axis) / sizes.sum(axis),
            n_resamples=self.resamples,
            batch=max(1, BATCH // deviations.size),
            paired=True,
            vectorized=True,
            axis=-1,
            confidence_level=min(2 * special.ndtr(width) - 1, 1 - 1e-12),  # two words reach from one to the other
            rng=np.random.default_rng(self.seed),
        ).confidence_interval
        return centre + float(low), centre + float(high)


def resampled_sums(sums: np.ndarray, bootstrap: Bootstrap) -> np.ndarray:
    """The sums of resampled clusters, (resamples, sums), from those of each cluster, (clusters, sums)."""
    rng, size = np.random.default_rng(bootstrap.seed), len(sums)
    step = max(1, BATCH // size)
    batches = (min(step, bootstrap.resamples - start) for start in range(0, bootstrap.resamples, step))
    return np.concatenate([rng.multinomial(size, np.full(size, 1 / size), batch) @ sums for batch in batches])


def cluster_numbers(table: pl.DataFrame, clusters: Mapping[str, str], column: str = "target") -> np.ndarray:
    """A number for each row's word, from 0 without gaps; inflections of one word have the same.

    clusters: word -> the word that stands for its cluster (hers -> she, french -> france); any other word is a cluster
    of its own."""
    return np.unique([clusters.get(word, word) for word in table[column]], return_inverse=True)[1]


def cluster_sums(values: np.ndarray, clusters: np.ndarray, powers: tuple[int, ...]) -> np.ndarray:
    """Each cluster's sum of each power of its values, (powers, clusters, figures), of values (targets, figures)."""
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


class StandardError(NamedTuple):
    """The standard error of an estimate and its degrees of freedom, (figures,) each."""

    size: np.ndarray  # infinite where the estimate without some word has no finite value
    degrees: np.ndarray  # of freedom of Student's t, at most the number of words less 1


def leave_one_out(sums: np.ndarray, statistic: Statistic) -> np.ndarray:
    """The statistic without each of the words, (words, figures), from each word's sums, (sums, words, figures)."""
    return statistic(sums.sum(axis=1, keepdims=True) - sums)


def jackknife(without: np.ndarray) -> StandardError:
    """The standard error of a statistic, from its values without each of the words, (words, figures)."""
    num_words = len(without)
    finite = np.isfinite(without).all(axis=0)
    without = np.where(finite, without, 0)
    deviations = without - without.mean(axis=0)
    squared = (deviations**2).sum(axis=0)
    size = np.where(finite, np.sqrt((num_words - 1) / num_words * squared), np.inf)
    kurtosis = num_words * (deviations**4).sum(axis=0) / np.where(squared > 0, squared, 1) ** 2
    excess = np.maximum(kurtosis - (num_words - 3) / (num_words - 1), 1e-9)
    return StandardError(size, np.minimum(2 * num_words / excess, num_words - 1))


def log_variance(sums: np.ndarray) -> np.ndarray:
    """The logarithm of the population variance; minus infinity where all values are the same."""
    with np.errstate(divide="ignore"):
        return np.log(variance_of(sums))


def variance_interval(values: np.ndarray, clusters: np.ndarray, level: float = 0.95) -> Interval:
    """The interval of the population variance of percentages (targets,), on the log scale, about the estimate that the
    jackknife corrects for its bias, and wide enough to include the estimate itself. It begins at 0 and has no upper
    bound where nothing bounds the variance of other words: all values are the same but for one word, leaving out any
    word changes as much, or there are too few. (None, None) for a single word."""
    if clusters.max() == 0:
        return None, None
    sums = cluster_sums((values - values.mean())[:, None], clusters, powers=(0, 1, 2))
    estimate, without = log_variance(sums.sum(axis=1)).item(), leave_one_out(sums, log_variance)
    error, degrees = (value.item() for value in jackknife(without))
    if not np.isfinite(without).all() or error <= TOO_SMALL:
        return 0.0, None
    centre = len(without) * estimate - (len(without) - 1) * without.mean()
    reach = special.stdtrit(degrees, (1 + level) / 2) * error
    low, high = (math.exp(min(centre + side, 700)) for side in (-reach, reach))
    if low >= MOST_VARIANCE:  # larger than any variance: there are too few words
        return 0.0, None
    low, high = min(low, math.exp(estimate)), max(min(high, MOST_VARIANCE), math.exp(estimate))
    return low, None if high >= MOST_VARIANCE else high


def mean_over_targets(table: pl.DataFrame, column: str | pl.Expr) -> Estimate:
    """The mean of a percentage over the targets that have one; None where there is none.

    Its interval is the bootstrap's, and where all values are 0, or all are 100, the rule of three (Hanley and
    Lippman-Hand 1983): if none of n words differs, up to 1 - 0.05 ** (1 / n) of all words may. It is (None, None) for a
    single word, and where all have the same percentage between 0 and 100."""
    known, values = _known(table, column)
    if not len(values):
        return Estimate(None, n=0)

    def interval(intervals: Bootstrap, clusters: Mapping[str, str]) -> Interval:
        words = cluster_numbers(known, clusters)
        if words.max() == 0 or (np.ptp(values) == 0 and 0 < values[0] < 100):
            return None, None
        if np.ptp(values):
            return intervals.mean(values, words)
        others = float(100 * (1 - (1 - intervals.level) ** (1 / (words.max() + 1))))
        return (0.0, others) if values[0] == 0 else (100 - others, 100.0)

    return Estimate(float(values.mean()), interval, len(values))


def variance_over_targets(table: pl.DataFrame, column: str | pl.Expr, unit: float = 1.0) -> Estimate:
    """The population variance (ddof 0) of a percentage over the targets that have one; None for fewer than two, which
    do not vary, and exactly 0 where all are the same. unit: that of values other than percentages."""
    known, values = _known(table, column)
    if not len(values):
        return Estimate(None, n=0)

    def interval(intervals: Bootstrap, clusters: Mapping[str, str]) -> Interval:
        low, high = variance_interval(values, cluster_numbers(known, clusters), intervals.level)
        return (None if low is None else low * unit**2), (None if high is None else high * unit**2)

    value = float(values.var()) * unit**2 if np.ptp(values) else 0.0
    return Estimate(value if len(values) > 1 else None, interval, len(values))


def _known(table: pl.DataFrame, column: str | pl.Expr) -> tuple[pl.DataFrame, np.ndarray]:
    share = pl.col(column) if isinstance(column, str) else column
    known = table.select("target", share=share).drop_nulls("share")
    return known, known["share"].cast(pl.Float64).to_numpy()
