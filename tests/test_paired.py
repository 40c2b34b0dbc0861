"""Weighted means compared, by numbers that can be checked by hand."""

import math

import numpy as np
import pytest

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.paired import weighted_difference

QUICK = Bootstrap(resamples=500)


def one_seed(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_an_item_counts_as_its_weight_says() -> None:
    """(3 x 1 + 1 x 5) / 4 = 2 against (3 x 2 + 1 x 3) / 4 = 2.25."""
    weights = np.array([3, 1])
    found = weighted_difference(one_seed(1, 5), one_seed(2, 3), weights, np.arange(2), QUICK)
    assert found[:3] == pytest.approx((2, 2.25, 0.25))
    assert found[3] <= 0.25 <= found[4]


def test_the_same_gain_everywhere_leaves_no_doubt() -> None:
    before = one_seed(*np.linspace(1, 9, 30))
    found = weighted_difference(before, before + 2, np.arange(1, 31), np.arange(30), QUICK)
    assert found[2:] == pytest.approx((2, 2, 2))


def test_equal_weights_give_the_interval_of_a_plain_mean() -> None:
    values = np.random.default_rng(0).normal(size=(40, 1))
    clusters = np.arange(40) // 2
    found = QUICK.weighted_mean(values, np.ones((40, 1)), clusters)
    plain = QUICK.mean(values, clusters)
    assert (found.low.item(), found.high.item()) == pytest.approx((plain.low.item(), plain.high.item()))


def test_several_seeds_widen_the_interval() -> None:
    """Each seed moves all items alike, so that only seeds vary."""
    before, after = np.tile([10.0, 12.0], (30, 1)), np.tile([20.0, 24.0], (30, 1))
    first, second, difference, low, high = weighted_difference(before, after, np.ones(30), np.arange(30), QUICK)
    assert (first, second, difference) == pytest.approx((11, 22, 11))
    assert low < 5 < 17 < high


def test_a_single_cluster_has_no_interval() -> None:
    found = weighted_difference(one_seed(1, 2), one_seed(2, 3), np.ones(2), np.zeros(2, dtype=int), QUICK)
    assert found[2] == 1
    assert math.isnan(found[3])
    assert math.isnan(found[4])


def test_one_model_is_not_set_against_several() -> None:
    with pytest.raises(MitigateError, match="compare one model with one, or at least 2 seeds with at least 2"):
        weighted_difference(np.ones((3, 1)), np.ones((3, 2)), np.ones(3), np.arange(3), QUICK)
