"""Agreement of raters and scorers, and Rogan and Gladen's correction of a share, by hand."""

import numpy as np
import polars as pl
import pytest

from mitigate.measure.agreement import (
    classification,
    cohen_kappa,
    fleiss_kappa,
    fold_other,
    krippendorff_alpha,
    majority,
    vote_counts,
)
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.confusion import Accuracy, corrected_share, share_error, standard_error
from mitigate.metrics import find
from mitigate.tasks.crowd.accuracy import (
    FEWEST,
    corrected_figures,
    known_accuracy,
    of_rated_relations,
    probable_figures,
)

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


def test_the_share_follows_from_sensitivity_and_specificity() -> None:
    """All three errors widen the interval. A perfect scorer changes nothing, and one at chance corrects nothing."""
    # of 30 % truly polarised, .8 are found, and of the others .1 labelled so: .24 + .07
    assert corrected_share(0.31, 0.0, Accuracy(0.8, 0.0, 0.9, 0.0)) == pytest.approx((0.3, 0.3, 0.3))
    value, low, high = corrected_share(0.31, 0.02, Accuracy(0.8, 0.03, 0.9, 0.01))
    error = (0.02**2 + (0.3 * 0.03) ** 2 + (0.7 * 0.01) ** 2) ** 0.5 / 0.7
    assert (value, low, high) == pytest.approx((0.3, 0.3 - 1.959964 * error, 0.3 + 1.959964 * error))
    assert corrected_share(0.2, 0.0, Accuracy(1.0, 0.0, 1.0, 0.0)) == pytest.approx((0.2, 0.2, 0.2))
    assert corrected_share(0.2, 0.01, Accuracy(0.5, 0.02, 0.55, 0.02)) is None
    assert standard_error(0.4, 0.6) == pytest.approx(0.2 / 2 / 1.959964)


def test_fewer_than_the_false_alarms_are_none() -> None:
    """Far fewer, or far more, say that the accuracy is of other statements."""
    value, low, high = corrected_share(0.08, 0.02, Accuracy(0.8, 0.0, 0.9, 0.0))
    assert (value, low) == (0, 0)
    assert high == pytest.approx((-0.02 + 1.959964 * 0.02) / 0.7)
    for share in (0.02, 0.95):
        assert corrected_share(share, 0.001, Accuracy(0.8, 0.01, 0.9, 0.01)) is None


def test_targets_of_one_cluster_vary_together() -> None:
    polarised, statements = np.array([1.0, 1.0, 3.0, 3.0]), np.full(4, 4.0)
    apart = share_error(polarised, statements, np.arange(4))
    assert apart == pytest.approx((4 * (1 / 16) ** 2 * 4 / 3) ** 0.5)  # each 1 away from 2, of 16
    assert share_error(polarised, statements, np.array([0, 0, 1, 1])) == pytest.approx((2 * (2 / 16) ** 2 * 2) ** 0.5)
    assert np.isnan(share_error(polarised, statements, np.zeros(4, dtype=int)))


def test_a_run_s_share_is_corrected_where_accuracy_is_known() -> None:
    rows = [("lawyer", "profession", 100, 31.0, 0.0), ("nurse", "profession", 100, 21.0, 10.0)]
    rows.append(("italy", "origin", 200, 26.0, 5.0))
    names = ["target", "category", "statements", "prejudice", "favouritism"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    perfect = Accuracy(1.0, 0.0, 1.0, 0.0)
    known = {("crowd", "paper"): {"": Accuracy(0.8, 0.0, 0.9, 0.0), "profession": perfect}}
    known["crowd", "neutral"] = {"": perfect}
    found = corrected_figures({"crowd": table, "crowd_neutral": table}, known, {})
    assert found["neutral_template/crowd/polarised_corrected"] == pytest.approx(31)  # by its own accuracy
    assert "neutral_template/crowd/polarised_corrected/profession" not in found
    assert found["crowd/polarised_corrected"] == pytest.approx(30)  # 31 % labelled, as above
    assert found["crowd/polarised_corrected/profession"] == pytest.approx(31)
    assert found["crowd/polarised_corrected/profession_low"] == pytest.approx(31)
    assert "crowd/polarised_corrected/origin" not in found
    assert corrected_figures({}, known, {}) == {}
    relations = pl.DataFrame({"relation": ["IsA", "CapableOf", "Causes", "UsedFor"]})
    assert of_rated_relations(relations)["relation"].to_list() == ["CapableOf", "Causes"]


def test_a_share_by_probabilities_is_of_calibrated_scorers_and_rated_relations() -> None:
    rows = [("lawyer", "profession", "CapableOf", 0.2, 0.4), ("lawyer", "profession", "Causes", 0.4, 0.4)]
    rows += [("nurse", "profession", "Causes", 0.9, 0.4), ("italy", "origin", "IsA", 0.0, 1.0)]
    names = ["target", "category", "relation", "crowd2_polar_strength", "crowd2_polar_neutral_strength"]
    found = probable_figures(pl.DataFrame(rows, schema=names, orient="row"), ["regard", "crowd2"], Bootstrap(), {})
    shares = {key: value for key, value in found.items() if not key.endswith(("_low", "_high"))}
    expected = {"crowd2/polarised_probable": 60, "crowd2/polarised_probable/profession": 60}  # of 30 and 90
    expected |= {f"neutral_template/{key}": 40 for key in expected}
    assert shares == pytest.approx(expected)
    assert None not in map(find, found), "a key is of no metric"


def test_accuracy_is_read_where_enough_statements_were_rated(tmp_path) -> None:
    shipped = known_accuracy("COMeT")
    assert set(shipped) == {"", "origin", "gender", "profession"}  # 36 statements are about religions
    assert 0.8 < shipped[""].sensitivity < 1
    assert 0 < shipped[""].specificity_error < 0.05
    neutral = known_accuracy("COMeT", template="neutral")
    assert set(neutral) == set(shipped)
    assert neutral[""] != shipped[""]
    rows = {"source": ["X", "X"], "category": ["all", "origin"], "statements": [2 * FEWEST, 2 * FEWEST]}
    figures = [f"{name}{end}" for name in ("sensitivity", "specificity") for end in ("", "_low", "_high")]
    ends = {name: [0.5, 0.5] for name in figures}
    pl.DataFrame({**rows, "polarised": [FEWEST, FEWEST - 1], **ends}).write_csv(tmp_path / "accuracy.csv")
    assert known_accuracy("X", tmp_path) == {"": Accuracy(0.5, 0.0, 0.5, 0.0)}
    assert known_accuracy("X", tmp_path, "neutral") == {}  # a file from before it had templates
    assert known_accuracy("Y", tmp_path) == known_accuracy("X", tmp_path / "elsewhere") == {}
