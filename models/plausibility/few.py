"""The averaged plausibility classifier in numpy, for a few triples. The numbers are those of `Average` in float32 but
for rounding."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models import minilm
from models.batching import token_batches
from models.digests import sha256_of
from models.numpy_layers import Encoder, Weights, linear, read
from models.plausibility.pieces import PieceReader
from models.stored_tensors import read_facts

CONFIG, WEIGHTS, COMPACT = "config.json", "model.safetensors", "compact.safetensors"
TOGETHER = 512  # tokens of a batch

Vectors = Callable[[Sequence[Sequence[int]]], np.ndarray]
"""A function from phrases as word pieces to their vectors (n, width)."""


class FewAverage:
    """Logits of triples: the mean of the members', and a shift."""

    def __init__(self, folder: Path, encoder_folder: Path) -> None:
        facts = read_facts(folder / CONFIG, ["average", "shift"])
        self.shift = np.float32(facts["shift"])
        self.pieces = PieceReader(encoder_folder)
        self.members: list[tuple[Vectors, np.ndarray]] = []  # phrases' vectors, and a matrix for each relation
        for name in facts["average"]:
            described = read_facts(folder / name / CONFIG, ["encoder_sha256", "relations"])
            self.relations = tuple(described["relations"])
            if described["encoder_sha256"] != (here := sha256_of(encoder_folder / WEIGHTS)):
                raise ValueError(
                    f"{folder / name} was trained on the encoder {described['encoder_sha256']}, here it is {here}"
                )
            stored = read(folder / name / (COMPACT if name == "words" else WEIGHTS))
            vectors = _by_words(stored) if name == "words" else _by_states(stored, encoder_folder, self.pieces)
            self.members.append((vectors, stored["matrices"]))

    @staticmethod
    def fits(folder: Path) -> bool:
        """Return whether the classifier in a folder is an average."""
        return "average" in read_facts(folder / CONFIG)

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        """The logits of n triples, (n,) float32: above 0 is valid. Raises ValueError for a relation that was not in
        training."""
        if unknown := sorted(set(relations) - set(self.relations)):
            raise ValueError(
                f"relations {', '.join(unknown)} are unknown to this network; known are {', '.join(self.relations)}"
            )
        if not len(relations):
            return np.zeros(0, dtype=np.float32)
        distinct = list(dict.fromkeys([*heads, *tails]))
        place = {phrase: number for number, phrase in enumerate(distinct)}
        pieces, found = self.pieces(distinct), []
        for vectors, matrices in self.members:
            known = np.pad(vectors(pieces), ((0, 0), (0, 1)), constant_values=1)  # a relation can like heads as such
            first, second = (known[[place[phrase] for phrase in phrases]] for phrases in (heads, tails))
            chosen = matrices[[self.relations.index(name) for name in relations]]
            found.append((first[:, None] @ chosen @ second[..., None])[:, 0, 0])
        return np.stack(found).mean(0) + self.shift


def _by_words(stored: Weights) -> Vectors:
    """The mean of the phrases' words, which are stored behind the layer."""

    def vectors(phrases: Sequence[Sequence[int]]) -> np.ndarray:
        means = [(stored["words"][ids] * stored["scales"][ids, None]).mean(0) for ids in map(list, phrases)]
        return np.tanh(np.array(means) + stored["bias"])

    return vectors


def _by_states(stored: Weights, encoder_folder: Path, reader: PieceReader) -> Vectors:
    """The mean of the encoder's token states through a layer."""
    facts: Mapping[str, Any] = read_facts(encoder_folder / CONFIG, ["num_attention_heads", "num_hidden_layers"])
    layers = range(facts["num_hidden_layers"])
    encoder = Encoder.of(encoder_folder / minilm.WEIGHTS, facts["num_attention_heads"], layers)

    def vectors(phrases: Sequence[Sequence[int]]) -> np.ndarray:
        rows = [[reader.start, *pieces, reader.end] for pieces in phrases]
        means = np.zeros((len(rows), encoder.width), dtype=np.float32)
        for indices in token_batches([len(row) for row in rows], TOGETHER, one_length=True):
            means[indices] = encoder.states(np.array([rows[index] for index in indices])).mean(1)
        return np.tanh(linear(means, stored, "phrases.project"))

    return vectors
