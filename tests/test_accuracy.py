"""Figures of accuracy and areas under the ROC curve, checked by hand."""

import numpy as np
import pytest

from mitigate.measure import agreement as confusion
from mitigate.measure.agreement import auc, auc_of_a_rater, classification
from mitigate.measure.intervals import Bootstrap

TRUTH = np.array([-1, -1, 1, 0, 0, 0, 0, 1])
SAID = np.array([-1, 0, 1, 0, 0, -1, 0, -1])
CLUSTERS = np.array([0, 0, 1, 1, 2, 2, 3, 3])


def test_cells_are_counted_by_cluster_and_figures_are_of_their_sum() -> None:
    cells = confusion.confusion(TRUTH, SAID, CLUSTERS)
    assert cells.shape == (4, 9)
    assert cells[0].reshape(3, 3).tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]  # rows: the first labelling
    assert cells.sum() == 8
    table = cells.sum(axis=0)
    assert confusion.polarised(table) == 4 / 8
    assert confusion.sensitivity(table) == 3 / 4  # one said to be of the other sign is still polarised
    assert confusion.specificity(table) == 3 / 4
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
    figures = {"kappa": confusion.kappa, "sensitivity": confusion.sensitivity, "specificity": confusion.specificity}
    found = confusion.with_intervals(sums, figures, Bootstrap(resamples=50))
    assert (found["kappa"], found["sensitivity"], found["sensitivity_low"]) == (None, None, None)
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
