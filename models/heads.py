"""Linear classifiers on the states of a network that is not trained (models/encoder.py).

Several heads share one encoding of a text: each has left out a part of what the others learnt from. The network is
identified by the SHA-256 of its files; what is stored is the heads alone."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy.special import softmax

from mitigate.models.minilm import CONFIG, WEIGHTS
from mitigate.models.stored_tensors import read_facts, write_facts

LABELS = ("negative", "neutral", "positive")
"""The meaning of the columns."""
REGARD = (*LABELS, "other")
"""The columns of a classifier of regard. "other" is a text of two minds, or one that the other three do not fit."""
FOLDS = 10


@dataclass(frozen=True)
class CrossFitted:
    """FOLDS x FOLDS heads: that at (s, t) learnt nothing about subjects of fold s and no text of fold t.

    weight (FOLDS, FOLDS, width, columns), bias (FOLDS, FOLDS, columns), threshold (): a text is polar where its
    probability of being neutral is below 1 - threshold. marks (texts,): hash_of each text that heads learnt from, and
    of the same text in other words; marked (texts,): the text's fold.
    facts: what config.json holds: labels, the columns' names; sha256 and layers of the network
    (models.encoder.States); and reads, the kinds of texts whose features stand side by side."""

    weight: np.ndarray
    bias: np.ndarray
    threshold: np.ndarray
    marks: np.ndarray
    marked: np.ndarray
    facts: Mapping[str, Any]

    def probabilities(
        self, features: np.ndarray, texts: Sequence[str], subjects: Sequence[str | None] | None = None
    ) -> np.ndarray:
        """(n, columns): the mean over the heads that learnt neither from a text nor about its subject; over heads of
        all folds of texts for one that none learnt from, and of all folds of subjects where none is given."""
        known = dict(zip(self.marks.tolist(), self.marked.tolist(), strict=True))
        named = [None] * len(texts) if subjects is None else subjects
        of_subjects = _folds([-1 if subject is None else fold_of(subject) for subject in named])
        of_texts = _folds([known.get(hash_of(text), -1) for text in texts])
        weight = self.weight.transpose(2, 0, 1, 3).reshape(features.shape[1], -1)
        kept = (of_subjects[:, :, None] & of_texts[:, None, :])[..., None]
        each = softmax((features @ weight).reshape(-1, *self.bias.shape) + self.bias, axis=-1)
        return (each * kept).sum((1, 2)) / kept.sum((1, 2))

    def save(self, folder: Path) -> None:
        """Write the heads in half precision, and their facts."""
        write_facts(folder / CONFIG, self.facts)
        halves = {name: np.asarray(getattr(self, name), dtype=np.float16) for name in ("weight", "bias", "threshold")}
        save_file({**halves, "marks": self.marks, "marked": self.marked}, folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> "CrossFitted":
        """The heads of a folder. Raises OSError and ValueError as models.stored_tensors does."""
        facts = read_facts(folder / CONFIG, ["labels", "sha256", "layers", "reads"])
        stored = load_file(folder / WEIGHTS)
        halves = {name: stored[name].astype(np.float32) for name in ("weight", "bias", "threshold")}
        return cls(**halves, marks=stored["marks"], marked=stored["marked"], facts=facts)


def _folds(numbers: Sequence[int]) -> np.ndarray:
    """The folds that may be used for each number of a fold, (n, FOLDS) bool; all for -1."""
    folds = np.array(numbers, dtype=int)
    return (folds[:, None] == np.arange(FOLDS)) | (folds < 0)[:, None]


def polar_columns(probabilities: np.ndarray, threshold: float) -> np.ndarray:
    """The column of LABELS of each text, (n,): neutral, unless the probability of another label is above the
    threshold."""
    negative, neutral, positive = (LABELS.index(label) for label in ("negative", "neutral", "positive"))
    sign = np.where(probabilities[:, positive] > probabilities[:, negative], positive, negative)
    return np.where(1 - probabilities[:, neutral] > threshold, sign, neutral)


def fold_of(name: str) -> int:
    """The fold of a text or of its subject, by its letters alone."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % FOLDS


def hash_of(text: str) -> int:
    """A hash of a text, 63 bits."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
