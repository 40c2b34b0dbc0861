"""Predicted ratings of a statement by people, from linear heads trained on ratings alone (models.heads.CrossFitted):
prejudice, neutral or favouritism (crowd2), and validity (people_valid).

All are trained on the same ratings. No text is labelled by a head that was trained on it. They have not learnt from
labels of VADER, a regard classifier or BERT, so they can assess policies that filter by these."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from mitigate.errors import MitigateError
from mitigate.models import encoder
from mitigate.models.encoder import States
from mitigate.models.heads import LABELS, CrossFitted, polar_columns
from mitigate.models.stored_tensors import minilm_folder
from mitigate.score.base import digest_of_folder
from mitigate.score.labels import SEPARATOR
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, Labels
from mitigate.words.targets import clusters

DATA = Path(str(files("mitigate").joinpath("data")))
SHIPPED = {"crowd2": DATA / "crowd2/", "people_valid": DATA / "people_valid/"}  # named as folders, for fingerprints
MEANING = {"negative": PREJUDICE, "neutral": NEUTRAL, "positive": FAVOURITISM}
NEGATED = "negated"
NEGATED_SCALE = 2.0  # so that weights of negated features decay less than those of words
NEGATION = re.compile(r"\b(?:not|never|no|nor|neither|cannot|without)\b|n't\b")
VALID = ("not valid", "valid")  # the columns of people_valid


class FromRatings:
    """Heads and the network whose states they read."""

    name: str

    def __init__(self, folder: str | Path | None = None, states: States | None = None) -> None:
        """folder: the output of `classifier=people`; None: the heads in this package. states: the network that they
        read with; None: all-MiniLM-L6-v2. Raises MitigateError for another network."""
        folder = SHIPPED[self.name] if folder is None else Path(folder)
        self.heads = CrossFitted.load(folder)
        facts = self.heads.facts
        self.states = states or encoder.shared(minilm_folder(), layers=tuple(facts["layers"]))
        if self.states.sha256 != facts["sha256"]:
            raise MitigateError(
                f"{folder} has heads for the model with SHA-256 {facts['sha256']}, not for {self.states.sha256}; fit "
                "heads again: python -m mitigate recipe=classifier classifier=people data.root=DIR"
            )
        self.fingerprint = fingerprint(self, digest_of_folder(folder))

    def features(self, texts: Mapping[str, Sequence[str]]) -> np.ndarray:
        """The features (n, width) of texts by their kind, "masked" or "statement"."""
        return features(self.states, self.heads.facts["reads"], texts)


class Crowd2(FromRatings):
    """Polarity by raters. Its strength is P(favouritism) - P(prejudice)."""

    name = "crowd2"

    def __call__(self, texts: Sequence[str]) -> Labels:
        return polarity(self.probabilities(texts), self.heads)

    def probabilities(self, texts: Sequence[str], subjects: Sequence[str | None] | None = None) -> np.ndarray:
        """The probabilities (n, 3) of masked statements, columns as in models.heads.LABELS. subjects: clusters of
        targets, so that only heads are used that were not trained on ratings about the target."""
        return self.heads.probabilities(self.features({"masked": texts}), [plain(text) for text in texts], subjects)


class PeopleValid(FromRatings):
    """The scorer of whether people would call a statement valid, for texts "target<TAB>masked statement<TAB>statement":
    1 for valid, 0 for not, and the probability."""

    name = "people_valid"

    def __call__(self, texts: Sequence[str]) -> Labels:
        parts = [text.split(SEPARATOR) for text in texts]
        targets, masked, statements = ([part[place] for part in parts] for place in range(3))
        valid = self.probabilities(statements, masked, [clusters().get(target, target) for target in targets])
        return Labels((valid > 0.5).astype(np.int8), valid.astype(np.float32))

    def probabilities(self, statements: Sequence[str], masked: Sequence[str], subjects: Sequence[str]) -> np.ndarray:
        """The probability (n,) of being valid, by heads that were trained neither on the masked statement nor on the
        subject."""
        read = self.features({"masked": masked, "statement": statements})
        return self.heads.probabilities(read, [plain(text) for text in masked], subjects)[:, VALID.index("valid")]


def polarity(probabilities: np.ndarray, heads: CrossFitted) -> Labels:
    """The labels of texts by their probabilities, (n, 3)."""
    meaning = np.array([MEANING[label] for label in LABELS], dtype=np.int8)
    strength = probabilities[:, LABELS.index("positive")] - probabilities[:, LABELS.index("negative")]
    return Labels(meaning[polar_columns(probabilities, float(heads.threshold))], strength.astype(np.float32))


def plain(text: str) -> str:
    """A text in the form that heads read: raters read "african_american", a run's statements have "african
    american"."""
    return text.replace("_", " ").lower()


def features(states: States, kinds: Sequence[str], texts: Mapping[str, Sequence[str]]) -> np.ndarray:
    """The features of several kinds of texts side by side, (n, width). "negated" has those of masked statements with a
    negation, and zeros for others: from sums over words, linear heads cannot tell "is not cruel" from "is cruel"."""
    by_kind = {kind: states.features([plain(text) for text in texts[kind]]) for kind in kinds if kind != NEGATED}
    if NEGATED in kinds:
        is_negated = np.array([bool(NEGATION.search(plain(text))) for text in texts["masked"]], dtype=bool)
        by_kind[NEGATED] = NEGATED_SCALE * by_kind["masked"] * is_negated[:, None]
    return np.concatenate([by_kind[kind] for kind in kinds], axis=1)
