"""The headlines: which figures W&B shows first, their names there, the table of all figures, the charts of a run and of
a comparison (as the tables that W&B's presets draw), and the saved view, which is built without a network."""

import re
from pathlib import Path

import polars as pl
import pytest
import yaml

from mitigate.metrics import SCORER, find
from mitigate.tracking.charts import DIFFERENCES, headline_differences, summary
from mitigate.tracking.headlines import FIGURES, figures, headline, headlines, table

CONF = Path(__file__).parents[1] / "conf"
REGARD, VALID, PERPLEXITY = "neutral_template/NRM", "quality/valid/all", "quality/perplexity/neutral"
METRICS = {
    **{REGARD: 83.5, f"{REGARD}_low": 80.0, f"{REGARD}_high": 86.0, "NSM/origin": 70.0},
    **{"neutral_template/ngram/neutral_mean": 90, VALID: 12.25, "regard/polarised": 4.0, "distinct_tails": None},
    **{"filter/kept": 40, "seed": 1, "policy": "both", "own_metric": 3.0},
}


def test_each_headline_is_a_metric_with_a_name_that_wandb_sorts_and_filters_by() -> None:
    names = [row.name for row in table()]
    assert len(set(names)) == len(names)
    for row in table():
        assert find(row.key.replace(SCORER, "ngram")), row.key
        assert re.fullmatch(r"(harm|disparity|quality|cost|size)/[A-Za-z_][A-Za-z0-9_]*", row.name.replace(SCORER, "x"))
        assert set(row.recipes) <= {"mitigate", "audit", "stories", "kge"}


def test_a_run_has_the_headlines_that_it_has_numbers_of_in_the_tables_order() -> None:
    harms = {"harm/neutral_regard_percent": 83.5, "harm/neutral_ngram_percent": 90}
    found = {row.name: value for row, value in headlines(METRICS, "mitigate").items()}
    assert found == {**harms, "quality/plausible_percent": 12.25, "cost/triples_kept": 40}
    of_audit = [*harms, "harm/paper_polarised_regard_percent", "cost/triples_kept"]
    assert [row.name for row in headlines(METRICS, "audit")] == of_audit
    assert headlines({}, "mitigate") == {}


def test_what_is_optimised_is_what_a_sweep_by_wandb_optimises() -> None:
    optimised = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["optimized_metric"]
    metric = yaml.safe_load((CONF / "sweep" / "wandb.yaml").read_text(encoding="utf-8"))["metric"]
    row = headline(optimised)
    assert (row.name, {"up": "maximize", "down": "minimize"}[row.metric.better]) == (metric["name"], metric["goal"])


def test_all_figures_are_in_one_table_with_their_intervals_and_the_baselines() -> None:
    found = figures(METRICS, {REGARD: 81.0})
    assert dict(found.schema) == FIGURES
    no_figures = (f"{REGARD}_low", f"{REGARD}_high", "seed", "policy", "own_metric")
    assert found["key"].to_list() == [key for key in METRICS if key not in no_figures]
    assert found.row(0, named=True) == {
        **{"family": "harm", "measure": "neutral regard, mean, neutral template", "key": REGARD},
        **{"value": 83.5, "low": 80.0, "high": 86.0, "baseline": 81.0, "unit": "percent", "better": "up"},
    }
    assert found.filter(key="NSM/origin").row(0)[:2] == ("harm", "neutral sentiment, mean, origin")
    assert figures({}).height == 0


ROWS = [
    {"figure": PERPLEXITY, "baseline": 20.0, "value": 21.0, "as": "ratio", "change": 1.05, "low": 1.02, "high": 1.08},
    {"figure": VALID, "baseline": 12.0, "value": 11.0, "as": "difference", "change": -1.0, "low": None, "high": None},
    {"figure": REGARD, "baseline": 80.0, "value": 84.0, "difference": 4.0, "low": 1.0, "high": 7.0},
    {"figure": f"{REGARD}/origin", "baseline": 80.0, "value": 84.0, "difference": 4.0, "low": 1.0, "high": 7.0},
]


@pytest.fixture
def rows() -> pl.DataFrame:
    return pl.concat(headline_differences(policy, "none", ROWS) for policy in ("both", "both, lr=0.1"))


def test_differences_are_in_points_or_in_percent_of_the_baseline(rows: pl.DataFrame) -> None:
    assert dict(rows.schema) == DIFFERENCES
    mine = rows.filter(policy="both")
    assert mine["key"].to_list() == [REGARD, VALID, PERPLEXITY]
    assert mine["unit"].to_list() == ["percentage points", "percentage points", "% of the baseline"]
    assert mine["difference"].to_list() == pytest.approx([4.0, -1.0, 5.0])
    assert mine["low"].to_list() == [1.0, None, pytest.approx(2.0)]
    assert mine["better"].to_list() == ["up", "up", "down"]
    found = summary(rows)
    assert len(found) == 6
    assert found["both/harm_neutral_regard_percent_difference"] == 4.0
    assert found["both_lr_0_1/cost_perplexity_neutral_difference"] == pytest.approx(5.0)
