"""The teacher of the regard classifiers: the encoder all-MiniLM-L6-v2 with all weights of its layers trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from safetensors.torch import load_file, save

from mitigate.runs.files import write
from mitigate.score.weights import native_dtype
from mitigate.train import harness
from mitigate.train import regard as training
from mitigate.train.harness import Log
from models.minilm import locate
from models.regard.minilm import MiniLMClassifier

FILE = "teacher.safetensors"


def train_teacher(
    labelled: pl.DataFrame, settings: Mapping[str, Any], *, seed: int, folder: Path, log: Log
) -> dict[str, int]:
    """Train the whole encoder on labelled texts (text, label) and write it to the folder; returns the number of
    parameters. settings: of mitigate.train.regard.fit."""
    harness.seed(seed)  # the head's first weights are drawn when it is built
    teacher = MiniLMClassifier(locate(), None)
    wanted = training.certain(training.columns_of(labelled))
    training.fit(teacher, teacher.encode(labelled["text"].to_list()), wanted, seed=seed, log=log, **settings)
    write(folder / FILE, save(teacher.state_dict()))
    return {"parameters": sum(value.numel() for value in teacher.trained().values())}


def load_teacher(folder: Path) -> MiniLMClassifier:
    """The teacher as it was trained, in full precision."""
    teacher = MiniLMClassifier(locate(), None)
    teacher.load_state_dict(load_file(folder / FILE))
    return teacher.eval()


def label_by_teacher(labelled: pl.DataFrame, unlabelled: list[str], *, folder: Path) -> pl.DataFrame:
    """The texts to learn from with the teacher's probabilities (n, 4), the labelled ones first."""
    texts = labelled["text"].to_list() + unlabelled
    teacher = load_teacher(folder).to(native_dtype())
    return pl.DataFrame({"text": texts, "probabilities": teacher.probabilities(texts)})
