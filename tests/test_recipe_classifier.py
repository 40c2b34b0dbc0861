"""The steps that all classifiers of the project share: train, measure, card. What each learns is tested beside it."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from command import ROOT
from hydra import compose, initialize_config_dir

from mitigate.recipes.classifier import Artefact, Classifier, Results
from mitigate.recipes.job import Job, configured
from mitigate.stages import in_folder


def leave_weights(*, folder: Path) -> dict[str, int]:
    (folder / "fake").mkdir(exist_ok=True)
    (folder / "fake" / "weights.txt").write_text("1")
    return {"parameters": 1}


def measure() -> dict[str, float]:
    return {"recall": 0.5}


leave_weights.version = measure.version = "1"  # type: ignore[attr-defined]


class Fake(Classifier):
    uploads, headline, inputs = "the weights", "recall", "data"

    def stages(self, job: Job) -> None:
        weights = job.stage("fit", leave_weights, using=in_folder())
        job.stage("metrics", measure, after=[weights])

    def artefacts(self, results: Results) -> Iterator[Artefact]:
        yield Artefact("fake", pl.DataFrame({"kappa": [0.123456]}), "fake")


def test_a_classifier_is_trained_once_and_measured(tmp_path: Path, capsys) -> None:
    overrides = ["recipe=classifier", "classifier=crowd", "tracking.mode=none", "seed=7", f"paths.outputs={tmp_path}"]
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        config = configured(compose("config", overrides))
    assert Fake.run(config) == 0.5
    (folder,) = tmp_path.glob("crowd-seed7-*/fake")
    (folder / "weights.txt").unlink()
    assert Fake.run(config) == Fake.run(config) == 0.5
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert texts == {"accuracy.csv": "kappa\n0.1235\n", "weights.txt": "1"}
    assert capsys.readouterr().out.endswith("complete: nothing to do\n")
