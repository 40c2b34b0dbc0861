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

from models.minilm import CONFIG, WEIGHTS
from models.stored_tensors import read_facts, write_facts

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
    facts: what config.json holds: labels, the columns' names; sha256, layers and depth of the network
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
        named = [None] * len(texts) if subjects is None else subjects
        return self.mean(features, self.folds_of(named), self.folds_of_texts(texts))

    def mean(self, features: np.ndarray, subjects: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """(n, columns): the mean probabilities by the heads of these folds of subjects and of texts, (n, FOLDS) bool
        each."""
        weight = self.weight.transpose(2, 0, 1, 3).reshape(features.shape[1], -1)
        kept = (subjects[:, :, None] & texts[:, None, :])[..., None]
        each = softmax((features @ weight).reshape(-1, *self.bias.shape) + self.bias, axis=-1)
        return (each * kept).sum((1, 2)) / kept.sum((1, 2))

    def folds_of_texts(self, texts: Sequence[str]) -> np.ndarray:
        """The folds of texts whose heads did not learn from each text, (n, FOLDS) bool; all for a text that none learnt
        from."""
        known = dict(zip(self.marks.tolist(), self.marked.tolist(), strict=True))
        folds = np.array([known.get(hash_of(text), -1) for text in texts], dtype=int)
        return (folds[:, None] == np.arange(FOLDS)) | (folds < 0)[:, None]

    def folds_of(self, subjects: Sequence[str | None]) -> np.ndarray:
        """The fold of each subject, (n, FOLDS) bool; all for None."""
        folds = np.array([-1 if subject is None else fold_of(subject) for subject in subjects], dtype=int)
        return (folds[:, None] == np.arange(FOLDS)) | (folds < 0)[:, None]

    def save(self, folder: Path) -> None:
        """Write the heads in half precision, and their facts."""
        write_facts(folder / CONFIG, self.facts)
        halves = {name: np.asarray(getattr(self, name), dtype=np.float16) for name in ("weight", "bias", "threshold")}
        save_file({**halves, "marks": self.marks, "marked": self.marked}, folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> "CrossFitted":
        """The heads of a folder. Raises OSError and ValueError as models.stored_tensors does."""
        facts = read_facts(folder / CONFIG, ["labels", "sha256", "layers", "depth", "reads"])
        stored = load_file(folder / WEIGHTS)
        halves = {name: stored[name].astype(np.float32) for name in ("weight", "bias", "threshold")}
        return cls(**halves, marks=stored["marks"], marked=stored["marked"], facts=facts)


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
