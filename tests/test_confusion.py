"""Figures of a table of confusion and their intervals over clusters, checked by hand."""

import numpy as np
import pytest

from mitigate.measure import confusion
from mitigate.measure.agreement import classification
from mitigate.measure.bootstrap import Bootstrap

TRUTH = np.array([-1, -1, 1, 0, 0, 0, 0, 1])
SAID = np.array([-1, 0, 1, 0, 0, -1, 0, -1])
CLUSTERS = np.array([0, 0, 1, 1, 2, 2, 3, 3])


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    return confusion.confusion(TRUTH, SAID, CLUSTERS).sum(axis=0)


def test_cells_are_counted_by_cluster() -> None:
    cells = confusion.confusion(TRUTH, SAID, CLUSTERS)
    assert cells.shape == (4, 9)
    assert cells[0].reshape(3, 3).tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]  # rows: the first labelling
    assert cells.sum() == 8


def test_figures_of_polarised_and_neutral(table: np.ndarray) -> None:
    assert confusion.truly_polarised(table) == 4 / 8
    assert confusion.polarised(table) == 4 / 8
    assert confusion.sensitivity(table) == 3 / 4  # one said to be of the other sign is still polarised
    assert confusion.specificity(table) == 3 / 4
    assert confusion.precision(table) == 3 / 4
    assert confusion.left_polarised(table) == 1 / 4


def test_kappa_and_macro_f1_are_those_of_labels(table: np.ndarray) -> None:
    wanted = classification(TRUTH, SAID)
    assert confusion.kappa(table) == pytest.approx(wanted["kappa"])
    assert confusion.macro_f1(table) == pytest.approx(wanted["macro_f1"])


def test_an_interval_is_of_resampled_clusters() -> None:
    sums = confusion.confusion(TRUTH, SAID, CLUSTERS)
    found = confusion.with_intervals(sums, {"sensitivity": confusion.sensitivity}, Bootstrap(resamples=500))
    assert found["sensitivity"] == 3 / 4
    assert found["sensitivity_low"] == pytest.approx(0.5)  # of resamples with nothing but cluster 0
    assert found["sensitivity_high"] == 1


def test_what_has_no_value_is_none() -> None:
    neutral = np.zeros(3, dtype=int)
    sums = confusion.confusion(neutral, neutral, np.arange(3))
    figures = {"kappa": confusion.kappa, "precision": confusion.precision, "specificity": confusion.specificity}
    found = confusion.with_intervals(sums, figures, Bootstrap(resamples=50))
    assert (found["kappa"], found["precision"], found["precision_low"]) == (None, None, None)
    assert (found["specificity"], found["specificity_low"]) == (1, 1)
    alone = confusion.with_intervals(sums[:1], figures, Bootstrap(resamples=50))
    assert (alone["specificity"], alone["specificity_low"]) == (1, None)
