"""Plausibility: how likely a triple is to be valid, by the network that `recipe=plausibility` trains on ConceptNet.

A triple is classified as it is, unmasked. A network has learnt what ConceptNet's contributors took for granted about
the world, and about people: plausible is neither true nor fair."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.fingerprints import fingerprint
from mitigate.score.labels import label_column
from mitigate.score.weights import digest_of_folder, native_dtype
from mitigate.triples import LabelCache, Labels, Scorer
from models.minilm import locate
from models.plausibility.average import load_network

SHIPPED = Path(str(files("mitigate").joinpath("data/plausibility/average")))
SEPARATOR = "\t"  # between the parts of a triple that is kept in the cache as a text


class Plausibility:
    """folder is one that `recipe=plausibility` left, words/, minilm/ or average/ (None: the one that comes with the
    project); encoder_folder holds the encoder (None: as models.minilm.locate finds it)."""

    name = "plausibility"

    def __init__(self, folder: str | Path | None = None, encoder_folder: str | Path | None = None) -> None:
        folder = SHIPPED if folder is None else Path(folder)
        encoder_folder = locate(None if encoder_folder is None else Path(encoder_folder))
        dtype = native_dtype()
        self._network = load_network(folder, encoder_folder, dtype)
        self.fingerprint = fingerprint(self, digest_of_folder(folder), str(dtype))  # config.json has the encoder's hash

    def __call__(self, texts: Sequence[str]) -> Labels:
        """Of texts "head<TAB>relation<TAB>tail": 1 for valid, 0 for not, and the probability of being valid."""
        heads, relations, tails = zip(*(text.split(SEPARATOR) for text in texts), strict=True) if texts else ((),) * 3
        probability = 1 / (1 + np.exp(-self._network.logits(heads, relations, tails)))
        return Labels((probability > 0.5).astype(np.int8), probability.astype(np.float32))


def with_plausibility(triples: pl.DataFrame, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """The triples (head, relation, tail, and whatever else) with `judged_valid` and `plausibility`, the probability
    of being valid. Each distinct triple is classified once."""
    texts = triples.select(pl.concat_str("head", "relation", "tail", separator=SEPARATOR))
    said = label_column(texts.to_series(), scorer, cache)
    return triples.with_columns(judged_valid=pl.Series(said.label == 1), plausibility=pl.Series(said.strength))
