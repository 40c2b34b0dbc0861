"""Weighted means compared, by numbers that can be checked by hand."""

import math

import numpy as np
import pytest

from mitigate.errors import MitigateError
from mitigate.measure.paired import weighted_difference


def one_seed(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_an_item_counts_as_its_weight_says() -> None:
    """(3 x 1 + 1 x 5) / 4 = 2 against (3 x 2 + 1 x 3) / 4 = 2.25."""
    found, fixed = weighted_difference(one_seed(1, 5), one_seed(2, 3), np.array([3, 1]), np.arange(2))
    assert (found.baseline, found.value, found.size) == pytest.approx((2, 2.25, 0.25))
    low, high = found.bounds()
    assert low < 0.25 < high
    assert fixed.size == found.size
    assert math.isnan(fixed.p)  # with the items fixed, one model each says nothing of other seeds


def test_equal_weights_give_the_error_of_a_plain_mean() -> None:
    values = np.random.default_rng(0).normal(size=(40, 1))
    found, _ = weighted_difference(np.zeros((40, 1)), values, np.ones(40), np.arange(40))
    assert found.error == pytest.approx(values.std(ddof=1) / 40**0.5)


def test_several_seeds_widen_the_interval() -> None:
    """Each seed moves all items alike, so that only seeds vary."""
    before, after = np.tile([10.0, 12.0], (30, 1)), np.tile([20.0, 24.0], (30, 1))
    found, fixed = weighted_difference(before, after, np.ones(30), np.arange(30))
    assert (found.baseline, found.value, found.size) == pytest.approx((11, 22, 11))
    assert found.error == fixed.error == pytest.approx(5**0.5)
    low, high = found.bounds()
    assert low < 5 < 17 < high


def test_a_single_cluster_has_no_interval() -> None:
    found, _ = weighted_difference(one_seed(1, 2), one_seed(2, 3), np.ones(2), np.zeros(2, dtype=int))
    assert found.size == 1
    assert np.isnan(found.bounds()).all()


def test_one_model_is_not_set_against_several() -> None:
    with pytest.raises(MitigateError, match="compare one model with one, or at least 2 seeds with at least 2"):
        weighted_difference(np.ones((3, 1)), np.ones((3, 2)), np.ones(3), np.arange(3))
