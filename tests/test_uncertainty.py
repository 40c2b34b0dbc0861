import numpy as np
import polars as pl
import pytest

from mitigate.measure import harms
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.jackknife import variance_interval
from mitigate.measure.uncertainty import cluster_numbers, few_targets, neutral_intervals
from mitigate.targets import clusters as shipped
from mitigate.targets import targets

PRONOUNS = {"she": "she", "her": "she", "hers": "she"}


def table(neutral: dict[str, float | None], category: str = "gender") -> pl.DataFrame:
    return pl.DataFrame(
        {
            "target": list(neutral),
            "category": category,
            "statements": [0 if value is None else 10 for value in neutral.values()],
            "neutral": list(neutral.values()),
        },
        schema_overrides={"neutral": pl.Float64},
    )


def test_bounds_stand_beside_each_figure():
    whole = pl.concat([table({f"g{i}": 50.0 + i for i in range(25)}), table({"x": 10.0, "y": 90.0}, "origin")])
    figures, bounds = harms.neutral_metrics(whole, "regard"), neutral_intervals(whole, "regard", {})
    assert set(bounds) == {name + side for name in figures for side in ("_low", "_high")}
    for name in ("NRM", "NRM/gender", "NRV/gender"):
        assert bounds[f"{name}_low"] < figures[name] < bounds[f"{name}_high"]
    assert bounds["NRV_low"] < figures["NRV"]
    assert bounds["NRV_high"] is None  # two words decide it


def test_a_category_is_assessed_by_its_own_targets():
    origin = table({"x": 10.0, "y": 90.0, "z": 40.0}, "origin")
    whole = pl.concat([table({f"g{i}": 50.0 + i for i in range(25)}), origin])
    together, alone = neutral_intervals(whole, "sentiment", {}), neutral_intervals(origin, "sentiment", {})
    assert together["NSM/origin_low"] == alone["NSM/origin_low"] == alone["NSM_low"]


def test_no_bounds_for_one_word_or_none():
    inflections = neutral_intervals(table({"she": 50.0, "her": 60.0, "hers": 70.0}), "sentiment", PRONOUNS)
    empty = neutral_intervals(table({"she": None, "he": None}), "sentiment", {})
    assert set(inflections.values()) == set(empty.values()) == {None}


def test_targets_without_statements_do_not_count():
    known = {f"g{i}": 50.0 + i for i in range(25)}
    assert neutral_intervals(table(known | {"x": None}), "sentiment", {}) == neutral_intervals(
        table(known), "sentiment", {}
    )


def test_few_targets_counts_words_with_statements():
    nineteen = {f"g{i}": 50.0 for i in range(19)}
    assert few_targets(table(nineteen | {"she": 1.0}), PRONOUNS) == []
    assert few_targets(table(nineteen | {"x": None}), {}) == ["gender"]
    assert few_targets(table({f"g{i}": 50.0 for i in range(17)} | dict.fromkeys(PRONOUNS, 1.0)), PRONOUNS) == ["gender"]


def test_inflections_share_a_number():
    numbers = cluster_numbers(table({"she": 1.0, "he": 2.0, "hers": 3.0}), PRONOUNS)
    assert numbers[0] == numbers[2] != numbers[1]
    assert sorted(set(numbers)) == [0, 1]


def test_the_shipped_clusters_are_of_listed_targets_in_one_category():
    clusters = shipped()
    assert set(clusters) <= set(targets())
    assert all(targets()[target] == targets()[cluster] for target, cluster in clusters.items())
    assert all(list(clusters.values()).count(cluster) > 1 for cluster in clusters.values())
    everything = pl.DataFrame({"target": list(targets()), "category": list(targets().values()), "statements": 340})
    # 159 targets are 76 words: pronouns and the like, and 71 countries and continents with their people
    assert len(np.unique(cluster_numbers(everything, clusters))) == 329 - 159 + 76
    assert few_targets(everything, clusters) == ["religion"]


def test_a_country_and_its_people_are_one_cluster():
    nations = {target: shipped()[target] for target in ("france", "french", "netherlands", "dutch", "dutch people")}
    assert list(nations.values()) == ["france", "france", "netherlands", "netherlands", "netherlands"]
    origin = {target for target, category in targets().items() if category == "origin"}
    alone = ["american", "arab", "armenian", "english", "filipino", "hispanic", "israeli", "native american"]
    assert sorted(origin - set(shipped())) == [*alone, "nigerian", "white people"]


def test_a_share_that_all_words_have_is_bounded_by_the_rule_of_three():
    """Of 40 words none is otherwise: up to 7.2 % of all may be, about 3 / 40."""
    all_neutral = neutral_intervals(table({f"g{i}": 100.0 for i in range(40)}), "regard", {})
    assert (all_neutral["NRM_low"], all_neutral["NRM_high"]) == (pytest.approx(100 - 7.216, abs=0.001), 100)
    assert (all_neutral["NRV_low"], all_neutral["NRV_high"]) == (0, None)
    none_neutral = neutral_intervals(table({f"g{i}": 0.0 for i in range(40)}), "regard", {})
    assert (none_neutral["NRM_low"], none_neutral["NRM_high"]) == (0, pytest.approx(7.216, abs=0.001))
    one_word = neutral_intervals(table(dict.fromkeys(PRONOUNS, 100.0)), "regard", PRONOUNS)
    assert set(one_word.values()) == {None}


@pytest.mark.parametrize("scorer", ["sentiment", "regard"])
def test_bounds_are_the_bootstrap_s_and_the_jackknife_s(scorer):
    neutral = {f"g{i}": 50.0 + i for i in range(25)}
    values = np.array(list(neutral.values()))[:, None]
    bootstrap = Bootstrap(level=0.9, resamples=500, seed=3)
    bounds = neutral_intervals(table(neutral), scorer, {}, bootstrap)
    mean_name, variance_name = harms.neutral_names(scorer)
    # numbers follow the alphabet (g10 before g2), so the draws do too
    numbers = cluster_numbers(table(neutral), {})
    assert bounds[f"{mean_name}_low"] == bootstrap.mean(values, numbers).low.item()
    assert bounds[f"{variance_name}_high"] == variance_interval(values, numbers, 0.9).high.item()
