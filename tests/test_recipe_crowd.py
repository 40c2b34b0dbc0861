"""recipe=crowd as a whole, on a few made-up ratings: what it leaves, and that the scorer of its folder tells unkind
statements from plain ones."""

import json
from pathlib import Path

import polars as pl
import pytest
from classifier_data import write_crowd
from command import apart

from mitigate.score.crowd import Crowd


@pytest.mark.thorough
def test_the_recipe_leaves_a_classifier_its_accuracy_and_its_card(tmp_path: Path) -> None:
    command = [
        "recipe=crowd",
        f"data.root={write_crowd(tmp_path / 'data')}",
        "measure.resamples=50",
        f"paths.outputs={tmp_path / 'runs'}",
        f"paths.cache={tmp_path / 'cache'}",
        "tracking.mode=none",
    ]
    done = apart(*command)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["passed/crowd/recall"] is not None
    assert {"source", "category", "sensitivity"} <= set(pl.read_csv(folder / "crowd" / "accuracy.csv").columns)
    assert (folder / "crowd" / "README.md").read_text().startswith("---\nlicense:")
    crowd = Crowd(folder / "crowd")
    assert crowd(["this person is lazy", "this person is in town"]).label.tolist() == [-1, 0]
    assert "complete: nothing is left to do" in apart(*command).stdout
