"""The intervals and tests that comparisons had before variances were compared by their ratio, as they were: what
benchmarks/simulate.py holds the present ones against. Nothing else imports this."""

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from mitigate.measure.bootstrap import MOST_VARIANCE, Bootstrap, cluster_sums, draw, mean_of, variance_of
from mitigate.measure.comparison import sign_flip_test

Bounds = tuple[np.ndarray, np.ndarray]


def variance(values: np.ndarray, bootstrap: Bootstrap) -> Bounds:
    """The studentised bootstrap of the logarithm of the variance, of values (targets, figures)."""
    sums = cluster_sums(values - values.mean(axis=0), np.arange(len(values)), powers=(0, 1, 2))
    counts = draw(len(values), bootstrap.resamples, bootstrap.seed)
    with np.errstate(over="ignore"):
        low, high = np.exp(_studentised(sums, counts, bootstrap.level))
    return low, np.minimum(high, MOST_VARIANCE)


def means_differ(first: np.ndarray, second: np.ndarray, bootstrap: Bootstrap) -> tuple[Bounds, np.ndarray]:
    """The BCa interval of the difference of two models' means, and the p of the sign-flip test."""
    interval = bootstrap.mean(second - first, np.arange(len(first)))
    return (interval.low, interval.high), sign_flip_test(second - first, np.arange(len(first)), bootstrap.resamples)


def variances_differ(first: np.ndarray, second: np.ndarray, bootstrap: Bootstrap) -> tuple[Bounds, np.ndarray]:
    """The interval of the difference of two models' variances (MOVER), and the p of the sign-flip test of squared
    deviations."""
    (low, high), (low_second, high_second) = variance(first, bootstrap), variance(second, bootstrap)
    squared = [(side - side.mean(axis=0)) ** 2 for side in (first, second)]
    variances = [side.mean(axis=0) for side in squared]
    apart = [side - mean for side, mean in zip(squared, variances, strict=True)]
    scale = np.sqrt((apart[0] ** 2).sum(axis=0) * (apart[1] ** 2).sum(axis=0))
    correlation = (apart[0] * apart[1]).sum(axis=0) / np.where(scale > 0, scale, 1)

    def reach(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(one**2 + other**2 - 2 * correlation * one * other, 0))

    difference = variances[1] - variances[0]
    bounds = (
        difference - reach(variances[1] - low_second, high - variances[0]),
        difference + reach(high_second - variances[1], variances[0] - low),
    )
    return bounds, sign_flip_test(squared[1] - squared[0], np.arange(len(first)), bootstrap.resamples)


def of_seeds(
    first: np.ndarray, second: np.ndarray, figure: Callable, bootstrap: Bootstrap
) -> tuple[float, float, float]:
    """The bounds and the p of the difference of a figure's means over seeds, (targets, seeds) each: the standard error
    of a hierarchical bootstrap, with Student's t."""
    clusters = np.arange(len(first))
    sums = [cluster_sums(side, clusters, powers=(0, 1, 2)) for side in (first, second)]
    by_seed = [figure(side.sum(axis=1)) for side in sums]
    counts = draw(len(first), bootstrap.resamples, bootstrap.seed)
    drawn = [figure(counts @ side) for side in sums]
    with_seeds = [_draw_seeds(side, bootstrap.seed + 1 + place) for place, side in enumerate(drawn)]
    error = math.sqrt(np.var(with_seeds[1] - with_seeds[0]))
    parts = [side.var(ddof=1) / len(side) for side in by_seed]
    parts.append(np.var(drawn[1].mean(axis=1) - drawn[0].mean(axis=1)))
    sizes = [first.shape[1], second.shape[1], len(first)]
    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    degrees = min(sum(parts) ** 2 / spread if spread > 0 else math.inf, sizes[0] + sizes[1] - 2)
    gain = by_seed[1].mean() - by_seed[0].mean()
    width = stats.t.ppf((1 + bootstrap.level) / 2, degrees) * error
    p = 2 * stats.t.sf(abs(gain) / error, degrees) if error > 0 else float(gain == 0)
    return gain - width, gain + width, float(p)


def _draw_seeds(by_seed: np.ndarray, seed: int) -> np.ndarray:
    resamples, num_seeds = by_seed.shape
    drawn = draw(num_seeds, resamples, seed) / num_seeds
    mean = by_seed.mean(axis=1)
    return mean + math.sqrt(num_seeds / (num_seeds - 1)) * ((drawn * by_seed).sum(axis=1) - mean)


def _studentised(sums: np.ndarray, counts: np.ndarray, level: float) -> Bounds:
    estimate, gradient = _log_variance(sums.sum(axis=1))
    error = _standard_errors(sums, gradient, np.ones(sums.shape[1]))
    estimates, gradients = _log_variance(counts @ sums)
    errors = _standard_errors(sums, gradients, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num((estimates - estimate) / errors, nan=0.0, posinf=np.inf, neginf=-np.inf)
        ratios = np.sort(ratios, axis=0)
        ends = [ratios[round(tail * (len(counts) - 1))] for tail in ((1 + level) / 2, (1 - level) / 2)]
        low, high = (estimate - np.where(np.isinf(end), end, end * error) for end in ends)
    return low, high


def _standard_errors(sums: np.ndarray, gradient: np.ndarray, counts: np.ndarray) -> np.ndarray:
    squared = np.zeros(gradient.shape[1:])
    for i in range(len(sums)):
        for j in range(len(sums)):
            squared += gradient[i] * gradient[j] * (counts @ (sums[i] * sums[j]))
    num_clusters = sums.shape[1]
    return np.sqrt(np.maximum(squared, 0) * num_clusters / (num_clusters - 1))


def _log_variance(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    variances, mean = variance_of(sums), mean_of(sums)
    gradient = np.stack([mean**2 - variances, -2 * mean, np.ones_like(mean)]) / sums[0]
    with np.errstate(divide="ignore"):
        return np.log(variances), gradient / np.where(variances > 0, variances, np.inf)
