"""Training of the shipped regard classifiers: some layers of the teacher with a low-rank part of their change, trained
further on the labels and on the teacher's probabilities; the gate before it; the teacher; and the n-gram classifier.

A copy of a text with an identity term in place of "this person" is trained towards the teacher's probabilities for the
text itself, so that the term makes no difference (the pairing of Garg et al. 2019, Counterfactual Fairness in Text
Classification through Robustness, by distillation)."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.torch import load_file, save

from mitigate.files import replacing_folder, write
from mitigate.score.precision import native_dtype
from mitigate.tasks.regard.texts import with_copies
from mitigate.train import harness
from mitigate.train import regard as training
from mitigate.train.harness import Log
from mitigate.train.regard_ngram import fit_ngram
from models.encoder import Cascade, Gate, MiniLMClassifier
from models.heads import REGARD
from models.minilm import locate
from models.stored_tensors import trained

KEPT = 0.999  # share of the classifier's polarised labels that the gate keeps on the texts its threshold is chosen by
NEVER_LESS = 0.5  # a threshold, so that texts that the gate passes are neutral by its own probabilities
FILE = "teacher.safetensors"


def train_minilm(
    taught: pl.DataFrame, settings: Mapping[str, Any], *, seed: int, folder: Path, log: Log
) -> dict[str, int]:
    """Train on the result of teach, and write minilm/ to the folder, which has the teacher; returns the number of
    parameters. settings: rank, layers, and those of mitigate.train.regard.fit."""
    harness.seed(seed)  # low-rank weights are random until they take the teacher's change
    classifier = MiniLMClassifier(locate(), settings["rank"], settings["layers"])
    classifier.take(load_teacher(folder))
    wanted = taught["probabilities"].to_numpy()
    training.fit(classifier, classifier.encode(taught["text"].to_list()), wanted, settings, seed=seed, log=log)
    with replacing_folder(folder / "minilm") as part:
        classifier.save(part)
    return {"parameters": _size(classifier), "texts": taught.height}


def train_gate(
    taught: pl.DataFrame, unseen: list[str], settings: Mapping[str, Any], *, seed: int, folder: Path, log: Log
) -> dict[str, float]:
    """Train the gate towards the probabilities of the classifier in minilm/ of the folder on the classifier's training
    texts, set its threshold by texts that neither was trained on, and write it there; returns the number of parameters,
    the threshold and the share of those texts that it passes.

    settings: channels, and those of mitigate.train.regard.fit."""
    classifier = MiniLMClassifier.load(folder / "minilm", locate())
    rows = classifier.encode(taught["text"].to_list())
    harness.seed(seed)
    gate = Gate(locate(), settings["channels"])
    training.fit(gate, rows, classifier.read(rows), settings, seed=seed, log=log)
    found = Cascade(gate, classifier, 1.0).opinions(classifier.encode(unseen))[:, REGARD.index("neutral")]
    polarised = np.isin(classifier.probabilities(unseen).argmax(1), [training.NEGATIVE, training.POSITIVE])
    lost = float(np.quantile(found[polarised], KEPT, method="higher")) if polarised.any() else NEVER_LESS
    threshold = max(NEVER_LESS, lost)
    with replacing_folder(folder / "minilm") as part:
        shutil.copytree(folder / "minilm", part, dirs_exist_ok=True)
        Cascade(gate, classifier, threshold).save(part)
    return {"parameters": _size(gate), "threshold": threshold, "passes": float((found > threshold).mean())}


def train_ngram(
    labelled: pl.DataFrame, taught: pl.DataFrame, settings: Mapping[str, Any], *, seed: int, folder: Path, log: Log
) -> dict[str, int]:
    """Train on the labelled texts (text, label, part) of part train, and on those of the result of teach that are not
    labelled; write ngram/ to the folder; returns the number of parameters. settings: of
    mitigate.train.regard_ngram.fit_ngram."""
    rest = taught.filter(~pl.col("text").is_in(labelled["text"].implode()))
    classifier = fit_ngram(labelled, rest, settings, seed=seed, log=log)
    with replacing_folder(folder / "ngram") as part:
        classifier.save(part)
    return {"parameters": classifier.weight.size + classifier.bias.size}


def train_teacher(
    labelled: pl.DataFrame, settings: Mapping[str, Any], *, seed: int, folder: Path, log: Log
) -> dict[str, int]:
    """Train the whole encoder on labelled texts (text, label) and write it to the folder; returns the number of
    parameters. settings: of mitigate.train.regard.fit."""
    harness.seed(seed)  # the head's first weights are drawn when it is built
    teacher = MiniLMClassifier(locate(), None)
    wanted = training.certain(training.columns_of(labelled))
    training.fit(teacher, teacher.encode(labelled["text"].to_list()), wanted, settings, seed=seed, log=log)
    write(folder / FILE, save(teacher.state_dict()))
    return {"parameters": _size(teacher)}


def _size(network: MiniLMClassifier | Gate) -> int:
    return sum(value.numel() for value in trained(network).values())


def load_teacher(folder: Path) -> MiniLMClassifier:
    """Load the teacher as it was trained, in full precision."""
    teacher = MiniLMClassifier(locate(), None)
    teacher.load_state_dict(load_file(folder / FILE))
    return teacher.eval()


def teach(
    labelled: pl.DataFrame, unlabelled: list[str], copies: Mapping[str, float], *, seed: int, folder: Path
) -> pl.DataFrame:
    """The training texts with copies and probabilities, as with_copies, by the teacher of the folder."""
    texts = labelled["text"].to_list() + unlabelled
    teacher = load_teacher(folder).to(native_dtype())
    taught = pl.DataFrame({"text": texts, "probabilities": teacher.probabilities(texts)})
    return with_copies(labelled, taught, copies, seed)
