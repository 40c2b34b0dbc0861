"""Regard, the impression that a statement gives of its subject (Sheng et al. 2019), by one of three classifiers.

Their columns are matched by name; here negative, neutral, positive and other become the labels that all stages
share."""

from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np

from mitigate.models.heads import REGARD, NgramClassifier
from mitigate.models.stored_tensors import minilm_folder
from mitigate.score.base import digest_of_folder
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels

SHIPPED = Path(str(files("mitigate").joinpath("data/regard")))
MEANING = {"negative": PREJUDICE, "neutral": NEUTRAL, "positive": FAVOURITISM, "other": OTHER}


class MiniLMRegard:
    """The default: layers of all-MiniLM-L6-v2 with the change that `classifier=regard` trains.

    folder: has that change (None: the one in this package). gate: whether the folder's gate, if there is one, passes
    plainly neutral texts."""

    name = "regard"

    def __init__(self, folder: str | Path | None = None, gate: bool = True) -> None:
        from mitigate.models.encoder import Cascade, MiniLMClassifier  # loads PyTorch, unlike the other classes

        folder = SHIPPED / "minilm" if folder is None else Path(folder)
        gated = gate and (folder / "gate.json").is_file()
        classifier = MiniLMClassifier.load(folder, minilm_folder())
        self._classifier = Cascade.load(folder, minilm_folder(), classifier) if gated else classifier
        self._folder, self._is_gated = folder, gated

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self, digest_of_folder(self._folder), self._is_gated)  # config.json has the encoder's hash

    def __call__(self, texts: Sequence[str]) -> Labels:
        return labels(self._classifier.probabilities(texts))


class NgramRegard:
    """A linear classifier of hashed n-grams, for tens of millions of texts."""

    name = "regard"

    def __init__(self, folder: str | Path | None = None) -> None:
        folder = SHIPPED / "ngram" if folder is None else Path(folder)
        self._classifier = NgramClassifier.load(folder)
        self.fingerprint = fingerprint(self, digest_of_folder(folder))

    def __call__(self, texts: Sequence[str]) -> Labels:
        return labels(self._classifier.probabilities(texts))


class BertRegard:
    """Any sequence classifier of the Hugging Face hub, or of a folder, with regard's names of labels."""

    name = "regard"

    def __init__(self, model: str | Path = "sasha/regardv3") -> None:
        from mitigate.models.hf import SequenceClassifier  # loads transformers: five seconds, for this scorer alone

        self._classifier = SequenceClassifier.load(str(model))
        self.fingerprint = fingerprint(self, self._classifier.sha256())

    def __call__(self, texts: Sequence[str]) -> Labels:
        return labels(self._classifier.probabilities(texts))


def labels(probabilities: np.ndarray) -> Labels:
    """The most probable labels, with strength P(positive) - P(negative), from probabilities (n, 4), columns as in
    REGARD."""
    meaning = np.array([MEANING[label] for label in REGARD], dtype=np.int8)
    positive, negative = REGARD.index("positive"), REGARD.index("negative")
    strength = probabilities[:, positive] - probabilities[:, negative]
    return Labels(meaning[probabilities.argmax(1)], strength.astype(np.float32))
