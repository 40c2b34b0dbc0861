"""The gate and the classifier on all-MiniLM-L6-v2 in numpy, for a few texts: loading PyTorch takes longer than reading
them. The numbers are those of `Cascade` in float32 but for rounding."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from models.digests import sha256_of
from models.minilm import CONFIG, TOKENIZER, WEIGHTS
from models.regard import LABELS
from models.stored_tensors import read_facts

GATE, GATE_WEIGHTS = "gate.json", "gate.safetensors"
LONGEST = 128  # tokens of a text that are read
SMALLEST = 1e-12  # added to a variance, as the encoder's config states

Weights = Mapping[str, np.ndarray]


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
        self.heads = read_facts(encoder_folder / CONFIG, ["num_attention_heads"])["num_attention_heads"]
        encoder, trained = load_file(encoder_folder / WEIGHTS), _float32(load_file(folder / WEIGHTS))
        self.embeddings = {name: encoder[f"embeddings.{name}"] for name in _EMBEDDINGS}
        self.layers = [_layer(encoder, trained, *numbers) for numbers in enumerate(facts["layers"])]
        self.head = trained["head.weight"], trained["head.bias"]
        self.gate = _float32(load_file(folder / GATE_WEIGHTS)) if gate else None
        if self.gate is not None:
            self.threshold = read_facts(folder / GATE, ["threshold"])["threshold"]
            self.scale = np.std(self.embeddings[WORDS], ddof=1, dtype=np.float64)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in LABELS."""
        rows = [np.array(found.ids) for found in self.tokenizer.encode_batch_fast(list(texts))]
        return np.array([self._of_text(row) for row in rows], dtype=np.float32).reshape(-1, len(LABELS))

    def _of_text(self, tokens: np.ndarray) -> np.ndarray:
        if self.gate is not None:
            opinion = softmax(self._opinion(self.gate, tokens))
            if opinion[LABELS.index("neutral")] > self.threshold:
                return opinion
        weight, bias = self.head
        return softmax(self._states(tokens).mean(0) @ weight.T + bias)

    def _opinion(self, gate: Weights, tokens: np.ndarray) -> np.ndarray:
        """The gate's logits (4,): windows of three tokens, the strongest of each channel."""
        words = np.pad(self.embeddings[WORDS][tokens] / np.float32(self.scale), ((1, 1), (0, 0)))
        windows = gate["windows.weight"]  # (channels, width, 3)
        parts = [words[place : place + len(tokens)] @ windows[:, :, place].T for place in range(windows.shape[2])]
        return (
            np.maximum(np.sum(parts, axis=0).max(0) + gate["windows.bias"], 0) @ gate["head.weight"].T
            + gate["head.bias"]
        )

    def _states(self, tokens: np.ndarray) -> np.ndarray:
        """The states (length, width) of the last layer."""
        found = self.embeddings[WORDS][tokens] + self.embeddings[PLACES][: len(tokens)] + self.embeddings[TYPES][0]
        states = normalised(found, self.embeddings["LayerNorm.weight"], self.embeddings["LayerNorm.bias"])
        for layer in self.layers:
            parts = (_linear(states, layer, f"attention.self.{name}") for name in ("query", "key", "value"))
            query, key, value = (part.reshape(len(part), self.heads, -1).swapaxes(0, 1) for part in parts)
            weights = softmax(query @ key.swapaxes(1, 2) * np.float32(query.shape[-1] ** -0.5))
            mixed = (weights @ value).swapaxes(0, 1).reshape(len(tokens), -1)
            states = _sum(mixed, states, layer, "attention.output")
            states = _sum(gelu(_linear(states, layer, "intermediate.dense")), states, layer, "output")
        return states


WORDS, PLACES, TYPES = (f"{name}_embeddings.weight" for name in ("word", "position", "token_type"))
_EMBEDDINGS = (WORDS, PLACES, TYPES, "LayerNorm.weight", "LayerNorm.bias")


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the normal distribution function of x; erf to 1.5e-7 (Abramowitz and Stegun 7.1.26), since importing
    SciPy's takes as long as reading twenty texts."""
    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * z)
    terms = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    series = np.zeros_like(t)
    for term in terms:
        series = (series + np.float32(term)) * t
    tail = series * np.exp(-z * z)  # 1 - erf(z)
    return x * np.float32(0.5) * np.where(x < 0, tail, 2 - tail)


def normalised(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Layer normalisation."""
    centred = rows - rows.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(SMALLEST)) * weight + bias


def _linear(rows: np.ndarray, layer: Weights, name: str) -> np.ndarray:
    return rows @ layer[f"{name}.weight"].T + layer[f"{name}.bias"]


def _sum(rows: np.ndarray, before: np.ndarray, layer: Weights, name: str) -> np.ndarray:
    found = _linear(rows, layer, f"{name}.dense") + before
    return normalised(found, layer[f"{name}.LayerNorm.weight"], layer[f"{name}.LayerNorm.bias"])


def _layer(encoder: Weights, trained: Weights, place: int, number: int) -> Weights:
    """The weights of a layer that is kept: number in the encoder, place in the classifier. A trained bias or norm
    replaces the encoder's; up @ down is added to a matrix."""
    theirs, ours = f"encoder.layer.{number}.", f"encoder.encoder.layer.{place}."
    found = {}
    for name, value in encoder.items():
        if name.startswith(theirs):
            part = name.removeprefix(theirs)
            up, down = (f"{ours}{part.removesuffix('weight')}parametrizations.weight.0.{end}" for end in ("up", "down"))
            found[part] = value + trained[up] @ trained[down] if up in trained else trained[ours + part]
    return found


def _float32(tensors: Weights) -> Weights:
    return {name: value.astype(np.float32) for name, value in tensors.items()}
