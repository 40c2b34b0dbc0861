"""Figures of embeddings by hand: intervals and bands, parity, amplification, leakage."""

import numpy as np
import pytest

from mitigate.measure.kge_null import agreement, null_band, outside_of_others, over_seeds, shared_ends, within
from mitigate.measure.kge_parity import (
    amplification,
    distance_by_chance,
    parity_distance,
    predictive_parity,
    shares_of_groups,
)
from mitigate.measure.leakage import PROBES, leakage, leakage_by_chance

IS_A = np.array([True] * 4 + [False] * 2)


def test_the_interval_of_a_mean_over_seeds():
    found = over_seeds(np.array([1.0, 2.0, 3.0]))
    assert found.mean == 2
    assert found.high - 2 == pytest.approx(4.30265 / np.sqrt(3), rel=1e-4)  # Student's t with 2 degrees of freedom
    one = over_seeds(np.array([[1.0, 5.0]]))
    assert one.mean.tolist() == [1, 5]
    assert np.isnan(one.low).all()
    assert within(found, 0, 3).high == 3


def test_the_band_is_wider_than_the_interval_and_holds_the_others():
    values = np.array([1.0, 2.0, 3.0])
    assert null_band(values).high - 2 == pytest.approx(4.30265 * np.sqrt(4 / 3), rel=1e-4)
    assert np.isnan(null_band(values[:2]).low)
    assert np.isnan(null_band(np.zeros(4)).low)  # the same value: the next need not have it
    assert (np.isnan(over_seeds(np.array([20.0, 20.0])).low), outside_of_others(np.zeros(4))) == (True, 0)
    even = np.linspace(-1, 1, 20)
    assert outside_of_others(even) == 0
    assert outside_of_others(np.append(even, 50.0)) == 1
    assert outside_of_others(values) is None


def test_rankings_that_agree():
    up = np.array([1.0, 2, 3, 4])
    assert agreement(np.stack([up, 10 * up])) == pytest.approx(1)
    assert agreement(np.stack([up, -up, up])) == pytest.approx(-1 / 3)  # 1, -1 and -1
    assert agreement(up[None]) is None
    assert agreement(np.stack([up, np.ones(4)])) is None
    assert shared_ends(np.stack([up, np.array([2.0, 1, 4, 3])]), 2) == 1
    assert shared_ends(np.stack([up, -up]), 1) == 0


def test_parity_by_hand():
    predicted = np.array([0, 0, 0, 1, 1, 1])
    first, second = shares_of_groups(predicted, IS_A, 3)
    assert first.tolist() == [75, 25, 0]
    assert second.tolist() == [0, 100, 0]
    assert parity_distance(predicted, IS_A, 3) == 75
    assert parity_distance(np.zeros(6, dtype=int), IS_A, 3) == 0
    assert 0 < distance_by_chance(predicted, IS_A, 3, 50, seed=0) < 75
    with pytest.raises(ValueError, match="both groups need people"):
        parity_distance(predicted, np.ones(6, dtype=bool), 3)


def test_predictive_parity_by_hand():
    is_a = np.arange(12) < 6
    is_right = np.array([1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    assert predictive_parity(is_right, is_a) == pytest.approx(100 * (1 / 2 - 1 / 6))
    assert predictive_parity(is_right[3:], is_a[3:]) is None


def test_amplification_is_towards_the_group_that_a_profession_leans_to():
    of_a, of_b = np.array([6, 4]), np.array([4, 6])  # shares of a: 60 % and 40 %, of all 50 %
    predicted = np.repeat([0, 1], 10)
    as_in_graph = np.concatenate([np.arange(10) < 6, np.arange(10) < 4])
    more = np.concatenate([np.arange(10) < 8, np.arange(10) < 1])
    assert amplification(predicted, as_in_graph, of_a, of_b) == pytest.approx(0)
    assert amplification(predicted, more, of_a, of_b) == pytest.approx((20 + 30) / 2)
    assert amplification(predicted, ~more, of_a, of_b) == pytest.approx(-(40 + 50) / 2)
    assert amplification(predicted[:3], more[:3], of_a, of_b) is None


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_finds_what_is_there_and_nothing_else(probe):
    rng = np.random.default_rng(0)
    is_a, groups = np.arange(200) % 2 == 0, rng.integers(20, size=200)
    vectors = rng.normal(size=(200, 6))
    assert 0.3 < leakage(vectors, is_a, groups, probe, seed=1) < 0.7
    vectors[:, 0] += 3 * is_a
    assert leakage(vectors, is_a, groups, probe, seed=1) > 0.95
    assert 0.3 < leakage_by_chance(vectors, is_a, groups, probe, seed=1) < 0.7


def test_only_the_nonlinear_probe_finds_a_circle():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(300, 2))
    is_a = (vectors**2).sum(1) < 1.4
    found = {probe: leakage(vectors, is_a, np.arange(300), probe, seed=1) for probe in PROBES}
    assert found["nonlinear"] > 0.95
    assert found["linear"] < 0.65


def test_people_of_one_group_share_a_fold_so_that_what_names_the_group_does_not_help():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 10)
    is_a = np.repeat(rng.permutation(20) < 10, 10)
    vectors = np.eye(20)[groups]
    assert leakage(vectors, is_a, np.arange(200), "linear", seed=1) > 0.95
    assert leakage(vectors, is_a, groups, "linear", seed=1) < 0.7


def test_too_few_people_are_not_probed():
    assert leakage(np.ones((12, 2)), np.arange(12) < 6, np.arange(12), "linear", seed=1) is None
