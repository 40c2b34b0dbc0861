"""The findings of a run on Social Bias Frames, in words."""

from dataclasses import replace

import polars as pl
import pytest
from page_examples import example_frames

from mitigate.report.frames import beside_baselines, findings


def test_classifications_stand_beside_the_best_baseline_and_not_beside_the_constrained_ones() -> None:
    lines = list(findings(example_frames()))
    assert lines[0].startswith("Offensive: F1 70.0 [70.0, 70.0] on 400 test posts, against 68.0")
    assert lines[0].endswith("by the best baseline (always yes).")
    assert not any("lewd" in line.lower() for line in lines)


@pytest.mark.parametrize(("system", "own"), [("model, five folds", "40.0"), ("model", "20.0")])
def test_implied_statements_are_those_of_the_models_that_learnt_some(system: str, own: str) -> None:
    results = example_frames()
    scores = [name for name, kind in results.texts.schema.items() if kind == pl.Float64]
    base = results.texts.filter(system="model, five folds, given a group").with_columns(
        pl.lit(20.0).alias(name) for name in scores
    )
    base = base.with_columns(system=pl.lit("model, given a group"))
    *_, last = findings(
        replace(results, texts=pl.concat([base, results.texts]), systems=("model", f"{system}, given a group"))
    )
    assert last.startswith(f"Implied statements: BLEU-2 {own} [{own}, {own}], ROUGE-L {own}")


def test_without_a_baseline_there_is_nothing_to_stand_beside() -> None:
    assert beside_baselines([{"system": "model", "f1": 1.0}], "model", "f1") is None
    assert beside_baselines([{"system": "nearest", "f1": 1.0}], "model", "f1") is None
