"""Predicted ratings of a statement by people, from linear heads trained on ratings alone (models.heads.CrossFitted):
prejudice, neutral or favouritism (crowd2, crowd_lm), and validity (people_valid).

All are trained on the same ratings. No text is labelled by a head that was trained on it. They have not learnt from
labels of VADER, a regard classifier or BERT, so they can assess policies that filter by these."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from mitigate.errors import MitigateError
from mitigate.score.labels import SEPARATOR
from mitigate.score.precision import digest_of_folder, native_dtype
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, Labels
from mitigate.words.targets import clusters
from models import encoder, minilm
from models.encoder import States
from models.heads import LABELS, CrossFitted, polar_columns

DATA = Path(str(files("mitigate").joinpath("data")))
SHIPPED = {"crowd2": DATA / "crowd2/", "people_valid": DATA / "people_valid/"}  # named as folders, for fingerprints
MEANING = {"negative": PREJUDICE, "neutral": NEUTRAL, "positive": FAVOURITISM}
NEGATED = "negated"
NEGATED_SCALE = 2.0  # so that weights of negated features decay less than those of words
NEGATION = re.compile(r"\b(?:not|never|no|nor|neither|cannot|without)\b|n't\b")
VALID = ("not valid", "valid")
"""The columns of people_valid."""


class FromRatings:
    """Heads and the network whose states they read."""

    name: str

    def __init__(self, folder: str | Path | None = None, encoder_folder: str | Path | None = None) -> None:
        folder = SHIPPED[self.name] if folder is None else Path(folder)
        self.heads = CrossFitted.load(folder)
        self.states = states_of(self.heads, folder, encoder_folder)
        self.fingerprint = fingerprint(self, digest_of_folder(folder), str(native_dtype()))

    def features(self, texts: Mapping[str, Sequence[str]]) -> np.ndarray:
        """The features (n, width) of texts by their kind, "masked" or "statement"."""
        return features(self.states, self.heads.facts["reads"], texts)


class Crowd2(FromRatings):
    """Polarity by raters, on states of all-MiniLM-L6-v2. Its strength is P(favouritism) - P(prejudice).

    folder: the output of `classifier=people` (None: the heads in this package); encoder_folder: the encoder's (None: as
    models.minilm.locate finds it)."""

    name = "crowd2"

    def __call__(self, texts: Sequence[str]) -> Labels:
        return polarity(self.probabilities(texts), self.heads)

    def probabilities(self, texts: Sequence[str], subjects: Sequence[str | None] | None = None) -> np.ndarray:
        """The probabilities (n, 3) of masked statements, columns as in models.heads.LABELS. subjects: clusters of
        targets, so that only heads are used that were not trained on ratings about the target."""
        return self.heads.probabilities(self.features({"masked": texts}), [plain(text) for text in texts], subjects)


class CrowdLM(Crowd2):
    """Polarity by raters on states of a causal language model, by heads of `classifier=people recipe.base=BASE`.

    base: a folder, or a name on the hub; folder: the crowd_lm/ of that recipe's run folder."""

    name = "crowd_lm"

    def __init__(self, folder: str | Path | None = None, base: str | None = None) -> None:
        if folder is None or base is None:
            raise MitigateError(
                f"score.crowd_lm needs base, a causal language model, and folder, its heads; found base={base}, "
                f"folder={folder}. `python -m mitigate recipe=classifier classifier=people data.root=DIR "
                "recipe.base=BASE` leaves the heads "
                "in crowd_lm/ of its run folder"
            )
        from models import hub  # loads the hub's client: half a second

        super().__init__(folder, hub.locate(base, seq2seq=False))


class PeopleValid(FromRatings):
    """The scorer of whether people would call a statement valid, for texts "target<TAB>masked statement<TAB>statement":
    1 for valid, 0 for not, and the probability. folder, encoder_folder: as those of Crowd2."""

    name = "people_valid"

    @property
    def half(self) -> str:
        """The part of the rated statements that it was trained on (studies.classifier.half_of)."""
        return str(self.heads.facts.get("half", "all"))

    def __call__(self, texts: Sequence[str]) -> Labels:
        parts = [text.split(SEPARATOR) for text in texts]
        targets, masked, statements = ([part[place] for part in parts] for place in range(3))
        valid = self.probabilities(statements, masked, [clusters().get(target, target) for target in targets])
        return Labels((valid > 0.5).astype(np.int8), valid.astype(np.float32))

    def probabilities(self, statements: Sequence[str], masked: Sequence[str], subjects: Sequence[str]) -> np.ndarray:
        """The probability (n,) of being valid, by heads that were trained neither on the masked statement nor on the
        subject."""
        found = self.features({"masked": masked, "statement": statements})
        return self.heads.probabilities(found, [plain(text) for text in masked], subjects)[:, VALID.index("valid")]


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
    read = {kind: states.features([plain(text) for text in texts[kind]]) for kind in kinds if kind != NEGATED}
    if NEGATED in kinds:
        negated = np.array([bool(NEGATION.search(plain(text))) for text in texts["masked"]], dtype=bool)
        read[NEGATED] = NEGATED_SCALE * read["masked"] * negated[:, None]
    return np.concatenate([read[kind] for kind in kinds], axis=1)


def states_of(heads: CrossFitted, folder: Path, base: str | Path | None = None) -> States:
    """The network of the heads in a folder, loaded from the folder `base`. Raises MitigateError for another network."""
    base, dtype, facts = None if base is None else Path(base), native_dtype(), heads.facts
    found: States
    if facts["depth"] is None:
        found = encoder.shared(minilm.locate(base), dtype, tuple(facts["layers"]))
    else:
        from models.hf import CausalStates  # loads transformers: five seconds, for these heads alone

        assert base is not None
        found = CausalStates(base, dtype, facts["depth"])
    if found.sha256 != facts["sha256"]:
        raise MitigateError(
            f"{folder} has heads for the model with SHA-256 {facts['sha256']}; {base or 'the encoder'} has "
            f"{found.sha256}. Give that model, or fit heads to this one: python -m mitigate recipe=classifier "
            "classifier=people "
            f"data.root=DIR recipe.base={base}"
        )
    return found
