"""Differences between two models over the same targets, with intervals, and the tests and corrections that comparisons
share. One trained model is one draw, so these differences have no known cause; seeds.py compares policies."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import cluster_sums, exact_variance, mean_of
from mitigate.measure.change import CHANGE, Change, How
from mitigate.measure.jackknife import Figure, jackknife, log_variance, without_each

FIGURE = {
    "figure": pl.String,  # "NSM", "NSV/origin" ...
    "targets": pl.Int64,  # those with statements in all compared runs
}
FIXED = ("low", "high", "p", "error", "degrees")
BOTH, SEEDS, TARGETS = "seeds and targets", "seeds", "targets"
STATISTICS = CHANGE | {
    "drawn": pl.String,  # the variation that the interval and p include: BOTH, SEEDS, TARGETS
    **{f"fixed_{name}": pl.Float64 for name in FIXED},  # of the analysis of seeds with fixed targets
}
DIFFERENCES = FIGURE | CHANGE
"""The columns of each figure in a comparison of resources."""
COMPARED = FIGURE | STATISTICS
"""The columns of each figure in a comparison of policies, or of two models."""

NO_VARIANCE = Change(math.nan, math.nan, "ratio")
"""The change of the variance over a single target."""
PERMUTATIONS = 100_000
"""Permutations of the sign-flip test: the smallest p is 1 / (1 + PERMUTATIONS)."""
AT_ONCE = 2_000  # permutations held in memory


def row_of(figure: str, num_targets: int, change: Change, level: float = 0.95) -> dict:
    """A row of DIFFERENCES."""
    return {"figure": figure, "targets": num_targets, **change.row(level)}


def mean_change(first: np.ndarray, second: np.ndarray, clusters: np.ndarray) -> Change:
    """The change of the mean of values of the same targets, (targets, 1)."""
    before, after = (cluster_sums(side, clusters, powers=(0, 1)) for side in (first, second))
    return paired(before, after, mean_of)


def variance_change(first: np.ndarray, second: np.ndarray, clusters: np.ndarray) -> Change:
    """The change of the population variance; without values for a single target, which has none."""
    if len(first) == 1:
        return NO_VARIANCE
    before, after = (cluster_sums(side - side.mean(), clusters, powers=(0, 1, 2)) for side in (first, second))
    found = paired(before, after, log_variance, "ratio")
    return Change(exact_variance(first), exact_variance(second), "ratio", found.error, found.degrees)


def paired(before: np.ndarray, after: np.ndarray, figure: Figure, how: How = "difference") -> Change:
    """The change of a figure of sums over the targets of each word, (sums, words, 1); figure: for a ratio, its
    logarithm."""
    first, second = (float(figure(side.sum(axis=1)).item()) for side in (before, after))
    error, degrees = math.nan, math.inf
    if before.shape[1] > 1:
        with np.errstate(invalid="ignore"):  # both may be without variance
            found = jackknife(without_each(after, figure) - without_each(before, figure))
        error, degrees = found.size.item(), found.degrees.item()
    if how == "ratio":
        first, second = math.exp(first), math.exp(second)
    return Change(first, second, how, error, degrees)


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
    """Two-sided p-values, (figures,), of the means of gains (targets, figures) if the sign of each word's gain is
    arbitrary, as it is where the two sides do not differ. Not for squared deviations: with skewed percentages it finds
    differences of variances that do not exist in up to 74 % of cases."""
    sums = cluster_sums(gains, clusters, powers=(1,))[0]
    reached = np.abs(sums.sum(axis=0)) * (1 - 1e-9)  # equal sums may differ by rounding
    generator = np.random.default_rng(seed)
    as_far = np.ones(sums.shape[1])  # the observed signs
    for start in range(0, permutations, AT_ONCE):
        size = min(AT_ONCE, permutations - start), math.ceil(len(sums) / 8)
        drawn = generator.integers(256, size=size, dtype=np.uint8)  # a bit for each sign, the fastest way to draw them
        signs = 2.0 * np.unpackbits(drawn, axis=1, count=len(sums)) - 1
        as_far += (np.abs(signs @ sums) >= reached).sum(axis=0)
    return as_far / (1 + permutations)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values: if those below alpha are called real, the probability that any of them is not is at
    most alpha. None (no comparison) stays None and does not count."""
    ascending = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, place) in enumerate(ascending):
        largest = max(largest, min(1.0, (len(ascending) - rank) * value))
        adjusted[place] = largest
    return adjusted
