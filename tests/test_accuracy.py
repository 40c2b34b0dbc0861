"""Figures of accuracy, areas under the ROC curve and weighted differences, checked by hand."""

import math

import numpy as np
import pytest

from mitigate.errors import MitigateError
from mitigate.measure import confusion
from mitigate.measure.agreement import auc, auc_of_a_rater, classification
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.seeds import weighted_difference

TRUTH = np.array([-1, -1, 1, 0, 0, 0, 0, 1])
SAID = np.array([-1, 0, 1, 0, 0, -1, 0, -1])
CLUSTERS = np.array([0, 0, 1, 1, 2, 2, 3, 3])


def test_cells_are_counted_by_cluster_and_figures_are_of_their_sum() -> None:
    cells = confusion.confusion(TRUTH, SAID, CLUSTERS)
    assert cells.shape == (4, 9)
    assert cells[0].reshape(3, 3).tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]  # rows: the first labelling
    assert cells.sum() == 8
    table = cells.sum(axis=0)
    assert confusion.truly_polarised(table) == 4 / 8
    assert confusion.polarised(table) == 4 / 8
    assert confusion.sensitivity(table) == 3 / 4  # one said to be of the other sign is still polarised
    assert confusion.specificity(table) == 3 / 4
    assert confusion.precision(table) == 3 / 4
    assert confusion.left_polarised(table) == 1 / 4
    wanted = classification(TRUTH, SAID)
    assert confusion.kappa(table) == pytest.approx(wanted["kappa"])
    assert confusion.macro_f1(table) == pytest.approx(wanted["macro_f1"])


def test_an_interval_is_of_resampled_clusters_and_a_figure_without_value_is_none() -> None:
    sums = confusion.confusion(TRUTH, SAID, CLUSTERS)
    found = confusion.with_intervals(sums, {"sensitivity": confusion.sensitivity}, Bootstrap(resamples=500))
    assert found["sensitivity"] == 3 / 4
    assert found["sensitivity_low"] == pytest.approx(0.5)  # of resamples with nothing but cluster 0
    assert found["sensitivity_high"] == 1
    neutral = np.zeros(3, dtype=int)
    sums = confusion.confusion(neutral, neutral, np.arange(3))
    figures = {"kappa": confusion.kappa, "precision": confusion.precision, "specificity": confusion.specificity}
    found = confusion.with_intervals(sums, figures, Bootstrap(resamples=50))
    assert (found["kappa"], found["precision"], found["precision_low"]) == (None, None, None)
    assert (found["specificity"], found["specificity_low"]) == (1, 1)
    alone = confusion.with_intervals(sums[:1], figures, Bootstrap(resamples=50))
    assert (alone["specificity"], alone["specificity_low"]) == (1, None)


def test_auc_is_the_chance_that_a_valid_one_ranks_higher_also_for_a_rater():
    assert auc(np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False])) == 3 / 4  # 3 of 4 pairs
    assert auc(np.array([1.0, 1.0]), np.array([True, False])) == 1 / 2  # a tie
    assert auc(np.array([1.0, 2.0]), np.array([True, True])) is None
    assert auc(np.array([]), np.array([], dtype=bool)) is None
    votes = np.array([[1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    # rater 1: of items 1 and 2 the two others agree, and so does it; rater 2 alike; rater 3: also 3 and 4, both wrong
    assert auc_of_a_rater(votes) == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert auc_of_a_rater(votes[:1]) is None


def one_seed(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_items_count_by_their_weights() -> None:
    """(3 x 1 + 1 x 5) / 4 = 2 against (3 x 2 + 1 x 3) / 4 = 2.25; equal weights give the error of a plain mean."""
    found, fixed = weighted_difference(one_seed(1, 5), one_seed(2, 3), np.array([3, 1]), np.arange(2))
    assert (found.baseline, found.value, found.size) == pytest.approx((2, 2.25, 0.25))
    low, high = found.bounds()
    assert low < 0.25 < high
    assert fixed.size == found.size
    assert math.isnan(fixed.p)  # with the items fixed, one model each says nothing of other seeds
    values = np.random.default_rng(0).normal(size=(40, 1))
    found, _ = weighted_difference(np.zeros((40, 1)), values, np.ones(40), np.arange(40))
    assert found.error == pytest.approx(values.std(ddof=1) / 40**0.5)


def test_several_seeds_widen_the_interval() -> None:
    """Each seed moves all items alike, so that only seeds vary."""
    before, after = np.tile([10.0, 11.0, 12.0], (30, 1)), np.tile([20.0, 22.0, 24.0], (30, 1))
    found, fixed = weighted_difference(before, after, np.ones(30), np.arange(30))
    assert (found.baseline, found.value, found.size) == pytest.approx((11, 22, 11))
    assert found.error == fixed.error == pytest.approx((5 / 3) ** 0.5)
    low, high = found.bounds()
    assert low < 7 < 15 < high


def test_one_cluster_has_no_interval_and_one_model_is_not_compared_with_several() -> None:
    found, _ = weighted_difference(one_seed(1, 2), one_seed(2, 3), np.ones(2), np.zeros(2, dtype=int))
    assert found.size == 1
    assert np.isnan(found.bounds()).all()
    with pytest.raises(MitigateError, match="compare one model with one, or at least 2 seeds with at least 2"):
        weighted_difference(np.ones((3, 1)), np.ones((3, 2)), np.ones(3), np.arange(3))
