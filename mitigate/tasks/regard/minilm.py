"""The shipped regard classifier: a low-rank part of the teacher's change, trained further on the labels and on the
teacher's probabilities."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.tasks.regard.teacher import load_teacher
from mitigate.train import regard as training
from mitigate.train.harness import Log
from models.minilm import locate
from models.regard.minilm import MiniLMClassifier

TEACHERS_SHARE = 0.5  # of the probabilities that a labelled text is trained towards; the rest is its label's


def train_minilm(
    labelled: pl.DataFrame, taught: pl.DataFrame, settings: Mapping[str, Any], *, seed: int, folder: Path, log: Log
) -> dict[str, int]:
    """Train on texts with the teacher's probabilities (text, probabilities), of which the first are the labelled ones,
    and write minilm/ to the folder, which has the teacher; returns the number of parameters.

    settings: rank, and those of mitigate.train.regard.fit_minilm."""
    how = {name: value for name, value in settings.items() if name != "rank"}
    wanted = taught["probabilities"].to_numpy().copy()
    labels = training.certain(training.columns_of(labelled))
    wanted[: len(labels)] = TEACHERS_SHARE * wanted[: len(labels)] + (1 - TEACHERS_SHARE) * labels
    classifier = MiniLMClassifier(locate(), settings["rank"])
    classifier.take(load_teacher(folder))
    training.fit_minilm(classifier, taught["text"].to_list(), wanted, seed=seed, log=log, **how)
    classifier.save(folder / "minilm")
    return {"parameters": sum(value.numel() for value in classifier.trained().values())}
