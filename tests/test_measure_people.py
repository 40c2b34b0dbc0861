"""Agreement of raters and scorers, by hand."""

import numpy as np
import pytest

from mitigate.measure.agreement import (
    classification,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    majority,
    vote_counts,
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


def test_votes_and_majorities() -> None:
    """Votes are counted by item, wherever they stand; a tie is neutral unless another label is asked for."""
    counts = vote_counts(["b", "a", "b", "a", "b"], np.array([0, 1, -1, 1, 0]))
    assert counts.tolist() == [[1, 2, 0], [0, 0, 2]]  # prejudice, neutral, favouritism of b, then a
    counts = np.array([[2, 1, 0], [0, 0, 3], [1, 1, 1], [2, 0, 2]])
    assert majority(counts).tolist() == [-1, 1, 0, 0]
    assert majority(counts, tie=-1).tolist() == [-1, 1, -1, -1]
    assert fold_other(np.array([-1, 0, 1, 2])).tolist() == [-1, 0, 1, 0]


def test_fleiss_kappa() -> None:
    assert fleiss_kappa(FLEISS) == pytest.approx(0.210, abs=0.0005)
    # pairs agree in 1 and 1/3 of cases: 2/3; shares 1/2 and 1/2: (2/3 - 1/2) / (1/2)
    assert fleiss_kappa(FOUR) == pytest.approx(1 / 3)
    assert fleiss_kappa(FOUR[:2]) == 1
    # two ratings of one item, four of the other: ((0 + 1) / 2 - (1/36 + 25/36)) / (10/36)
    assert fleiss_kappa(np.array([[1, 1], [0, 4]])) == pytest.approx(-0.8)


def test_krippendorff_alpha() -> None:
    """Krippendorff's example (2011): four observers, twelve units, 0 where an observer is silent."""
    # coincidences: 2 of 3 pairable values agree ((1 + 1 + 1/3 + 1/3) / 4), chance 2 * 6 * 5 / (12 * 11)
    assert krippendorff_alpha(FOUR) == pytest.approx((2 / 3 - 5 / 11) / (6 / 11))
    assert krippendorff_alpha(np.vstack([FOUR, [1, 0]])) == krippendorff_alpha(FOUR)  # a single rating
    observers = np.array(
        [
            *([1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3]),
            *([0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0]),
        ]
    )
    counts = np.stack([(observers == label).sum(axis=0) for label in range(1, 6)], axis=1)
    assert krippendorff_alpha(counts) == pytest.approx(0.743, abs=0.0005)


def test_cohen_kappa() -> None:
    first = np.array([1] * 25 + [0] * 25)
    second = np.array([1] * 20 + [0] * 5 + [1] * 10 + [0] * 15)
    assert cohen_kappa(first, second) == pytest.approx(0.4)  # (.7 - .5) / .5
    assert cohen_kappa(first, first) == 1


def test_one_class_alone_and_single_ratings_are_no_evidence_of_agreement() -> None:
    for counts in ([[3, 0], [3, 0]], [[1, 0], [0, 1]]):
        assert fleiss_kappa(np.array(counts)) is None
        assert krippendorff_alpha(np.array(counts)) is None
    assert cohen_kappa(np.zeros(3), np.zeros(3)) is None


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


@pytest.mark.parametrize(("resource", "kappa"), [("GenericsKB", 0.5007), ("ConceptNet", 0.364)])
def test_the_harms_paper_s_raters(real_data, resource: str, kappa: float) -> None:
    """GenericsKB as printed; for ConceptNet the paper prints .3827."""
    folder = real_data / "humans"
    sentences = (folder / f"{resource}_sentences.txt").read_text(encoding="utf-8").splitlines()
    labels = np.loadtxt(folder / f"{resource}_bias_labels.txt", dtype=int)
    counts = vote_counts(sentences, 2 - labels)  # 1 favouritism, 2 neutral, 3 prejudice
    assert counts.sum() == len(sentences)
    assert fleiss_kappa(counts) == pytest.approx(kappa, abs=0.0005)
    assert krippendorff_alpha(counts) == pytest.approx(kappa, abs=0.001)
