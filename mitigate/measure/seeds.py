"""Whether two policies differ: several models of each, trained with different seeds, about the same targets.

A hierarchical bootstrap draws seeds, then targets, and so holds both the luck of training and the choice of
words. Its quantiles are far too narrow for a handful of seeds (two seeds can only be drawn three ways), so
only its standard error is used, the part of the seeds widened by n / (n - 1), with Student's t and
Satterthwaite's degrees of freedom, at most those of the seeds: with two seeds each, little can be claimed, and that
is right."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import Bootstrap, cluster_sums, draw, mean_of, variance_of
from mitigate.measure.comparison import DIFFERENCES, detectable_difference, neutral_side_by_side
from mitigate.measure.harms import neutral_names, overall_and_categories
from mitigate.measure.uncertainty import cluster_numbers
from mitigate.metrics import with_part

Figure = Callable[[np.ndarray], np.ndarray]
"""From sums over targets, of powers 0, 1, 2 for means and variances, (sums, ..., seeds), to one figure a seed."""


def between_policies(
    baselines: Sequence[pl.DataFrame],
    runs: Sequence[pl.DataFrame],
    scorer: str,
    clusters: Mapping[str, str],
    bootstrap: Bootstrap | None = None,
) -> pl.DataFrame:
    """The rows that comparison.between_runs has, for means over the seeds of each policy: baselines and runs
    are tables of harms.per_target, one a seed. Raises MitigateError for fewer than two of either."""
    if min(len(baselines), len(runs)) < 2:
        raise MitigateError(
            f"{len(baselines)} seeds of the baseline and {len(runs)} of the other policy; what a policy does "
            "takes at least 2 seeds of each. Train more, or compare two runs, which says that two models differ."
        )
    bootstrap = bootstrap or Bootstrap()
    figures: tuple[Figure, Figure] = (lambda sums: mean_of(sums[:2])[0], lambda sums: variance_of(sums)[0])
    rows: list[tuple] = []
    for category, part in overall_and_categories(neutral_side_by_side([*baselines, *runs])):
        values = part.select(pl.col("^run_.*$")).to_numpy()
        numbers = cluster_numbers(part, clusters)
        for name, figure in zip(neutral_names(scorer), figures, strict=True):
            arms = values[:, : len(baselines)], values[:, len(baselines) :]
            first, second = (cluster_sums(arm, numbers, powers=(0, 1, 2)) for arm in arms)
            rows.append((with_part(name, category), part.height, *difference(first, second, figure, bootstrap)))
    return pl.DataFrame(rows, schema=DIFFERENCES, orient="row").fill_nan(None)


def difference(first: np.ndarray, second: np.ndarray, figure: Figure, bootstrap: Bootstrap) -> tuple:
    """baseline, value, difference, low, high, p and detectable difference of one figure, from the sums of two
    policies over the targets of each word, (sums, words, seeds) each."""
    sums = first, second
    by_seed = [figure(arm.sum(axis=1)) for arm in sums]
    baseline, value = (arm.mean() for arm in by_seed)
    num_clusters = sums[0].shape[1]
    if num_clusters < 2:
        return baseline, value, value - baseline, *[math.nan] * 4

    counts = draw(num_clusters, bootstrap.resamples, bootstrap.seed)  # the same targets for both policies
    first_drawn, second_drawn = (figure(counts @ arm) for arm in sums)  # (resamples, seeds)
    squared_error = np.var(_draw_seeds(second_drawn, bootstrap.seed + 2) - _draw_seeds(first_drawn, bootstrap.seed + 1))
    of_seeds = [arm.var(ddof=1) / len(arm) for arm in by_seed]
    of_targets = np.var(second_drawn.mean(axis=1) - first_drawn.mean(axis=1))
    sizes = [len(arm) for arm in by_seed]
    # A variance of two or three seeds may be small by luck; Satterthwaite would then promise certainty in the tail,
    # which is where a corrected p-value is read.
    degrees = min(_satterthwaite([*of_seeds, of_targets], [*sizes, num_clusters]), sum(sizes) - 2)

    error, gain = math.sqrt(squared_error), value - baseline
    width = stats.t.ppf((1 + bootstrap.level) / 2, degrees) * error
    p = 2 * stats.t.sf(abs(gain) / error, degrees) if error > 0 else float(gain == 0)
    detectable = detectable_difference(error, degrees, bootstrap.level)
    return baseline, value, gain, gain - width, gain + width, p, detectable


def of_seeds(baseline: Sequence[float], values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """The difference of the means of a figure that each seed has one of, and the bounds of its interval: Welch's, with
    at most the degrees of freedom that the seeds have together. NaN bounds where seeds are too few, or all alike.
    Raises MitigateError for fewer than one seed a side."""
    if not baseline or not values:
        raise MitigateError(f"{len(baseline)} and {len(values)} seeds; there must be one a side at least")
    gain = float(np.mean(values) - np.mean(baseline))
    sizes = [len(baseline), len(values)]
    if min(sizes) < 2:
        return gain, math.nan, math.nan
    parts = [float(np.var(arm, ddof=1)) / len(arm) for arm in (baseline, values)]
    if sum(parts) == 0:
        return gain, math.nan, math.nan
    width = stats.t.ppf((1 + level) / 2, min(_satterthwaite(parts, sizes), sum(sizes) - 2)) * math.sqrt(sum(parts))
    return gain, gain - width, gain + width


def _draw_seeds(by_seed: np.ndarray, seed: int) -> np.ndarray:
    """From a figure of each resample of targets and seed, (resamples, seeds), its mean over seeds drawn with
    replacement, (resamples,); their spread is widened to what new seeds would have."""
    resamples, num_seeds = by_seed.shape
    drawn = draw(num_seeds, resamples, seed) / num_seeds
    mean = by_seed.mean(axis=1)
    return mean + math.sqrt(num_seeds / (num_seeds - 1)) * ((drawn * by_seed).sum(axis=1) - mean)


def _satterthwaite(parts: Sequence[float], sizes: Sequence[int]) -> float:
    """The degrees of freedom of a sum of variances, each estimated from a sample of its own size."""
    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return sum(parts) ** 2 / spread if spread > 0 else math.inf
