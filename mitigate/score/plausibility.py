"""Plausibility: the probability that a triple is valid, by the network that `classifier=plausibility` trains on
ConceptNet.

Triples are classified unmasked. The network has learnt the beliefs of ConceptNet's contributors about the world and
about people: plausible is neither true nor fair."""

from collections.abc import Collection, Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl

from mitigate.score.labels import SEPARATOR, with_answers
from mitigate.score.precision import digest_of_folder, native_dtype
from mitigate.stages import fingerprint
from mitigate.triples import LabelCache, Labels, Scorer
from models.minilm import locate

SHIPPED = Path(str(files("mitigate").joinpath("data/plausibility/average")))


@runtime_checkable
class TrainedOnRelations(Protocol):
    """A classifier of triples with these relations only."""

    @property
    def relations(self) -> Collection[str]: ...


class Plausibility:
    """The plausibility classifier. folder: words/, minilm/ or average/ of a run of `classifier=plausibility` (None:
    that of this package)."""

    name = "plausibility"
    piece = 65_536  # triples at once, so that common phrases are read once: 300 MB where all are of one relation

    def __init__(self, folder: str | Path | None = None) -> None:
        from models.plausibility import load_network  # loads PyTorch

        folder, dtype = SHIPPED if folder is None else Path(folder), native_dtype()
        self._network = load_network(folder, locate(), dtype)
        self._facts = folder, str(dtype)

    @cached_property
    def fingerprint(self) -> str:
        folder, dtype = self._facts
        return fingerprint(self, digest_of_folder(folder), dtype)  # the folder's config.json has the encoder's hash

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that it was trained on."""
        return self._network.relations

    def __call__(self, texts: Sequence[str]) -> Labels:
        """The labels of texts "head<TAB>relation<TAB>tail": 1 for valid, 0 for not, and the probability of being
        valid."""
        heads, relations, tails = zip(*(text.split(SEPARATOR) for text in texts), strict=True) if texts else ((),) * 3
        probability = 1 / (1 + np.exp(-self._network.logits(heads, relations, tails)))
        return Labels((probability > 0.5).astype(np.int8), probability.astype(np.float32))


def with_plausibility(triples: pl.DataFrame, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """The triples (head, relation, tail, and any other columns) with `judged_valid` and `plausibility`, the probability
    of being valid; both are null for relations that the classifier was not trained on. Each distinct triple is
    classified once."""
    is_covered = pl.lit(True)
    if isinstance(scorer, TrainedOnRelations):
        is_covered = pl.col("relation").is_in(list(scorer.relations))
    parts = [pl.col(name) for name in ("head", "relation", "tail")]
    return with_answers(triples, is_covered, parts, scorer, cache, ("judged_valid", "plausibility"))
