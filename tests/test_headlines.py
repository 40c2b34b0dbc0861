"""The headlines: which figures W&B shows first, their names there, the table of all figures, the charts of a run and of
a comparison (as the tables that W&B's presets draw), and the saved view, which is built without a network."""

import re
from pathlib import Path

import yaml

from mitigate.metrics import SCORER, find
from mitigate.tracking.headlines import headline, headlines, table

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
