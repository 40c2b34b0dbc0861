"""Quality in a comparison: swap lift and perplexity on published triples, paired by prompt and by triple; why a figure,
an interval or a p-value is missing, and what a run lacks is not compared. Numbers by hand."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from compared_runs import edit, make_run, plan_of, seal

from mitigate.finished import open_run
from mitigate.tasks.compare.quality import _valid_shares, quality_differences
from mitigate.tasks.compare.runs import compare_runs


def with_lists(run: Path, lift: float, nll: float) -> Path:
    """The run with a swap lift of about so many points for held-out heads and half of them for professions, and so many
    nats for each of twenty published triples of two tokens; those about an origin are twice as surprising."""
    random = np.random.default_rng(len(run.name))
    rows = [
        {
            "system": system,
            "group": group,
            "head": f"head {number}",
            "relation": "IsA",
            "counts": True,
            "elsewhere": 5.0,
        }
        | {"accepted": 5.0 + (system == "generator") * size * (1 + random.choice([-0.1, 0.1]))}
        for system in ("generator", "echo")
        for group, size in (("held_out", lift), ("profession", lift / 2))
        for number in range(30)
    ]
    pl.DataFrame(rows).write_parquet(run / "lift.parquet")
    published = pl.DataFrame(
        {
            "head": [f"t{number}" for number in range(20)],
            **{"relation": "IsA", "tail": "some thing", "category": ["gender"] * 10 + ["origin"] * 10},
            "nll": [nll] * 10 + [2 * nll] * 10,
            "tokens": pl.Series([2] * 20, dtype=pl.UInt32),
            "characters": pl.Series([10] * 20, dtype=pl.UInt32),
            **{"sentiment_neutral": [0, 1] * 10, "regard_neutral": 0},
        }
    )
    published.write_parquet(run / "published.parquet")
    return seal(run)


def test_swap_lift_is_paired_by_prompt_and_published_triples_by_category(tmp_path: Path) -> None:
    none = with_lists(make_run(tmp_path, "none"), lift=20.0, nll=2.0)
    plan = plan_of(none, with_lists(make_run(tmp_path, "both"), lift=10.0, nll=3.0))
    rows = {row["figure"]: row for row in quality_differences(plan.contrasts, plan.relations).to_dicts()}
    both, held_out = (rows[f"quality/swap_lift/{part}"] for part in ("all", "held_out"))
    assert held_out["baseline"] == pytest.approx(20, rel=0.05)
    assert held_out["change"] == pytest.approx(-10, rel=0.1)
    assert both["baseline"] == pytest.approx(15, rel=0.05)  # the mean of 20 and 10
    assert both["change"] == pytest.approx(-7.5, rel=0.1)
    assert both["items"] == 30
    assert both["low"] < both["change"] < both["high"] < 0
    assert rows["quality/swap_lift/relation/IsA"]["value"] == pytest.approx(both["value"])
    gender, origin = (rows[f"quality/about_perplexity/{part}"] for part in ("gender", "origin"))
    assert (gender["as"], gender["items"]) == ("ratio", 10)
    assert gender["change"] == pytest.approx(math.exp((3 - 2) / 2))
    assert origin["change"] == pytest.approx(math.exp((6 - 4) / 2))  # the worse half
    assert rows["quality/about_perplexity/polar"]["items"] == 10
    bits = rows["quality/about_bits_per_char/gender"]
    assert (bits["as"], bits["items"]) == ("difference", 10)
    assert bits["change"] == pytest.approx((3 - 2) / math.log(2) / 10)


def test_bits_per_character_are_paired_across_tokenizers(tmp_path: Path) -> None:
    """The runs cut the same triples into other tokens; then also into other parts of a long tail."""
    none, other = (make_run(tmp_path, name) for name in ("none", "both"))
    for run, nll in ((none, 2.0), (other, 3.0)):
        with_lists(run, lift=20.0, nll=nll)
    for name in ("likelihood.parquet", "published.parquet"):
        edit(other, name, lambda table: table.with_columns(pl.col("tokens") + 1))
    plan = plan_of(none, other)
    rows = {row["figure"]: row for row in quality_differences(plan.contrasts, plan.relations).to_dicts()}
    assert rows["quality/bits_per_char/all"]["items"] > 0
    assert rows["quality/about_bits_per_char/all"]["items"] == 20
    assert not [figure for figure, row in rows.items() if "perplexity" in figure and row["items"]]
    edit(other, "published.parquet", lambda table: table.with_columns(pl.col("characters") + 1))
    plan = plan_of(none, other)
    figures = [row["figure"] for row in quality_differences(plan.contrasts, plan.relations).to_dicts()]
    assert not [figure for figure in figures if "about" in figure]


def test_runs_without_them_or_without_probabilities_are_compared_by_the_rest(tmp_path: Path) -> None:
    none, older = with_lists(make_run(tmp_path, "none"), lift=20.0, nll=2.0), make_run(tmp_path, "both")
    given = with_lists(make_run(tmp_path, "regard"), lift=1.0, nll=math.nan)
    edit(given, "likelihood.parquet", lambda table: table.with_columns(nll=pl.lit(math.nan)))
    edit(given, "metrics.json", lambda metrics: metrics | {"quality/perplexity/neutral": None})
    plan = plan_of(none, older, given)
    rows = quality_differences(plan.contrasts, plan.relations)
    both, regard = (set(rows.filter(contrast=name)["figure"]) for name in ("both", "regard"))
    assert not any("swap_lift" in key or "about" in key for key in both)
    assert "quality/perplexity/neutral" in both
    assert {"quality/swap_lift/all", "quality/bleu2/all"} <= regard
    assert not any("perplexity" in key or "bits" in key for key in regard)
    assert any("files of tails and give no probabilities" in notice for notice in plan.notices)


def test_perplexity_of_several_seeds_is_a_geometric_mean_without_intervals_too(tmp_path: Path) -> None:
    """Nothing is paired here: the runs were tested on other triples."""
    runs = [make_run(tmp_path, "none", seed, nll=nll) for seed, nll in ((1, 2.0), (2, 4.0))]
    for run in (make_run(tmp_path, "both", seed, nll=6.0) for seed in (1, 2)):
        runs.append(edit(run, "likelihood.parquet", lambda table: table.head(50)))
    plan = plan_of(*runs)
    rows = quality_differences(plan.contrasts, plan.relations)
    found = rows.row(by_predicate=pl.col("figure").str.contains("neutral"), named=True)
    assert found["low"] is None
    assert found["baseline"] == pytest.approx(math.exp(1.5))
    assert found["change"] == pytest.approx(math.exp(3) / math.exp(1.5))


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs; the second was asked about fewer targets, and nothing of its first target's was classified."""
    none, both = make_run(tmp_path, "none", valid=0.5), make_run(tmp_path, "both", num_targets=39, valid=0.5)
    judged = pl.when(pl.col("target") != "t0").then("judged_valid")
    edit(both, "validity.parquet", lambda table: table.with_columns(judged_valid=judged))
    return [edit(none, "metrics.json", lambda metrics: {"quality/first_valid/all": 4.0} | metrics), both]


def test_a_target_that_a_run_lacks_is_left_out_of_plausible_shares(runs: list[Path]) -> None:
    shares = _valid_shares([open_run(run) for run in runs], ["IsA", "CapableOf"], pl.lit(True), "judged_valid")
    assert shares["target"].to_list() == [f"t{number}" for number in range(1, 39)]
    assert shares.null_count().sum_horizontal().item() == 0
    found = compare_runs(runs).quality.filter(figure="quality/valid/all").row(0, named=True)
    assert found["items"] == 38
    assert found["baseline"] == pytest.approx(shares["run_0"].mean())
    assert found["low"] < found["change"] < found["high"]
