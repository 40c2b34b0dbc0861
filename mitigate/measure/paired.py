"""How much a mean differs between models that were asked the same: of the surprise at each test triple, of the share
of each target's triples that are valid. As for harms, several seeds of each speak of a policy, fewer of two models."""

import math

import numpy as np

from mitigate.errors import MitigateError
from mitigate.measure import seeds
from mitigate.measure.bootstrap import Bootstrap, cluster_sums, mean_of

Difference = tuple[float, float, float, float, float]
"""baseline, value, value - baseline, and the bounds of the difference; NaN where a single cluster leaves none."""


def weighted_difference(
    baseline: np.ndarray, values: np.ndarray, weights: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap
) -> Difference:
    """The difference of weighted means over items, from baseline and values, (items, seeds) each; weights, (items,),
    say how much an item counts, clusters, (items,), which belong together.

    With two seeds or more on both sides the interval holds the luck of training too, otherwise that of the items
    alone. Raises MitigateError for one side with several seeds and another with one."""
    if baseline.shape[1] > 1 and values.shape[1] > 1:
        before, after = (_sums(side, weights, clusters) for side in (baseline, values))
        return seeds.difference(before, after, lambda sums: mean_of(sums)[0], bootstrap)[:5]
    if baseline.shape[1] > 1 or values.shape[1] > 1:
        raise MitigateError("compare one model with one, or at least 2 seeds with at least 2")
    column = weights[:, None].astype(float)
    first, second = (float((column * side).sum() / column.sum()) for side in (baseline, values))
    if clusters.max() == 0:
        return first, second, second - first, math.nan, math.nan
    interval = bootstrap.weighted_mean(values - baseline, column, clusters)
    return first, second, second - first, interval.low.item(), interval.high.item()


def _sums(values: np.ndarray, weights: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Each cluster's weight and its weighted sum of values, (2, clusters, seeds)."""
    weight = np.broadcast_to(weights[:, None], values.shape)
    return np.concatenate([cluster_sums(part, clusters, powers=(1,)) for part in (weight, weight * values)])
