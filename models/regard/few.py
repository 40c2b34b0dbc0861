"""The gate and the classifier on all-MiniLM-L6-v2 in numpy, for at most a few thousand texts. The numbers are those of
`Cascade` in float32 but for rounding."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from models.batching import token_batches
from models.digests import sha256_of
from models.minilm import CONFIG, TOKENIZER, WEIGHTS
from models.numpy_layers import WORDS, Encoder, linear, read, softmax
from models.regard import LABELS
from models.stored_tensors import read_facts

GATE, GATE_WEIGHTS = "gate.json", "gate.safetensors"
LONGEST = 128  # tokens of a text that are read
TOGETHER = 512  # tokens of a batch


class FewTexts:
    """A folder's classifier; with `gate`, behind the folder's gate."""

    def __init__(self, folder: Path, encoder_folder: Path, gate: bool) -> None:
        facts = read_facts(folder / CONFIG, ["encoder_sha256", "labels", "layers"])
        here = {"encoder_sha256": sha256_of(encoder_folder / WEIGHTS), "labels": list(LABELS)}
        if wrong := [fact for fact in here if facts[fact] != here[fact]]:
            raise ValueError(f"{folder} was trained with {wrong[0]} {facts[wrong[0]]}, here it is {here[wrong[0]]}")
        self.tokenizer = Tokenizer.from_file(str(encoder_folder / TOKENIZER))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)
        heads = read_facts(encoder_folder / CONFIG, ["num_attention_heads"])["num_attention_heads"]
        self.trained = read(folder / WEIGHTS)
        self.encoder = Encoder.of(encoder_folder / WEIGHTS, heads, facts["layers"], self.trained)
        self.gate = read(folder / GATE_WEIGHTS) if gate else None
        if self.gate is not None:
            self.threshold = read_facts(folder / GATE, ["threshold"])["threshold"]
            self.scale = np.float32(deviation(self.encoder.embeddings[WORDS]))

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in LABELS."""
        rows = [found.ids for found in self.tokenizer.encode_batch_fast(list(texts))]
        found, unsure = np.zeros((len(rows), len(LABELS)), dtype=np.float32), np.arange(len(rows))
        if self.gate is not None:
            for indices in token_batches([len(row) for row in rows], TOGETHER, one_length=True):
                found[indices] = softmax(self._opinions(np.array([rows[index] for index in indices])))
            unsure = np.flatnonzero(found[:, LABELS.index("neutral")] <= self.threshold)
        for indices in token_batches([len(rows[index]) for index in unsure], TOGETHER, one_length=True):
            states = self.encoder.states(np.array([rows[index] for index in unsure[indices]]))
            found[unsure[indices]] = softmax(linear(states.mean(1), self.trained, "head"))
        return found

    def _opinions(self, tokens: np.ndarray) -> np.ndarray:
        """The gate's logits (batch, 4) of tokens (batch, length): windows of three, the strongest of each channel."""
        assert self.gate is not None
        words = np.pad(self.encoder.embeddings[WORDS][tokens] / self.scale, ((0, 0), (1, 1), (0, 0)))
        windows, length = self.gate["windows.weight"], tokens.shape[1]  # (channels, width, 3)
        parts = [words[:, place : place + length] @ windows[:, :, place].T for place in range(windows.shape[2])]
        strongest = np.sum(parts, axis=0).max(1) + self.gate["windows.bias"]
        return linear(np.maximum(strongest, 0), self.gate, "head")


def deviation(values: np.ndarray) -> float:
    """The standard deviation of a matrix, as torch.std. numpy's takes as long as reading a hundred texts."""
    sums, squares = values.sum(1).astype(np.float64), np.einsum("ij,ij->i", values, values).astype(np.float64)
    return float(np.sqrt((squares.sum() - sums.sum() ** 2 / values.size) / (values.size - 1)))
