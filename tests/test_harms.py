"""Equations 1 to 4, and how a target stands among its peers, on numbers small enough to check by hand."""

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.measure import harms

TARGETS = pl.DataFrame(
    {"target": ["nurse", "lawyer", "greek", "church"], "category": ["profession", "profession", "origin", "religion"]}
)
# nurse: 4 statements, 1 prejudiced, 1 favouring, 1 neutral, 1 other; lawyer: 2, both prejudiced;
# greek: 1, neutral; church: none; judge is not on the list
STATEMENTS = pl.DataFrame(
    {
        "target": ["nurse", "lawyer", "nurse", "greek", "nurse", "judge", "nurse", "lawyer"],
        "relation": ["IsA", "IsA", "HasA", "IsA", "IsA", "IsA", "IsA", "NotIsA"],
        "sentiment": [-1, -1, 1, 0, 0, -1, 2, -1],
    },
    schema_overrides={"sentiment": pl.Int8},
)

DISPARITY = [("prejudice", "variance"), ("favouritism", "variance")]


def table(empty_targets: harms.EmptyTargets = "exclude") -> pl.DataFrame:
    return harms.per_target(STATEMENTS, "sentiment", TARGETS, empty_targets)


def test_percentages_means_and_variances_under_both_conventions_for_empty_targets():
    assert table().rows() == [
        ("nurse", "profession", 4, 25.0, 25.0, 50.0),
        ("lawyer", "profession", 2, 100.0, 0.0, 0.0),
        ("greek", "origin", 1, 0.0, 0.0, 100.0),
        ("church", "religion", 0, None, None, None),
    ]
    assert table("zero").row(3) == ("church", "religion", 0, 0.0, 0.0, 0.0)
    excluded, zero = (harms.neutral_metrics(table(), "sentiment"), harms.neutral_metrics(table("zero"), "sentiment"))
    assert excluded["NSM"] == pytest.approx(50)  # (50 + 0 + 100) / 3
    assert excluded["NSV"] == pytest.approx(5000 / 3)  # (0 + 2500 + 2500) / 3
    assert (excluded["NSM/religion"], excluded["NSV/religion"]) == (None, None)
    assert zero["NSM"] == pytest.approx(37.5)  # (50 + 0 + 100 + 0) / 4
    assert zero["NSV"] == pytest.approx(1718.75)  # 12500 / 4 - 37.5 ** 2
    assert (zero["NSM/religion"], zero["NSV/religion"]) == (0, None)
    for metrics in (excluded, zero):
        assert (metrics["NSM/profession"], metrics["NSV/profession"]) == (25, 625)
        assert (metrics["NSM/origin"], metrics["NSV/origin"]) == (100, None)  # a single target does not vary
    assert {key[:3] for key in harms.neutral_metrics(table(), "regard")} == {"NRM", "NRV"}


def disparity(per_target: pl.DataFrame) -> harms.Figures:
    """D_R and both D_O of labels by n-grams."""
    return harms.representation_disparity(per_target) | harms.share_figures(per_target, "ngram", DISPARITY)


def test_disparity_overgeneralisation_and_the_counts_behind_them():
    excluded, zero = (disparity(table(convention)) for convention in ("exclude", "zero"))
    assert excluded["D_R"] == zero["D_R"] == pytest.approx(2.1875)  # 4, 2, 1, 0: mean 1.75, 21 / 4 - 1.75 ** 2
    assert excluded["ngram/D_O-"] == pytest.approx(16250 / 9)  # 25, 100, 0: 10625 / 3 - (125 / 3) ** 2
    assert zero["ngram/D_O-"] == pytest.approx(1679.6875)  # 25, 100, 0, 0: 10625 / 4 - 31.25 ** 2
    assert excluded["ngram/D_O+"] == pytest.approx(1250 / 9)  # 25, 0, 0: 625 / 3 - (25 / 3) ** 2
    assert zero["ngram/D_O+"] == pytest.approx(117.1875)  # 25, 0, 0, 0: 625 / 4 - 6.25 ** 2
    assert (excluded["D_R/profession"], excluded["ngram/D_O-/profession"]) == (1, 37.5**2)
    assert (excluded["D_R/religion"], excluded["ngram/D_O-/religion"]) == (None, None)
    metrics = harms.share_figures(table(), "ngram", harms.POLARISED_SHARES)
    assert metrics["ngram/O-"] == pytest.approx(125 / 3)
    assert metrics["ngram/O+"] == pytest.approx(25 / 3)
    assert metrics["ngram/polarised"] == pytest.approx(400 / 7)  # 4 of the 7 statements about listed targets
    assert metrics["ngram/polarised/profession"] == pytest.approx(400 / 6)
    assert metrics["ngram/polarised/religion"] is None
    counts = harms.counts(table())
    assert (counts["targets"], counts["empty_targets"], counts["statements"]) == (4, 1, 7)
    assert (counts["targets/religion"], counts["empty_targets/religion"], counts["statements/religion"]) == (1, 1, 0)
    assert counts["statements/profession"] == 6


def test_constant_targets_have_no_disparity_no_statements_no_figure_and_rare_relations_no_part():
    frame = pl.DataFrame({"target": ["nurse", "lawyer", "greek", "church"], "regard": [1, 1, 1, 1]})
    constant = harms.per_target(frame, "regard", TARGETS)
    found = disparity(constant)
    assert found == {key: None if key.endswith(("/origin", "/religion")) else 0 for key in found}
    assert harms.neutral_metrics(constant, "regard")["NRV"] == 0
    empty = harms.per_target(STATEMENTS.clear(), "sentiment", TARGETS)
    assert empty["statements"].to_list() == [0, 0, 0, 0]
    assert set(harms.neutral_metrics(empty, "sentiment").values()) == {None}
    assert disparity(empty)["D_R"] == 0
    frequent = harms.without_rare_relations(STATEMENTS, {"IsA": 7000, "HasA": 50, "NotIsA": 49})
    without = harms.neutral_metrics(harms.per_target(frequent, "sentiment", TARGETS), "sentiment")
    assert frequent["relation"].unique().sort().to_list() == ["HasA", "IsA"]
    assert without["NSM"] == pytest.approx(50)  # lawyer keeps one prejudiced statement
    assert harms.counts(harms.per_target(frequent, "sentiment", TARGETS))["statements"] == 6


def test_wrong_labels_conventions_and_categories_are_named():
    wrong = STATEMENTS.with_columns(sentiment=pl.lit(3))
    with pytest.raises(MitigateError, match=r"'sentiment' has 8 labels such as 3; allowed: -1 \(prejudice\)"):
        harms.per_target(wrong, "sentiment", TARGETS)
    missing = STATEMENTS.with_columns(sentiment=pl.lit(None, dtype=pl.Int8))
    with pytest.raises(MitigateError, match="8 labels such as None"):
        harms.per_target(missing, "sentiment", TARGETS)
    with pytest.raises(MitigateError, match=r"measure\.empty_targets 'drop'; allowed: exclude, zero"):
        harms.per_target(STATEMENTS, "sentiment", TARGETS, "drop")  # type: ignore[arg-type]
    of_two = TARGETS.with_columns(category=pl.Series(["income", "income", "income_low", "income_low"]))
    with pytest.raises(MitigateError, match="the category 'income_low' ends in _low or _high, as the names of "):
        harms.neutral_metrics(harms.per_target(STATEMENTS, "sentiment", of_two), "sentiment")
