import csv
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

from mitigate.measure import harms
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.uncertainty import cluster_numbers, few_targets, neutral_intervals
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
    for name in ("NRM", "NRV", "NRM/gender", "NRV/gender"):
        assert bounds[f"{name}_low"] < figures[name] < bounds[f"{name}_high"]


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


def test_the_shipped_clusters_are_inflections_of_listed_targets_in_one_category():
    with files("mitigate").joinpath("data/clusters.csv").open(encoding="utf-8") as lines:
        clusters = {row["target"]: row["cluster"] for row in csv.DictReader(lines)}
    assert set(clusters) <= set(targets())
    assert all(targets()[target] == targets()[cluster] for target, cluster in clusters.items())
    assert all(list(clusters.values()).count(cluster) > 1 for cluster in clusters.values())
    everything = pl.DataFrame({"target": list(targets()), "category": list(targets().values()), "statements": 340})
    assert len(np.unique(cluster_numbers(everything, clusters))) == 329 - 11  # 18 targets are 7 words
    assert few_targets(everything, clusters) == ["religion"]


@pytest.mark.parametrize("scorer", ["sentiment", "regard"])
def test_bounds_are_the_bootstrap_s(scorer):
    neutral = {f"g{i}": 50.0 + i for i in range(25)}
    values = np.array(list(neutral.values()))[:, None]
    bootstrap = Bootstrap(level=0.9, resamples=500, seed=3)
    bounds = neutral_intervals(table(neutral), scorer, {}, bootstrap)
    mean_name, variance_name = harms.NEUTRAL_MEASURES[scorer]
    # numbers follow the alphabet (g10 before g2), so the draws do too
    numbers = cluster_numbers(table(neutral), {})
    assert bounds[f"{mean_name}_low"] == bootstrap.mean(values, numbers).low.item()
    assert bounds[f"{variance_name}_high"] == bootstrap.variance(values, numbers).high.item()
