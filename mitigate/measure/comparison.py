"""Whether two models differ: by the same targets, with an interval, a p-value and what could be detected.

One trained model is one draw, so nothing here says what made them differ; seeds.py does. The test of a
difference of variances needs targets too: of 40, with skewed percentages, it finds a difference that is not
there in up to 10 % of cases rather than 5."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import Bootstrap, Interval, cluster_sums, squared_deviations
from mitigate.measure.harms import neutral_names, overall_and_categories
from mitigate.measure.uncertainty import cluster_numbers
from mitigate.metrics import with_part

DIFFERENCES = {
    "figure": pl.String,  # "NSM", "NSV/origin" ...
    "targets": pl.Int64,  # those with statements in all that is compared
    "baseline": pl.Float64,
    "value": pl.Float64,
    "difference": pl.Float64,  # value - baseline
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "detectable": pl.Float64,  # the minimum detectable difference (80 % power)
}
"""What a comparison says of each figure; the last four are null where there is a single word to go by."""

PERMUTATIONS = 100_000
"""Of the sign-flip test, whatever intervals take: the smallest p is 1 / (1 + PERMUTATIONS), and Holm's correction
multiplies it by the number of figures, of which many models have hundreds."""
AT_ONCE = 2_000  # permutations held in memory


def between_runs(
    baseline: pl.DataFrame,
    run: pl.DataFrame,
    scorer: str,
    clusters: Mapping[str, str],
    bootstrap: Bootstrap | None = None,
) -> pl.DataFrame:
    """Two models, paired by target: a row of DIFFERENCES for each neutral mean and variance, overall and per
    category, with the p of a sign-flip test. Tables are those of harms.per_target, clusters as in
    uncertainty.neutral_intervals. Raises MitigateError when no target has statements in both."""
    bootstrap = bootstrap or Bootstrap()
    rows: list[tuple] = []
    for category, part in overall_and_categories(neutral_side_by_side([baseline, run])):
        mean_name, variance_name = (with_part(name, category) for name in neutral_names(scorer))
        numbers = cluster_numbers(part, clusters)
        first, second = part.select("run_0").to_numpy(), part.select("run_1").to_numpy()
        rows.append((mean_name, part.height, *mean_difference(first, second, numbers, bootstrap)))
        rows.append((variance_name, part.height, *variance_difference(first, second, numbers, bootstrap)))
    return pl.DataFrame(rows, schema=DIFFERENCES, orient="row").fill_nan(None)


def mean_difference(first: np.ndarray, second: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> tuple:
    """What DIFFERENCES holds, from `baseline` on, of the means of values of the same targets, (targets, 1)."""
    interval = bootstrap.mean(second - first, clusters)
    return first.mean(), second.mean(), *paired(second - first, interval, clusters, bootstrap)


def variance_difference(first: np.ndarray, second: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> tuple:
    """The same of their population variances; the values are percentages."""
    gains = squared_deviations(second) - squared_deviations(first)
    interval = bootstrap.variance_difference(first, second, clusters)
    return first.var(), second.var(), *paired(gains, interval, clusters, bootstrap)


def neutral_side_by_side(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """target, category and each table's percentage neutral as run_0, run_1 ..., of the targets that have
    statements in all. Raises MitigateError when there is none."""
    joined = tables[0].select("target", "category", run_0="neutral")
    for number, table in enumerate(tables[1:], start=1):
        column = table.select("target", pl.col("neutral").alias(f"run_{number}"))
        joined = joined.join(column, on="target", how="inner", maintain_order="left")
    joined = joined.drop_nulls()
    if joined.is_empty():
        raise MitigateError("the runs cannot be compared: no target has statements in all of them")
    return joined


def sign_flip_test(
    gains: np.ndarray, clusters: np.ndarray, permutations: int = PERMUTATIONS, seed: int = 0
) -> np.ndarray:
    """Two-sided p, (figures,), that gains (targets, figures) lie this far from 0 if each word's might as well
    have had the other sign, as it might if it did not matter which run is which."""
    sums = cluster_sums(gains, clusters, powers=(1,))[0]
    reached = np.abs(sums.sum(axis=0)) * (1 - 1e-9)  # equal sums may differ by rounding
    generator = np.random.default_rng(seed)
    as_far = np.ones(sums.shape[1])  # the signs that were seen
    for start in range(0, permutations, AT_ONCE):
        size = min(AT_ONCE, permutations - start), math.ceil(len(sums) / 8)
        drawn = generator.integers(256, size=size, dtype=np.uint8)  # a bit for each sign, the fastest way to draw them
        signs = 2.0 * np.unpackbits(drawn, axis=1, count=len(sums)) - 1
        as_far += (np.abs(signs @ sums) >= reached).sum(axis=0)
    return as_far / (1 + permutations)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values: call those below alpha real, and the chance that any is not is at most alpha.
    None, nothing to compare, stays None and does not count as a comparison."""
    known = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        adjusted[place] = largest
    return adjusted


def detectable_difference(error: float, degrees: float, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest true difference that a two-sided t-test at this level finds with this power, from the
    standard error and its degrees of freedom."""
    return float((stats.t.ppf((1 + level) / 2, degrees) + stats.t.ppf(power, degrees)) * error)


def paired(gains: np.ndarray, interval: Interval, clusters: np.ndarray, bootstrap: Bootstrap) -> tuple:
    """difference, low, high, p and detectable difference, from each target's gain, (targets, 1)."""
    sums = cluster_sums(gains - gains.mean(), clusters, powers=(1,))[0]
    if len(sums) < 2:
        return gains.mean(), *[math.nan] * 4
    error = math.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(gains)
    p = sign_flip_test(gains, clusters, seed=bootstrap.seed).item()
    detectable = detectable_difference(error, len(sums) - 1, bootstrap.level)
    return gains.mean(), interval.low.item(), interval.high.item(), p, detectable
