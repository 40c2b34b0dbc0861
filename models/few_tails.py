"""A COMeT in numpy, for a few questions: loading PyTorch takes longer than answering them. Tails are those of
models.comet.Comet, with scores equal but for rounding."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from models.encoding import Encoding
from models.hf_layouts import CONFIG, read_arrays, read_settings
from models.numpy_layers import Weights, gelu, linear, normalised, softmax
from models.stored_tensors import read_facts
from models.tail_prompts import Beam, Regimen, TailPrompts, check_prompts, regimen

Attention = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Number of a layer, query, key and value, each (rows, heads, head_width) -> (rows, heads, head_width)."""


class FewTails(TailPrompts):
    """A decoder's weights and its encoding: prompts in, tails out."""

    def __init__(self, weights: Weights, settings: Mapping[str, Any], encoding: Encoding, how: Regimen) -> None:
        self.weights, self.settings, self.encoding = weights, settings, encoding
        self.layout, self.tags = how.layout, how.tags
        self.norm_first = "final_norm.weight" in weights

    @classmethod
    def load(cls, folder: Path) -> "FewTails":
        """The COMeT of a Hugging Face folder. Raises ValueError and OSError as Comet.load."""
        settings, encoding = read_settings(folder), Encoding.load(folder)
        return cls(read_arrays(folder, settings), settings, encoding, regimen(folder))

    @staticmethod
    def fits(folder: Path) -> bool:
        """Return whether a folder has a COMeT that was trained and saved here, whose words all have weights."""
        try:
            config = read_facts(folder / CONFIG)
        except (OSError, ValueError):
            return False  # Comet.load names the fault
        return "comet_layout" in config and config.get("dtype") == "float32"

    def to(self, device: str) -> Self:
        """Itself, which computes on the CPU alone."""
        return self

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see models.beam.beam_search)."""
        check_prompts(prompts, max_length, self.settings["positions"])
        return [self._search(prompt, beams, max_length) for prompt in prompts]

    def _search(self, prompt: Sequence[int], beams: int, max_length: int) -> list[Beam]:
        last = len(prompt) - 1
        prefix = [place for place in range(last) if prompt[place] != self.unseen]
        trees = _Trees(self.settings["layers"])
        if prefix:
            self._hidden(np.array([prompt[place] for place in prefix]), np.array(prefix), trees.read_prefix)
        found = [_Partial((prompt[last],), 0.0, True)]
        for step in range(max_length):
            live = [beam for beam in found if beam.live]
            if not live:
                break
            trees.sees_itself = step > 0 or prompt[last] != self.unseen
            tokens = np.array([beam.tokens[-1] for beam in live])
            hidden = self._hidden(tokens, np.full(len(live), last + step), trees.read_tails)
            found, parents = self._grown(found, *self._likeliest(hidden, beams), beams)
            trees.keep(parents)
        return [_beam(beam) for beam in found]

    def _grown(
        self, found: "list[_Partial]", log_probs: np.ndarray, tokens: np.ndarray, beams: int
    ) -> "tuple[list[_Partial], list[int]]":
        """The best beams after the continuations (live beams, choices) of each live one, and the rows of those that the
        live ones among them continue. Of equal scores that of the lower beam, then of the lower token, comes first."""
        proposed, row = list[tuple[_Partial, int]](), 0
        for beam in found:
            if not beam.live:
                proposed.append((beam, -1))
                continue
            for log_prob, token in zip(log_probs[row].tolist(), tokens[row].tolist(), strict=True):
                grown = _Partial((*beam.tokens, token), beam.log_prob + log_prob, token != self.encoding.end)
                proposed.append((grown, row))
            row += 1
        best = sorted(proposed, key=lambda pair: -pair[0].score)[:beams]
        return [beam for beam, _ in best], [row for beam, row in best if beam.live]

    def _hidden(self, tokens: np.ndarray, positions: np.ndarray, attention: Attention) -> np.ndarray:
        """tokens (rows,), positions (rows,) -> hidden (rows, width), as models.decoder.Decoder."""
        weights = self.weights
        hidden = weights["words.weight"][tokens] + weights["places.weight"][positions]
        if "embedding_norm.weight" in weights:
            hidden = self._normalised(hidden, "embedding_norm")
        for layer in range(self.settings["layers"]):
            block = f"blocks.{layer}."
            if self.norm_first:
                hidden = hidden + self._attended(self._normalised(hidden, f"{block}attention_norm"), layer, attention)
                hidden = hidden + self._thought(self._normalised(hidden, f"{block}mlp_norm"), block)
            else:
                attended = self._attended(hidden, layer, attention)
                hidden = self._normalised(hidden + attended, f"{block}attention_norm")
                hidden = self._normalised(hidden + self._thought(hidden, block), f"{block}mlp_norm")
        return self._normalised(hidden, "final_norm") if self.norm_first else hidden

    def _attended(self, hidden: np.ndarray, layer: int, attention: Attention) -> np.ndarray:
        parts = linear(hidden, self.weights, f"blocks.{layer}.attention_in")
        query, key, value = parts.reshape(len(hidden), 3, self.settings["heads"], -1).swapaxes(0, 1)
        mixed = attention(layer, query, key, value).reshape(hidden.shape)
        return linear(mixed, self.weights, f"blocks.{layer}.attention_out")

    def _thought(self, hidden: np.ndarray, block: str) -> np.ndarray:
        kind = "none" if self.settings["kind"] == "minilm" else "tanh"
        return linear(gelu(linear(hidden, self.weights, f"{block}mlp_in"), kind), self.weights, f"{block}mlp_out")

    def _normalised(self, rows: np.ndarray, name: str) -> np.ndarray:
        return normalised(rows, self.weights, name, self.settings["eps"])

    def _likeliest(self, hidden: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """hidden (rows, width) -> log-probabilities and tokens, each (rows, count), the best first; of equal ones the
        lower token first."""
        logits = hidden @ self.weights["words.weight"].T + self.weights.get("bias", np.float32(0))
        least = np.partition(logits, -min(count, logits.shape[1]), axis=1)[:, -min(count, logits.shape[1])]
        tokens = [np.flatnonzero(row >= bound) for row, bound in zip(logits, least, strict=True)]
        best = [ids[np.argsort(-row[ids], kind="stable")[:count]] for row, ids in zip(logits, tokens, strict=True)]
        highest = logits.max(1, keepdims=True)
        normaliser = highest + np.log(np.exp(logits - highest).sum(1, keepdims=True))
        return np.take_along_axis(logits, np.array(best), 1) - normaliser, np.array(best)


class _Partial(NamedTuple):
    """A beam at work: the prompt's last token and those after it, END included."""

    tokens: tuple[int, ...]
    log_prob: float
    live: bool

    @property
    def score(self) -> float:
        return self.log_prob / (len(self.tokens) - 1)


class _Trees:
    """Keys and values of a prompt, which all beams see, and of each live beam's tail."""

    def __init__(self, layers: int) -> None:
        nothing = np.zeros((0, 1, 1), dtype=np.float32)
        self.prefix = [(nothing, nothing)] * layers  # each (places, heads, head_width)
        self.tails: list[tuple[np.ndarray, np.ndarray] | None] = [None] * layers  # (beams, length, heads, head_width)
        self.sees_itself = True

    def read_prefix(self, layer: int, query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Remember the prompt; each of its rows sees those before and itself."""
        self.prefix[layer] = key, value
        scores = np.einsum("qhd,khd->hqk", query, key) * np.float32(query.shape[-1] ** -0.5)
        scores[:, *np.triu_indices(len(query), 1)] = -np.inf
        return np.einsum("hqk,khd->qhd", softmax(scores), value)

    def read_tails(self, layer: int, query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Each row sees the prompt, its own tail, and itself unless it is padding."""
        nothing = np.zeros((len(key), 0, *key.shape[1:]), dtype=np.float32)
        keys, values = self.tails[layer] or (nothing, nothing)
        if self.sees_itself:
            keys, values = np.concatenate([keys, key[:, None]], 1), np.concatenate([values, value[:, None]], 1)
            self.tails[layer] = keys, values
        prefix = self.prefix[layer]
        parts = [np.einsum("bhd,bkhd->bhk", query, keys)]
        if len(prefix[0]):
            parts.insert(0, np.einsum("bhd,khd->bhk", query, prefix[0]))
        weights = softmax(np.concatenate(parts, 2) * np.float32(query.shape[-1] ** -0.5))
        shared = len(prefix[0])
        found = np.einsum("bhk,bkhd->bhd", weights[:, :, shared:], values)
        return found + np.einsum("bhk,khd->bhd", weights[:, :, :shared], prefix[1]) if shared else found

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows' tails, one for each live beam."""
        self.tails = [tails and (tails[0][rows], tails[1][rows]) for tails in self.tails]


def _beam(beam: _Partial) -> Beam:
    tokens = beam.tokens[1 : len(beam.tokens) - (not beam.live)]
    return Beam(tokens, beam.log_prob, beam.score, not beam.live)
