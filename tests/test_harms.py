"""Equations 1 to 4, the tallies of labels that they follow from, and the bounds of figures, on numbers small enough to
check by hand."""

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.measure.harms import EmptyTargets, few_targets, harm_results, per_target, tally, total
from mitigate.measure.intervals import Bootstrap, cluster_numbers, variance_interval
from mitigate.measure.results import Results

TARGETS = pl.DataFrame(
    {"target": ["nurse", "lawyer", "greek", "church"], "category": ["profession", "profession", "origin", "religion"]}
)
# nurse: 4 statements, 1 prejudiced, 1 favouring, 1 neutral, 1 other; lawyer: 2, both prejudiced;
# greek: 1, neutral; church: none; judge is not on the list
STATEMENTS = pl.DataFrame(
    {
        "target": ["nurse", "lawyer", "nurse", "greek", "nurse", "judge", "nurse", "lawyer"],
        "sentiment": [-1, -1, 1, 0, 0, -1, 2, -1],
        "regard": [-1, 0, -1, 1, 1, 0, 0, 1],
    },
    schema_overrides={"sentiment": pl.Int8, "regard": pl.Int8},
)


def of(statements: pl.DataFrame, column: str = "sentiment", empty_targets: EmptyTargets = "exclude") -> pl.DataFrame:
    return per_target(tally(statements, [column]), column, TARGETS, empty_targets)


def table(empty_targets: EmptyTargets = "exclude") -> pl.DataFrame:
    return of(STATEMENTS, empty_targets=empty_targets)


def figures(
    of: pl.DataFrame, scorer: str = "ngram", intervals: Bootstrap | None = None, clusters: dict[str, str] | None = None
) -> Results:
    return Results(harm_results({"labels": of}, {"labels": (scorer, "paper")}, clusters or {}, intervals))


def test_percentages_means_and_variances_under_both_conventions_for_empty_targets() -> None:
    assert table().rows() == [
        ("nurse", "profession", 4, 25.0, 25.0, 50.0),
        ("lawyer", "profession", 2, 100.0, 0.0, 0.0),
        ("greek", "origin", 1, 0.0, 0.0, 100.0),
        ("church", "religion", 0, None, None, None),
    ]
    assert table("zero").row(3) == ("church", "religion", 0, 0.0, 0.0, 0.0)
    excluded, zero = (figures(table(convention), "sentiment") for convention in ("exclude", "zero"))
    assert excluded["NSM"] == pytest.approx(50)  # (50 + 0 + 100) / 3
    assert excluded["NSV"] == pytest.approx(5000 / 3)  # (0 + 2500 + 2500) / 3
    assert (excluded["NSM/religion"], excluded["NSV/religion"]) == (None, None)
    assert zero["NSM"] == pytest.approx(37.5)  # (50 + 0 + 100 + 0) / 4
    assert zero["NSV"] == pytest.approx(1718.75)  # 12500 / 4 - 37.5 ** 2
    assert (zero["NSM/religion"], zero["NSV/religion"]) == (0, None)
    for found in (excluded, zero):
        assert (found["NSM/profession"], found["NSV/profession"]) == (25, 625)
        assert (found["NSM/origin"], found["NSV/origin"]) == (100, None)  # a single target does not vary
    assert {"NRM", "NRV"} < set(figures(table(), "regard"))
    assert figures(table())["ngram/neutral_mean"] == excluded["NSM"]


def test_disparity_overgeneralisation_and_the_counts_behind_them() -> None:
    excluded, zero = (figures(table(convention)) for convention in ("exclude", "zero"))
    assert excluded["D_R"] == zero["D_R"] == pytest.approx(2.1875)  # 4, 2, 1, 0: mean 1.75, 21 / 4 - 1.75 ** 2
    assert excluded["ngram/D_O-"] == pytest.approx(16250 / 9)  # 25, 100, 0: 10625 / 3 - (125 / 3) ** 2
    assert zero["ngram/D_O-"] == pytest.approx(1679.6875)  # 25, 100, 0, 0: 10625 / 4 - 31.25 ** 2
    assert excluded["ngram/D_O+"] == pytest.approx(1250 / 9)  # 25, 0, 0: 625 / 3 - (25 / 3) ** 2
    assert zero["ngram/D_O+"] == pytest.approx(117.1875)  # 25, 0, 0, 0: 625 / 4 - 6.25 ** 2
    assert (excluded["D_R/profession"], excluded["ngram/D_O-/profession"]) == (1, 37.5**2)
    assert excluded["D_R/religion"] is excluded["ngram/D_O-/religion"] is figures(table().clear())["D_R"] is None
    assert excluded["ngram/O-"] == pytest.approx(125 / 3)
    assert excluded["ngram/O+"] == pytest.approx(25 / 3)
    assert excluded["ngram/largest_O-"] == 100
    assert excluded["ngram/largest_O+/religion"] is None
    assert excluded["ngram/polarised"] == pytest.approx(400 / 7)  # 4 of the 7 statements about listed targets
    assert excluded["ngram/polarised_mean"] == 50  # of 50, 100 and 0
    assert excluded["ngram/polarised/profession"] == pytest.approx(400 / 6)
    assert excluded["ngram/polarised/religion"] is None
    counts = [excluded[name] for name in ("targets", "empty_targets", "statements", "statements/profession")]
    assert counts == [4, 1, 7, 6]
    assert [excluded[f"{name}/religion"] for name in ("targets", "empty_targets", "statements")] == [1, 1, 0]


def test_wrong_labels_and_conventions_are_named() -> None:
    wrong = STATEMENTS.with_columns(sentiment=pl.lit(3))
    refuses(MitigateError, r"'sentiment' has 8 labels such as 3; allowed: -1 \(prejudice\)", of, wrong)
    missing = STATEMENTS.with_columns(sentiment=pl.lit(None, dtype=pl.Int8))
    refuses(MitigateError, "8 labels such as None", of, missing)
    refuses(MitigateError, r"measure\.empty_targets 'drop'; allowed: exclude, zero", table, "drop")


def test_parts_of_a_tally_add_up() -> None:
    whole = tally(STATEMENTS, ["sentiment", "regard"])
    assert total(tally(part, ["sentiment", "regard"]) for part in STATEMENTS.iter_slices(3)).equals(whole)


def test_the_interval_of_representation_does_not_stop_where_that_of_percentages_must() -> None:
    found = figures(table(), intervals=Bootstrap(resamples=200))
    assert found["D_R_low"] <= found["D_R"]
    assert found["D_R_high"] is None  # of four targets
    assert "D_R/origin_low" not in found
    found = figures(shares([1000 * i for i in range(40)], [0.0] * 40), intervals=Bootstrap(resamples=500))
    assert 5e7 < found["D_R_low"] < found["D_R"] == 133_250_000 < found["D_R_high"] < 4e8


def shares(statements: list[int], prejudice: list[float]) -> pl.DataFrame:
    """A table of targets of one category without favouritism."""
    names = [f"t{number}" for number in range(len(statements))]
    columns = {"target": names, "category": "own", "statements": statements, "prejudice": prejudice}
    return pl.DataFrame(columns).with_columns(favouritism=pl.lit(0.0), neutral=100 - pl.col("prejudice"))


def test_every_mean_and_variance_has_bounds_around_it() -> None:
    """Those of the bootstrap and of the jackknife. Of a share that all 40 words have, the rule of three: up to 7.2 % of
    all words may differ, about 3 / 40."""
    varied, bootstrap = shares([10] * 40, [float(i) for i in range(40)]), Bootstrap(0.9, resamples=500, seed=3)
    found = figures(varied, "regard", bootstrap)
    for name in ("NRM", "NRV", "regard/O-", "regard/D_O-", "NRM/own", "regard/D_O-/own"):
        assert found[f"{name}_low"] < found[name] < found[f"{name}_high"]
    assert found["regard/O-_low"] == pytest.approx(100 - found["NRM_high"], abs=0.2)
    assert (found["regard/D_O+_low"], found["regard/D_O+_high"]) == (0, None)  # no word has any
    values, numbers = varied["neutral"].to_numpy(), cluster_numbers(varied, {})
    assert found["NRM_low"] == bootstrap.mean(values, numbers)[0]
    assert found["NRV_high"] == variance_interval(values, numbers, 0.9)[1]
    for share, bounds in ((0.0, (100 - 7.216, 100)), (100.0, (0, 7.216))):
        found = figures(shares([10] * 40, [share] * 40), "regard", Bootstrap())
        assert (found["NRM_low"], found["NRM_high"]) == pytest.approx(bounds, abs=0.001)
        assert (found["NRV_low"], found["NRV_high"]) == (0, None)
    one_word = figures(shares([10] * 3, [0.0] * 3), "regard", Bootstrap(), {"t1": "t0", "t2": "t0"})
    assert not [key for key in one_word if key.startswith("NR") and key.endswith(("_low", "_high"))]


PRONOUNS = {"she": "she", "her": "she", "hers": "she"}


def told(*words: str, silent: str = "") -> pl.DataFrame:
    return pl.DataFrame({"target": words, "category": "gender", "statements": [10 * (w != silent) for w in words]})


def test_inflections_share_a_number_and_few_targets_counts_words_with_statements() -> None:
    numbers = cluster_numbers(told("she", "he", "hers"), PRONOUNS)
    assert numbers[0] == numbers[2] != numbers[1]
    assert sorted(set(numbers)) == [0, 1]
    many = [f"g{i}" for i in range(19)]
    assert few_targets(told(*many, "she"), PRONOUNS) == []
    assert few_targets(told(*many, "x", silent="x"), {}) == few_targets(told(*many[2:], *PRONOUNS), PRONOUNS)
    (said,) = few_targets(told(*many), {})
    assert said.startswith("There are few targets in gender (under 20): their results say little")
