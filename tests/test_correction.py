"""Rogan and Gladen's correction of a share, by hand."""

import numpy as np
import polars as pl
import pytest

from mitigate.measure.correction import Accuracy, corrected_share, share_error, standard_error
from mitigate.tasks.crowd.known import FEWEST, alike, corrected_figures, known_accuracy


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
    assert alike(relations)["relation"].to_list() == ["CapableOf", "Causes"]


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
