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
    statements = [0 if value is None else 10 for value in neutral.values()]
    columns = {"target": list(neutral), "category": category, "statements": statements}
    return pl.DataFrame({**columns, "neutral": list(neutral.values())}, schema_overrides={"neutral": pl.Float64})


MANY = {f"g{i}": 50.0 + i for i in range(25)}


def test_bounds_stand_beside_each_figure() -> None:
    """A category is assessed by its own targets; those without statements do not count."""
    origin = table({"x": 10.0, "y": 90.0}, "origin")
    whole = pl.concat([table(MANY | {"z": None}), origin])
    figures, bounds = harms.neutral_metrics(whole, "regard"), neutral_intervals(whole, "regard", {})
    assert set(bounds) == {name + side for name in figures for side in ("_low", "_high")}
    for name in ("NRM", "NRM/gender", "NRV/gender"):
        assert bounds[f"{name}_low"] < figures[name] < bounds[f"{name}_high"]
    assert bounds["NRV_low"] < figures["NRV"]
    assert bounds["NRV_high"] is None  # two words decide it
    alone = neutral_intervals(origin, "regard", {})
    assert bounds["NRM/origin_low"] == alone["NRM/origin_low"] == alone["NRM_low"]
    without, gender = (neutral_intervals(table(rows), "sentiment", {}) for rows in (MANY, MANY | {"x": None}))
    assert without == gender


def test_no_bounds_for_one_word_or_none() -> None:
    inflections = neutral_intervals(table({"she": 50.0, "her": 60.0, "hers": 70.0}), "sentiment", PRONOUNS)
    empty = neutral_intervals(table({"she": None, "he": None}), "sentiment", {})
    assert set(inflections.values()) == set(empty.values()) == {None}


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
