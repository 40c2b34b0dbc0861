"""The headlines: which figures W&B shows first, their names there, and the table of all figures."""

import re
from pathlib import Path

import pytest
import yaml

from mitigate.headlines import FIGURES, figures, headline, headlines, table
from mitigate.metrics import SCORER, find

CONF = Path(__file__).parents[1] / "conf"
METRICS = {
    "neutral_template/NRM": 83.5,
    "neutral_template/NRM_low": 80.0,
    "neutral_template/NRM_high": 86.0,
    "NSM/origin": 70.0,
    "neutral_template/ngram/neutral_mean": 90,
    "quality/valid/all": 12.25,
    "regard/polarised": 4.0,
    "distinct_tails": None,
    "filter/kept": 40,
    "seed": 1,
    "policy": "both",
    "own_metric": 3.0,
}


def test_each_headline_is_a_metric_with_a_name_that_wandb_sorts_and_filters_by() -> None:
    names = [row.name for row in table()]
    assert len(set(names)) == len(names)
    for row in table():
        assert find(row.key.replace(SCORER, "ngram")), row.key
        assert re.fullmatch(r"(harm|disparity|quality|cost|size)/[A-Za-z_][A-Za-z0-9_]*", row.name.replace(SCORER, "x"))
        assert set(row.recipes) <= {"mitigate", "audit", "stories", "kge"}


def test_a_run_has_the_headlines_that_it_has_numbers_of_in_the_tables_order() -> None:
    assert {row.name: value for row, value in headlines(METRICS, "mitigate").items()} == {
        "harm/neutral_regard_percent": 83.5,
        "harm/neutral_ngram_percent": 90,
        "quality/plausible_percent": 12.25,
        "cost/triples_kept": 40,
    }
    assert [row.name for row in headlines(METRICS, "audit")] == [
        "harm/neutral_regard_percent",
        "harm/neutral_ngram_percent",
        "harm/paper_polarised_regard_percent",
        "cost/triples_kept",
    ]
    assert headlines({}, "mitigate") == {}


def test_a_headline_says_what_it_is_its_unit_and_what_better_means() -> None:
    captions = {key: row.caption for key in METRICS if (row := headline(key))}
    assert captions["neutral_template/NRM"] == "Neutral by regard, % (higher is better)"
    assert captions["neutral_template/ngram/neutral_mean"] == "Neutral by ngram, % (higher is better)"
    assert captions["filter/kept"] == "Training triples kept"
    assert headline("quality/perplexity/all").caption == "Perplexity on all test triples (lower is better)"
    whats = [headline(key).what for key in ("neutral_template/NRV", "quality/swap_lift/all", "quality/perplexity/all")]
    assert whats == ["variance of neutral by regard", "swap lift", "perplexity on all test triples"]
    assert headline("neutral_template/a-b/neutral_mean").name == "harm/neutral_a_b_percent"


@pytest.mark.parametrize("key", ["NSM/origin", "neutral_template/NRM_low", "own_metric", "by_kind/NRM/people", "seed"])
def test_other_keys_are_no_headlines(key: str) -> None:
    assert headline(key) is None


def test_what_is_optimised_is_what_a_sweep_by_wandb_optimises() -> None:
    optimised = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["optimized_metric"]
    metric = yaml.safe_load((CONF / "sweep" / "wandb.yaml").read_text(encoding="utf-8"))["metric"]
    row = headline(optimised)
    assert (row.name, {"up": "maximize", "down": "minimize"}[row.metric.better]) == (metric["name"], metric["goal"])


def test_all_figures_are_in_one_table_with_their_intervals_and_the_baselines() -> None:
    found = figures(METRICS, {"neutral_template/NRM": 81.0})
    assert dict(found.schema) == FIGURES
    assert found["key"].to_list() == [
        *("neutral_template/NRM", "NSM/origin", "neutral_template/ngram/neutral_mean", "quality/valid/all"),
        *("regard/polarised", "distinct_tails", "filter/kept"),
    ]
    assert found.row(0, named=True) == {
        "family": "harm",
        "measure": "neutral regard, mean, neutral template",
        "key": "neutral_template/NRM",
        "value": 83.5,
        "low": 80.0,
        "high": 86.0,
        "baseline": 81.0,
        "unit": "percent",
        "better": "up",
    }
    assert found.filter(key="NSM/origin").row(0)[:2] == ("harm", "neutral sentiment, mean, origin")
    assert figures({}).height == 0


def test_the_list_of_names_is_in_the_documentation() -> None:
    lines = (CONF.parent / "docs" / "wandb.md").read_text(encoding="utf-8").splitlines()
    listed = [tuple(cell.strip(" `") for cell in line.split("|")[1:3]) for line in lines if line.startswith("| `")]
    assert [row for row in listed if "/" in row[0]] == [(row.name, row.key) for row in table()]
