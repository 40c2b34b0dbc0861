"""recipe=crowd as a whole, on a few made-up ratings: what it leaves, and that the scorer of its folder tells unkind
statements from plain ones."""

import json
from pathlib import Path

import polars as pl
import pytest
from command import apart

from mitigate.score.crowd import Crowd

TARGETS = ("lawyer", "nurse", "teacher", "farmer", "pilot", "judge", "baker", "priest", "chef", "sailor")
SAID = {"lazy": "3", "from out of town": "3", "at work": "2", "in town": "2", "kind": "1"}  # and what its raters say


def write_data(root: Path) -> Path:
    (root / "humans").mkdir(parents=True)
    (root / "sbic").mkdir()
    rows = [(f"{target} is {said}", vote) for target in TARGETS for said, vote in SAID.items() for _ in range(3)]
    for number, resource in enumerate(("ConceptNet", "GenericsKB", "COMeT")):
        mine = rows[number * 15 :]  # other targets first: no two resources are the same
        (root / "humans" / f"{resource}_sentences.txt").write_text("".join(f"{text}\n" for text, _ in mine))
        (root / "humans" / f"{resource}_bias_labels.txt").write_text("".join(f"{vote}\n" for _, vote in mine))
    frame = {"post": ["a", "b"], "targetStereotype": ['["elves are lazy"]'] * 2, "targetMinority": ['["elves"]'] * 2}
    pl.DataFrame(frame).write_csv(root / "sbic" / "frames_test_posts.csv")
    return root


@pytest.mark.thorough
def test_the_recipe_leaves_a_classifier_its_accuracy_and_its_card(tmp_path: Path) -> None:
    command = [
        "recipe=crowd",
        f"data.root={write_data(tmp_path / 'data')}",
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
