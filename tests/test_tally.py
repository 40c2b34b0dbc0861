"""Counts of labels by target, and the figures of an audit that follow from them."""

import polars as pl
import pytest

from mitigate.measure import harms
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.resource import figures, intervals, names, of_all_texts, representation
from mitigate.measure.tally import per_target, tally, tally_rows, total

STATEMENTS = pl.DataFrame(  # lawyer: one of four against, one for; nurse: two of two neutral; a word that is no target
    {
        "target": ["lawyer"] * 4 + ["nurse"] * 2 + ["house"],
        "sentiment": [-1, 0, 2, 1, 0, 2, -1],
        "regard": [-1, -1, 0, 0, 1, 1, 0],
    },
    schema_overrides={"sentiment": pl.Int8, "regard": pl.Int8},
)
TARGETS = pl.DataFrame({"target": ["lawyer", "nurse", "italy"], "category": ["profession", "profession", "origin"]})


def sentiment(empty_targets: str = "exclude") -> pl.DataFrame:
    return per_target(tally(STATEMENTS, ["sentiment"]), "sentiment", TARGETS, empty_targets)


def test_a_tally_says_what_the_statements_say_and_parts_add_up_to_the_whole() -> None:
    whole = tally(STATEMENTS, ["sentiment", "regard"])
    for column in ("sentiment", "regard"):
        for empty_targets in ("exclude", "zero"):
            table = per_target(whole, column, TARGETS, empty_targets)
            assert table.equals(harms.per_target(STATEMENTS, column, TARGETS, empty_targets))
    assert total(tally(part, ["sentiment", "regard"]) for part in STATEMENTS.iter_slices(3)).equals(whole)
    assert whole.filter(column="regard", target="lawyer")["count"].to_list() == [2, 2]


def test_all_texts_count_each_row_once_whatever_it_is_about() -> None:
    """Four rows, the first of which is about two targets: one against, one for, two neutral."""
    rows = STATEMENTS.head(5).with_columns(row=pl.Series([1, 1, 2, 3, 4]), sentiment=pl.Series([-1, -1, 0, 1, 2]))
    tallied = total([tally(rows, ["sentiment"]), tally_rows(rows, ["sentiment"])])
    shares = {"statements": 4, "prejudice": 25, "favouritism": 25, "polarised": 50}
    expected = {f"all_texts/sentiment/{name}": value for name, value in shares.items()}
    assert of_all_texts(tallied, "sentiment", "sentiment") == expected
    assert of_all_texts(tally(rows, ["sentiment"]), "sentiment", "sentiment") == {}
    alone = per_target(tally(rows, ["sentiment"]), "sentiment", TARGETS)
    assert per_target(tallied, "sentiment", TARGETS).equals(alone)


def test_figures_by_hand() -> None:
    """An empty target as zero lowers means and widens variances. Any scorer has figures."""
    found = figures(sentiment(), "sentiment")
    assert found["NSM"] == 75  # of 50 and 100
    assert found["NSV"] == 625
    assert found["sentiment/O-"] == found["sentiment/O+"] == 12.5  # of 25 and 0
    assert found["sentiment/D_O-"] == found["sentiment/D_O-/profession"] == 156.25
    assert found["sentiment/polarised"] == pytest.approx(100 * 2 / 6)
    assert found["sentiment/polarised_mean"] == 25  # of 50 and 0
    assert found["sentiment/largest_O-"] == 25
    assert found["NSM/origin"] is found["sentiment/largest_O+/origin"] is None
    found = figures(sentiment("zero"), "sentiment")
    assert found["NSM"] == 50  # of 50, 100 and 0
    assert found["NSV"] == pytest.approx(5000 / 3)
    assert found["NSM/origin"] == 0
    assert found["sentiment/polarised"] == pytest.approx(100 * 2 / 6)  # of statements: the same
    assert names("sentiment")["neutral"] == ("NSM", "NSV")
    assert names("keyword")["neutral"] == ("keyword/neutral_mean", "keyword/neutral_variance")
    found = figures(per_target(tally(STATEMENTS, ["regard"]), "regard", TARGETS), "keyword")
    assert found["keyword/neutral_mean"] == 25  # of 50 and 0
    assert found["keyword/D_O+"] == 2500


def test_representation_counts_empty_targets_and_has_an_interval() -> None:
    """The interval of counts does not stop where that of percentages must."""
    found = representation(sentiment(), {}, Bootstrap(resamples=200))
    assert found["D_R"] == pytest.approx((4 + 0 + 4) / 3)  # of 4, 2 and 0
    assert found["D_R/profession"] == 1
    assert (found["targets"], found["empty_targets"], found["statements"], found["statements/origin"]) == (3, 1, 6, 0)
    assert found["D_R_low"] <= found["D_R"]
    assert found["D_R_high"] is None  # of three targets
    assert found["D_R/origin_low"] is None
    table = shares([1000 * i for i in range(40)], [0.0] * 40)
    found = representation(table, {}, Bootstrap(resamples=500))
    assert 5e7 < found["D_R_low"] < found["D_R"] == 133_250_000 < found["D_R_high"] < 4e8


def shares(statements: list[int], prejudice: list[float]) -> pl.DataFrame:
    """A table of targets of one category without favouritism."""
    names = [f"t{number}" for number in range(len(statements))]
    columns = {"target": names, "category": "own", "statements": statements, "prejudice": prejudice}
    return pl.DataFrame(columns).with_columns(favouritism=pl.lit(0.0), neutral=100 - pl.col("prejudice"))


def test_every_mean_and_variance_has_bounds_around_it() -> None:
    table = shares([10] * 40, [float(i) for i in range(40)])
    found, bounds = figures(table, "regard"), intervals(table, "regard", {}, Bootstrap(resamples=500))
    for name in ("NRM", "NRV", "regard/O-", "regard/D_O-", "NRM/own", "regard/D_O-/own"):
        assert bounds[f"{name}_low"] < found[name] < bounds[f"{name}_high"]
    assert bounds["regard/O-_low"] == pytest.approx(100 - bounds["NRM_high"], abs=0.2)
    assert (bounds["regard/D_O+_low"], bounds["regard/D_O+_high"]) == (0, None)  # no word has any
