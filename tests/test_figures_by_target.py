"""Counts of labels by target, the figures of an audit that follow from them, and the bounds of figures."""

import numpy as np
import polars as pl
import pytest

from mitigate.measure import harms
from mitigate.measure.audit_figures import figures, names, of_all_texts, representation
from mitigate.measure.bootstrap import Bootstrap, cluster_numbers, variance_interval
from mitigate.measure.tally import per_target, tally, tally_rows, total
from mitigate.measure.uncertainty import few_targets, intervals_of, neutral_intervals
from mitigate.words.targets import clusters as shipped
from mitigate.words.targets import targets

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
    found, bounds = figures(table, "regard"), intervals_of(table, names("regard"), {}, Bootstrap(resamples=500))
    for name in ("NRM", "NRV", "regard/O-", "regard/D_O-", "NRM/own", "regard/D_O-/own"):
        assert bounds[f"{name}_low"] < found[name] < bounds[f"{name}_high"]
    assert bounds["regard/O-_low"] == pytest.approx(100 - bounds["NRM_high"], abs=0.2)
    assert (bounds["regard/D_O+_low"], bounds["regard/D_O+_high"]) == (0, None)  # no word has any


PRONOUNS = {"she": "she", "her": "she", "hers": "she"}


def table(neutral: dict[str, float | None], category: str = "gender") -> pl.DataFrame:
    statements = [0 if value is None else 10 for value in neutral.values()]
    columns = {"target": list(neutral), "category": category, "statements": statements}
    return pl.DataFrame({**columns, "neutral": list(neutral.values())}, schema_overrides={"neutral": pl.Float64})


MANY = {f"g{i}": 50.0 + i for i in range(25)}


def test_inflections_share_a_number_and_few_targets_counts_words_with_statements() -> None:
    numbers = cluster_numbers(table({"she": 1.0, "he": 2.0, "hers": 3.0}), PRONOUNS)
    assert numbers[0] == numbers[2] != numbers[1]
    assert sorted(set(numbers)) == [0, 1]
    nineteen = {f"g{i}": 50.0 for i in range(19)}
    assert few_targets(table(nineteen | {"she": 1.0}), PRONOUNS) == []
    assert few_targets(table(nineteen | {"x": None}), {}) == ["gender"]
    assert few_targets(table({f"g{i}": 50.0 for i in range(17)} | dict.fromkeys(PRONOUNS, 1.0)), PRONOUNS) == ["gender"]


def test_the_shipped_clusters_are_of_listed_targets_in_one_category() -> None:
    """A country and its people are one."""
    clusters = shipped()
    assert set(clusters) <= set(targets())
    assert all(targets()[target] == targets()[cluster] for target, cluster in clusters.items())
    assert all(list(clusters.values()).count(cluster) > 1 for cluster in clusters.values())
    everything = pl.DataFrame({"target": list(targets()), "category": list(targets().values()), "statements": 340})
    # 159 targets are 76 words: pronouns and the like, and 71 countries and continents with their people
    assert len(np.unique(cluster_numbers(everything, clusters))) == 329 - 159 + 76
    assert few_targets(everything, clusters) == ["religion"]
    nations = {target: shipped()[target] for target in ("france", "french", "netherlands", "dutch", "dutch people")}
    assert list(nations.values()) == ["france", "france", "netherlands", "netherlands", "netherlands"]
    origin = {target for target, category in targets().items() if category == "origin"}
    alone = ["american", "arab", "armenian", "english", "filipino", "hispanic", "israeli", "native american"]
    assert sorted(origin - set(shipped())) == [*alone, "nigerian", "white people"]


def test_a_share_that_all_words_have_is_bounded_by_the_rule_of_three() -> None:
    """Of 40 words none is otherwise: up to 7.2 % of all may be, about 3 / 40."""
    for share, bounds in ((100.0, (100 - 7.216, 100)), (0.0, (0, 7.216))):
        found = neutral_intervals(table({f"g{i}": share for i in range(40)}), "regard", {})
        assert (found["NRM_low"], found["NRM_high"]) == pytest.approx(bounds, abs=0.001)
        assert (found["NRV_low"], found["NRV_high"]) == (0, None)
    one_word = neutral_intervals(table(dict.fromkeys(PRONOUNS, 100.0)), "regard", PRONOUNS)
    assert set(one_word.values()) == {None}


@pytest.mark.parametrize("scorer", ["sentiment", "regard"])
def test_bounds_are_the_bootstrap_s_and_the_jackknife_s(scorer) -> None:
    values = np.array(list(MANY.values()))[:, None]
    bootstrap = Bootstrap(level=0.9, resamples=500, seed=3)
    bounds = neutral_intervals(table(MANY), scorer, {}, bootstrap)
    mean_name, variance_name = harms.neutral_names(scorer)
    # numbers follow the alphabet (g10 before g2), so the draws do too
    numbers = cluster_numbers(table(MANY), {})
    assert bounds[f"{mean_name}_low"] == bootstrap.mean(values, numbers).low.item()
    assert bounds[f"{variance_name}_high"] == variance_interval(values, numbers, 0.9).high.item()
