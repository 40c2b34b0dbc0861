"""Layers of transformers in numpy, in float32, for the first thousands of texts: loading PyTorch takes longer than
reading them. Texts of one length stand in one batch, so that there is no padding."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from safetensors import safe_open

Weights = Mapping[str, np.ndarray]
BLOCK = 32  # rows of GELU at a time: what it works in then stays in a core's cache
ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Coefficients for 1 - erf to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""

SMALLEST = 1e-12  # added to a variance, as the encoder's config states
WORDS, PLACES, TYPES = (f"{name}_embeddings.weight" for name in ("word", "position", "token_type"))
_EMBEDDINGS = (WORDS, PLACES, TYPES, "LayerNorm.weight", "LayerNorm.bias")


def read(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """These tensors of a safetensors file, or all, those in half precision in float32. Raises SafetensorError for a
    damaged file and for a name that it lacks."""
    with safe_open(path, framework="np") as file:
        stored = {name: file.get_tensor(name) for name in (file.keys() if names is None else names)}
    return {name: part.astype(np.float32) if part.dtype == np.float16 else part for name, part in stored.items()}


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    powers /= powers.sum(-1, keepdims=True)
    return powers


def gelu(rows: np.ndarray, approximate: str = "none") -> np.ndarray:
    """x times the normal distribution function of x, of rows (n, width), which are overwritten; "tanh" is OpenAI's
    approximation. SciPy's erf would take as long to import as twenty texts to read."""
    for start in range(0, len(rows), BLOCK):
        (_gelu_by_tanh if approximate == "tanh" else _gelu_by_erf)(rows[start : start + BLOCK])
    return rows


def _gelu_by_erf(x: np.ndarray) -> None:
    size = np.abs(x)
    scaled = size * np.float32(0.5**0.5)
    t = scaled * np.float32(0.3275911)
    t += 1
    np.reciprocal(t, out=t)
    series = np.full_like(t, ERF[0])
    for term in ERF[1:]:
        series *= t
        series += np.float32(term)
    series *= t
    np.multiply(scaled, scaled, out=scaled)
    np.negative(scaled, out=scaled)
    series *= np.exp(scaled, out=scaled)  # 1 - erf(|x| / sqrt 2)
    series *= size
    series *= np.float32(0.5)
    np.maximum(x, 0, out=x)
    x -= series


def _gelu_by_tanh(x: np.ndarray) -> None:
    inner = x * x
    inner *= np.float32(0.044715)
    inner += 1
    inner *= x
    inner *= np.float32((2 / np.pi) ** 0.5)
    np.tanh(inner, out=inner)
    inner += 1
    inner *= np.float32(0.5)
    x *= inner


def normalised(rows: np.ndarray, weights: Weights, name: str, smallest: float = SMALLEST) -> np.ndarray:
    """Layer normalisation over the last axis."""
    centred = rows - rows.mean(-1, keepdims=True)
    spread = np.sqrt(np.einsum("...i,...i->...", centred, centred) / np.float32(rows.shape[-1]) + np.float32(smallest))
    centred /= spread[..., None]
    centred *= weights[f"{name}.weight"]
    centred += weights[f"{name}.bias"]
    return centred


def linear(rows: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """rows (n, in) -> (n, out)."""
    found = rows @ weights[f"{name}.weight"].T
    found += weights[f"{name}.bias"]
    return found


class Encoder:
    """A BERT encoder without padding, as models.bert.Bert. layers: their weights by Hugging Face's names, in order."""

    def __init__(self, embeddings: Weights, layers: Iterable[Weights], heads: int) -> None:
        self.embeddings, self.layers, self.heads = embeddings, list(layers), heads
        self.width = embeddings[WORDS].shape[1]

    @classmethod
    def of(cls, path: Path, heads: int, numbers: Iterable[int], changes: Weights | None = None) -> "Encoder":
        """The layers of these numbers of an encoder's file. changes: trained tensors of a classifier on these layers
        (models.regard.minilm); a bias or norm replaces the encoder's, up @ down is added to a matrix."""
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
        kept = [f"encoder.layer.{number}." for number in numbers]
        wanted = [name for name in names if name.startswith(tuple(kept))]
        stored = read(path, [*(f"embeddings.{name}" for name in _EMBEDDINGS), *wanted])
        layers = []
        for place, prefix in enumerate(kept):
            layer = {name.removeprefix(prefix): stored[name] for name in wanted if name.startswith(prefix)}
            layers.append(layer if changes is None else _changed(layer, changes, f"encoder.encoder.layer.{place}."))
        return cls({name: stored[f"embeddings.{name}"] for name in _EMBEDDINGS}, layers, heads)

    def states(self, tokens: np.ndarray) -> np.ndarray:
        """tokens (batch, length) -> the states (batch, length, width) of the last layer."""
        batch, length = tokens.shape
        found = self.embeddings[WORDS][tokens] + (self.embeddings[PLACES][:length] + self.embeddings[TYPES][0])
        states = normalised(found, self.embeddings, "LayerNorm").reshape(batch * length, -1)
        for layer in self.layers:
            query, key, value = (
                linear(states, layer, f"attention.self.{name}").reshape(batch, length, self.heads, -1).swapaxes(1, 2)
                for name in ("query", "key", "value")
            )
            weights = softmax(query @ key.swapaxes(2, 3) * np.float32(query.shape[-1] ** -0.5))
            mixed = (weights @ value).swapaxes(1, 2).reshape(batch * length, -1)
            states = _sum(mixed, states, layer, "attention.output")
            states = _sum(gelu(linear(states, layer, "intermediate.dense")), states, layer, "output")
        return states.reshape(batch, length, -1)


def _sum(rows: np.ndarray, before: np.ndarray, layer: Weights, name: str) -> np.ndarray:
    found = linear(rows, layer, f"{name}.dense")
    found += before
    return normalised(found, layer, f"{name}.LayerNorm")


def _changed(layer: Weights, changes: Weights, prefix: str) -> Weights:
    found = {}
    for name, value in layer.items():
        up, down = (f"{prefix}{name.removesuffix('weight')}parametrizations.weight.0.{end}" for end in ("up", "down"))
        found[name] = value + changes[up] @ changes[down] if up in changes else changes[prefix + name]
    return found
