"""Swap lift and perplexity on published triples in a comparison: paired by prompt and by triple, numbers by hand."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from compared_runs import make_run, seal

from mitigate.tasks.compare.plan import make_plan, read_models
from mitigate.tasks.compare.quality import quality_differences
from mitigate.tasks.runs import FinishedRun

HEADS = [f"head {number}" for number in range(30)]


def with_lists(run: Path, lift: float, nll: float) -> Path:
    """The run with a swap lift of about so many points for held-out heads and half of them for professions, and so many
    nats for each of twenty published triples of two tokens; those about an origin are twice as surprising."""
    random = np.random.default_rng(len(run.name))
    rows = [
        {"system": system, "group": group, "head": head, "relation": "IsA", "counts": True, "elsewhere": 5.0}
        | {"accepted": 5.0 + (system == "generator") * size * (1 + random.choice([-0.1, 0.1]))}
        for system in ("generator", "echo")
        for group, size in (("held_out", lift), ("profession", lift / 2))
        for head in HEADS
    ]
    pl.DataFrame(rows).write_parquet(run / "lift.parquet")
    published = pl.DataFrame(
        {
            "head": [f"t{number}" for number in range(20)],
            "relation": "IsA",
            "tail": "some thing",
            "category": ["gender"] * 10 + ["origin"] * 10,
            "nll": [nll] * 10 + [2 * nll] * 10,
            "tokens": pl.Series([2] * 20, dtype=pl.UInt32),
            "sentiment_neutral": [0, 1] * 10,
            "regard_neutral": 0,
        }
    )
    published.write_parquet(run / "published.parquet")
    return seal(run)


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """By figure: the rows of one model against another."""
    outputs = tmp_path_factory.mktemp("runs")
    runs = read(
        with_lists(make_run(outputs, "none"), lift=20.0, nll=2.0),
        with_lists(make_run(outputs, "both"), lift=10.0, nll=3.0),
    )
    plan = make_plan(runs, "none")
    rows = quality_differences(plan.contrasts, plan.relations)
    return {row["figure"]: row for row in rows.to_dicts()}


def read(*folders: Path) -> list[FinishedRun]:
    return read_models(folders, "compare.runs")


def test_swap_lift_is_paired_by_prompt(differences: dict[str, dict]) -> None:
    both, held_out = (differences[f"quality/swap_lift/{part}"] for part in ("all", "held_out"))
    assert held_out["baseline"] == pytest.approx(20, rel=0.05)
    assert held_out["change"] == pytest.approx(-10, rel=0.1)
    assert both["baseline"] == pytest.approx(15, rel=0.05)  # the mean of 20 and 10
    assert both["change"] == pytest.approx(-7.5, rel=0.1)
    assert both["items"] == 30
    assert both["low"] < both["change"] < both["high"] < 0
    assert differences["quality/swap_lift/relation/IsA"]["value"] == pytest.approx(both["value"])


def test_published_triples_are_compared_by_category(differences: dict[str, dict]) -> None:
    gender, origin = (differences[f"quality/about_perplexity/{part}"] for part in ("gender", "origin"))
    assert (gender["as"], gender["items"]) == ("ratio", 10)
    assert gender["change"] == pytest.approx(math.exp((3 - 2) / 2))
    assert origin["change"] == pytest.approx(math.exp((6 - 4) / 2))  # who is spoken of worse
    assert differences["quality/about_perplexity/origin/polar"]["items"] == 5


def test_runs_without_them_or_without_probabilities_are_compared_by_the_rest(tmp_path: Path) -> None:
    none, older = with_lists(make_run(tmp_path, "none"), lift=20.0, nll=2.0), make_run(tmp_path, "both")
    given = with_lists(make_run(tmp_path, "regard"), lift=1.0, nll=math.nan)
    table = pl.read_parquet(given / "likelihood.parquet").with_columns(nll=pl.lit(math.nan))
    table.write_parquet(given / "likelihood.parquet")
    metrics = json.loads((given / "metrics.json").read_text()) | {"quality/perplexity/neutral": None}
    (given / "metrics.json").write_text(json.dumps(metrics))
    plan = make_plan(read(none, older, seal(given)), "none")
    rows = quality_differences(plan.contrasts, plan.relations)
    found = {name: {row["figure"] for row in rows.filter(contrast=name).to_dicts()} for name in ("both", "regard")}
    assert not any("swap_lift" in key or "about" in key for key in found["both"])
    assert "quality/perplexity/neutral" in found["both"]
    assert "quality/swap_lift/all" in found["regard"]
    assert not any("perplexity" in key or "bits" in key for key in found["regard"])
    assert "quality/bleu2/all" in found["regard"]
    assert any("files of tails and give no probabilities" in notice for notice in plan.notices)
