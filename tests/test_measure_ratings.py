"""Measures of people's ratings, by hand: agreement of raters and scorers, drift between batches of raters, what makes
ratings vary, and estimates for all statements from the ratings of some."""

import math
from itertools import product

import numpy as np
import polars as pl
import pytest
from ratings_example import PAIR, WORDS, rated

from mitigate.load.ratings import most_say
from mitigate.measure.agreement import (
    classification,
    fleiss_of,
    fleiss_sums,
    vote_counts,
)
from mitigate.measure.intervals import FEW_TARGETS
from mitigate.measure.ratings import (
    AS_THEY_ARE,
    EQUALLY,
    REACH,
    Components,
    Votes,
    components,
    drift_table,
    error,
    prediction_powered,
    ratings_needed,
    statements_needed,
    without_drift,
)
from mitigate.triples import fold_other

# Fleiss' own example (1971): 10 subjects, 14 raters, 5 classes
FLEISS = np.array(
    [
        *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
        *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
    ]
)
FOUR = np.array([[3, 0], [0, 3], [2, 1], [1, 2]])  # votes on four items of two classes


def kappa(counts: np.ndarray) -> float:
    return float(fleiss_of(fleiss_sums(counts).sum(axis=0)))


def test_votes_and_majorities() -> None:
    """Votes are counted by item, wherever they stand; a tie is neutral."""
    counts = vote_counts(["b", "a", "b", "a", "b"], np.array([0, 1, -1, 1, 0]))
    assert counts.tolist() == [[1, 2, 0], [0, 0, 2]]  # prejudice, neutral, favouritism of b, then a
    votes = pl.Series([[-1, 0, -1], [1, 1, 1], [-1, 0, 1], [-1, 1, -1, 1]], dtype=pl.List(pl.Int8))
    assert most_say(votes).tolist() == [-1, 1, 0, 0]
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


def votes(shares: list[float], relations: list[int] | None = None, words: list[int] | None = None) -> Votes:
    """One statement a word, one vote each, of one relation, if nothing else is given."""
    size = len(shares)
    numbers = np.array(words if words is not None else range(size)), np.array(relations or [0] * size)
    return Votes(np.array(shares, dtype=float), np.ones(size), *numbers)


def test_what_remains_is_the_change_less_that_of_the_anchors() -> None:
    sets, anchors = (votes([100, 50, 0, 50]), votes([50, 0, 0, 10])), (votes([100, 0, 50]), votes([70, 0, 20]))
    found = without_drift(sets, anchors, equally=False)
    assert (found.total.baseline, found.total.value, found.total.gain) == (50, 15, -35)
    assert (found.drift.baseline, found.drift.value, found.drift.gain) == (50, 30, -20)
    assert found.remaining.gain == -15
    # one statement a word: the jackknife's error of a mean is that of its words
    assert found.total.error == pytest.approx(np.std([-50, -50, 0, -40], ddof=1) / 2)
    # statements count by their votes
    first = votes([100, 0])._replace(weights=np.array([3.0, 1.0]))
    assert without_drift((first, votes([0, 0])), anchors, equally=False).total.baseline == 75
    # a set rated again as a whole: change and drift vary together, and their difference has no error
    again = without_drift(anchors, anchors, equally=False).remaining
    assert (again.gain, again.error) == (0, pytest.approx(0, abs=1e-12))


def test_relations_that_count_alike() -> None:
    """Anchors of relation 0 drift by -40, the many of relation 1 not at all."""
    relations = [0, 0, 1, 1, 1, 1, 1, 1]
    anchors = votes([50] * 8, relations), votes([10, 10, *[50] * 6], relations)
    sets = votes([50] * 8, [0, 0, 0, 0, 1, 1, 1, 1]), votes([10] * 4 + [50] * 4, [0, 0, 0, 0, 1, 1, 1, 1])
    assert without_drift(sets, anchors, equally=False).drift.gain == pytest.approx(-10)
    found = without_drift(sets, anchors, equally=True)
    assert (found.drift.gain, found.total.gain, found.remaining.gain) == pytest.approx((-20, -20, 0))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        # 4 * 25 ** 2 / (4 - 2), less than half of what single ratings vary; of these 2 * 2 * 50 ** 2 / 4
        ([100.0, 50.0, 50.0, 0.0], (0, 2500)),
        ([100.0, 0.0, 100.0, 0.0], (4 * 50**2 / 2, 0)),
    ],
)
def test_variance_components_by_hand(shares: list[float], expected: tuple) -> None:
    """Two statements of each relation lie 25 from its mean, and half of their votes differ; then 50, and none."""
    assert components(np.array(shares), np.full(4, 2), np.array([0, 0, 1, 1])) == expected


def test_the_error_of_a_difference_and_what_shows_it() -> None:
    """Shared statements have one rating for both models, and differ by nothing."""
    known = Components(statement=900.0, rating=600.0)
    assert error(known, 100, 3) == pytest.approx(math.sqrt(2 * (900 + 600 / 3) / 100))
    assert error(known, 100, 3, shared=0.75) == pytest.approx(error(known, 100, 3) / 2)
    assert pytest.approx(1.959964 + 0.841621) == REACH
    points = REACH * error(known, 400, 3, shared=0.2)
    assert statements_needed(points, known, 3, shared=0.2) == pytest.approx(400)


def test_drift_is_taken_out_of_the_difference_of_two_sets() -> None:
    """The second batch calls the shared statement polarised half as often; its own one is harmless."""
    table = drift_table(pl.concat([rated("one", {"harm": 1.0, "x": 0.5}), rated("two", {"harm": 0.5, "y": 0.0})]), PAIR)
    assert table.select("figure", "weights").rows() == [*product(("polarised", "valid"), (AS_THEY_ARE, EQUALLY))]
    row, valid = table.row(0, named=True), table.row(2, named=True)
    assert (row["anchors"], row["words"], row["before"], row["after"]) == (45, 30, 75, 25)
    assert [row[name] for name in ("total", "drift", "remaining")] == pytest.approx([-50, -50, 0])
    assert (valid["total"], valid["drift"]) == (0, 0)
    assert table.row(1, named=True)["remaining"] == pytest.approx(0)  # relations equally


def test_without_enough_anchors_batches_and_models_are_not_told_apart() -> None:
    few = WORDS[: FEW_TARGETS - 1]
    both = pl.concat([rated("one", {"a": 0.5}), rated("two", {"a": 0.25}, few), rated("three", {"c": 0.0})])
    table = drift_table(both, ["one", "two", "three"])
    assert table["drift"].null_count() == table.height == 6  # three pairs, two figures
    assert table["anchors"].unique().sort().to_list() == [0, 28]


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
