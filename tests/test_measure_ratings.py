"""Measures of people's ratings, by hand: agreement of raters and scorers, areas under the ROC curve, and estimates for
all statements from the ratings of some."""

import math

import numpy as np
import polars as pl
import pytest

from mitigate.measure import agreement as confusion
from mitigate.measure.agreement import auc, auc_of_a_rater, classification, fleiss_of, fleiss_sums
from mitigate.measure.intervals import Bootstrap
from mitigate.studies.humans import prediction_powered, ratings_needed
from mitigate.triples import fold_other, majority_labels

# Fleiss' own example (1971): 10 subjects, 14 raters, 5 classes
FLEISS = np.array(
    [
        *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
        *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
    ]
)
FOUR = np.array([[3, 0], [0, 3], [2, 1], [1, 2]])  # votes on four items of two classes


def kappa(counts: np.ndarray) -> float:
    votes = [np.repeat(range(counts.shape[1]), row).tolist() for row in counts]
    sums = fleiss_sums(pl.Series(votes, dtype=pl.List(pl.Int64)), range(counts.shape[1]))
    return float(fleiss_of(sums.sum(axis=0)))


def test_majorities() -> None:
    """A tie is neutral."""
    votes = pl.Series([[-1, 0, -1], [1, 1, 1], [-1, 0, 1], [-1, 1, -1, 1]], dtype=pl.List(pl.Int8))
    assert majority_labels(votes).tolist() == [-1, 1, 0, 0]
    assert fold_other(np.array([-1, 0, 1, 2])).tolist() == [-1, 0, 1, 0]


def test_fleiss_kappa() -> None:
    assert kappa(FLEISS) == pytest.approx(0.210, abs=0.0005)
    # pairs agree in 1 and 1/3 of cases: 2/3; shares 1/2 and 1/2: (2/3 - 1/2) / (1/2)
    assert kappa(FOUR) == pytest.approx(1 / 3)
    assert kappa(FOUR[:2]) == 1
    # two ratings of one item, four of the other: ((0 + 1) / 2 - (1/36 + 25/36)) / (10/36)
    assert kappa(np.array([[1, 1], [0, 4]])) == pytest.approx(-0.8)
    for counts in ([[3, 0], [3, 0]], [[1, 0], [0, 1]]):  # one class alone, single ratings
        assert np.isnan(kappa(np.array(counts)))


def test_classification_by_hand() -> None:
    """A scorer that always answers neutral is accurate and worthless."""
    truth = np.array([0, 0, 0, 0, 0, 0, -1, -1, 1, 1])
    predicted = np.array([0, 0, 0, 0, -1, 1, -1, 0, 0, 0])
    scores = classification(truth, predicted)
    assert scores["accuracy"] == 0.5
    assert [scores[f"prejudice/{name}"] for name in ("precision", "recall", "f1")] == [0.5, 0.5, 0.5]
    assert [scores[f"favouritism/{name}"] for name in ("precision", "recall", "f1")] == [0, 0, 0]
    assert scores["neutral/precision"] == pytest.approx(4 / 7)
    assert scores["neutral/f1"] == pytest.approx(8 / 13)
    assert scores["balanced_accuracy"] == pytest.approx((1 / 2 + 4 / 6 + 0) / 3)
    assert scores["macro_f1"] == pytest.approx((0.5 + 8 / 13 + 0) / 3)
    assert scores["kappa"] == pytest.approx((0.5 - 0.48) / 0.52)  # chance: .6 * .7 + .2 * .2 + .2 * .1
    assert [scores[f"{name}/count"] for name in ("prejudice", "neutral", "favouritism")] == [2, 6, 2]
    scores = classification(np.array([0] * 8 + [-1, 1]), np.zeros(10, dtype=int))
    assert (scores["accuracy"], scores["kappa"], scores["balanced_accuracy"]) == (0.8, 0, pytest.approx(1 / 3))
    assert classification(np.zeros(3), np.zeros(3))["kappa"] is None


def test_ratings_of_some_correct_a_classifier_s_labels_of_all() -> None:
    """Four of eight units are rated, and the labels are half as large as the ratings: weight 2, no error left."""
    rated, labels = np.array([0.0, 100, 0, 100]), np.array([0.0, 50, 0, 50, 50, 50, 50, 0])
    found = prediction_powered(rated, labels[:4], labels)
    assert (found.weight, found.value, found.variance) == pytest.approx((2, 2 * labels.mean(), 0))
    # labels that say nothing: the mean of the ratings, its error that of a draw of 4 of 8 without replacement
    found = prediction_powered(rated, np.zeros(4), np.zeros(8))
    reach = 3.182446 * math.sqrt((1 - 4 / 8) * (4 * 50**2 / 3) / 4)  # Student's t of 3 degrees
    assert found[:4] == pytest.approx((50, 50 - reach, 50 + reach, 0))
    assert prediction_powered(rated, labels[:4], labels[:4])[:3] == (50, 50, 50)  # all are rated


def test_intervals_cover_what_people_would_say_of_all_also_by_a_classifier_that_errs() -> None:
    random, covered, widths = np.random.default_rng(5), [], []
    people = 100 * (random.random(2000) < 0.4)
    for labels in (100 * (people > 0) ^ (100 * (random.random(2000) < 0.2)), 100 * (random.random(2000) < 0.9)):
        draws = [random.choice(2000, 150, replace=False) for _ in range(400)]
        found = [prediction_powered(people[one], labels[one], labels) for one in draws]
        covered.append(np.mean([each.low <= people.mean() <= each.high for each in found]))
        widths.append(np.mean([each.high - each.low for each in found]))
    assert covered == pytest.approx([0.95, 0.95], abs=0.03)
    assert widths[0] < 0.9 * widths[1]  # the labels of a better classifier


def test_ratings_needed_for_a_width() -> None:
    """1.96² · 2500 / 5² units of very many, and fewer of few."""
    assert ratings_needed(5, 2500, 10**9) == math.ceil(1.959964**2 * 2500 / 25)
    assert ratings_needed(5, 2500, 400) == math.ceil(384.15 / (1 + 384.15 / 400))


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
