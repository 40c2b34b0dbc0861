"""How much a mean differs between models that were asked the same: of the surprise at each test triple, of the share
of each target's triples that are valid. As for harms, several seeds of each speak of a policy, fewer of two models."""

import numpy as np

from mitigate.errors import MitigateError
from mitigate.measure import comparison, seeds
from mitigate.measure.bootstrap import cluster_sums, mean_of
from mitigate.measure.change import Change


def weighted_difference(
    baseline: np.ndarray, values: np.ndarray, weights: np.ndarray, clusters: np.ndarray
) -> seeds.Changes:
    """Of weighted means over items, from baseline and values, (items, seeds) each; weights, (items,), say how much an
    item counts, clusters, (items,), which belong together.

    With two seeds or more on both sides the error holds the variation between trainings too, otherwise that of the
    items alone, and with items fixed there is none. Raises MitigateError for one side with several seeds and
    another with one."""
    before, after = (_sums(side, weights, clusters) for side in (baseline, values))
    if baseline.shape[1] > 1 and values.shape[1] > 1:
        return seeds.changes(before, after, mean_of)
    if baseline.shape[1] > 1 or values.shape[1] > 1:
        raise MitigateError("compare one model with one, or at least 2 seeds with at least 2")
    found = comparison.paired(before, after, mean_of)
    return seeds.Changes(found, Change(found.baseline, found.value))


def _sums(values: np.ndarray, weights: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Each cluster's weight and its weighted sum of values, (2, clusters, seeds)."""
    weight = np.broadcast_to(weights[:, None], values.shape)
    return np.concatenate([cluster_sums(part, clusters, powers=(1,)) for part in (weight, weight * values)])
