"""The crowd classifier: polarity of a statement about a group, learnt from people's ratings alone.

It has not learnt from labels of VADER, a regard classifier or BERT, so it can assess policies that filter by these."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from mitigate.score.precision import digest_of_folder, native_dtype
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, Labels
from models import encoder
from models.heads import LABELS, Heads
from models.minilm import locate

SHIPPED = Path(str(files("mitigate").joinpath("data/crowd")))
MEANING = {"negative": PREJUDICE, "neutral": NEUTRAL, "positive": FAVOURITISM}


class Crowd:
    """The scorer. Its strength is P(favouritism) - P(prejudice).

    folder: the output of `classifier=crowd` (None: the classifier in this package). unseen: the number of a fold of
    targets (models.heads.fold_of) whose ratings the classifier must not have learnt from, to label
    statements that people rated; None: it may have learnt from all."""

    name = "crowd"

    def __init__(
        self, folder: str | Path | None = None, unseen: int | None = None, encoder_folder: str | Path | None = None
    ) -> None:
        folder = SHIPPED if folder is None else Path(folder)
        dtype = native_dtype()
        self._encoder = encoder.shared(locate(None if encoder_folder is None else Path(encoder_folder)), dtype)
        self._heads = Heads.load(folder)
        self._head = 0 if unseen is None else unseen + 1
        self.fingerprint = fingerprint(self, digest_of_folder(folder), self._head, str(dtype))

    def __call__(self, texts: Sequence[str]) -> Labels:
        probabilities = self._heads.probabilities(self._encoder.features(texts), self._head)
        meaning = np.array([MEANING[label] for label in LABELS], dtype=np.int8)
        strength = probabilities[:, LABELS.index("positive")] - probabilities[:, LABELS.index("negative")]
        return Labels(meaning[self._heads.columns(probabilities, self._head)], strength.astype(np.float32))
