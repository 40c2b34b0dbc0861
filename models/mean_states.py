"""Texts to numbers that linear heads read (models/heads.py): the mean token states of a network that is not trained, in
some of its layers, each of length 1, side by side.

The networks compute on a GPU where PyTorch finds one (CUDA_VISIBLE_DEVICES= hides it)."""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.nn import ModuleList
from torch.nn.functional import normalize

from models import minilm
from models.bert import GPU_TOKENS, TOKENS, Bert, mean_states, token_batches
from models.digests import sha256_of_each
from models.regard.minilm import MiniLMClassifier


class States(Protocol):
    """A network that reads texts."""

    sha256: str
    """The SHA-256 of the file of its weights, or of all files that decide its states."""

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """(n, width) float32."""
        ...


class Encoder:
    """all-MiniLM-L6-v2. layers: their numbers from 0; none for the last alone."""

    sha256 = minilm.SHA256

    def __init__(self, encoder_folder: Path, dtype: torch.dtype = torch.float32, layers: Sequence[int] = ()) -> None:
        self._classifier = MiniLMClassifier(encoder_folder, None, read=Bert.load).to(dtype).to(_device()).eval()
        self._layers = sorted(layers)

    @classmethod
    def shared(cls, encoder_folder: Path, dtype: torch.dtype, layers: Sequence[int] = ()) -> "Encoder":
        """One object for all callers while one of them keeps it: heads are small, and the encoder has 90 MB."""
        return _shared((encoder_folder.resolve(), dtype, *layers), lambda: cls(encoder_folder, dtype, layers))

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """(n, width) float32."""
        means = mean_states(self._classifier.encoder, self._classifier.encode(texts), self._layers)
        return normalize(means, dim=-1).flatten(1).numpy()


class Causal:
    """A causal language model of a folder of transformers, and the layer it reads with.

    depth: the share of its layers below the one that is read. The end token begins each text and is left out of the
    mean: the first state of such models is many times as long as the others, whatever the text is."""

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32, depth: float = 0.5) -> None:
        from transformers import AutoModelForCausalLM  # five seconds, which other scorers do without

        from models.of_transformers import load_model, load_tokenizer

        self.sha256 = digest_of(folder)
        self._tokenizer = load_tokenizer(folder)
        self._model = load_model(AutoModelForCausalLM, folder).to(dtype).to(_device()).eval().base_model
        num_layers = self._model.config.num_hidden_layers
        self._layer = max(1, round(depth * num_layers))
        for part in self._model.modules():
            if isinstance(part, ModuleList) and len(part) == num_layers:
                del part[self._layer + 1 :]  # one more stays, since a norm follows the last

    @classmethod
    def shared(cls, folder: Path, dtype: torch.dtype, depth: float = 0.5) -> "Causal":
        """The same network for all callers with the same arguments, as Encoder.shared."""
        return _shared((folder.resolve(), dtype, depth), lambda: cls(folder, dtype, depth))

    @torch.inference_mode()
    def features(self, texts: Sequence[str]) -> np.ndarray:
        """(n, width) float32."""
        found = self._tokenizer(list(texts), add_special_tokens=False)["input_ids"] if texts else []
        rows = [[self._tokenizer.eos_token_id, *row] for row in found]
        return _in_batches(rows, self._states, self._model.config.hidden_size)

    def _states(self, tokens: Tensor) -> list[Tensor]:
        states = self._model(input_ids=tokens, output_hidden_states=True, use_cache=False).hidden_states
        return [states[self._layer][:, 1:]]


def digest_of(folder: Path) -> str:
    """The hash of a language model's weights and of its tokenizer."""
    return sha256_of_each(sorted([*folder.glob("*.safetensors"), *folder.glob("tokenizer*.json")]))


def _in_batches(
    rows: Sequence[Sequence[int]], states_of: Callable[[Tensor], Sequence[Tensor]], width: int
) -> np.ndarray:
    """states_of: tokens (batch, length) to the states (batch, length, width of a layer) of each layer."""
    found, device = np.zeros((len(rows), width), dtype=np.float32), _device()
    for indices in token_batches([len(row) for row in rows], TOKENS if device.type == "cpu" else GPU_TOKENS, True):
        tokens = torch.tensor([rows[index] for index in indices], device=device)
        layers = [states.float() for states in states_of(tokens)]
        means = [normalize(states.sum(1) / max(1, states.shape[1])) for states in layers]
        found[indices] = torch.cat(means, dim=1).cpu().numpy()
    return found


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


T = TypeVar("T")
_alive: WeakValueDictionary[Hashable, object] = WeakValueDictionary()


def _shared(key: Hashable, make: Callable[[], T]) -> T:
    found = _alive.get(key)
    if found is None:
        _alive[key] = found = make()
    return found  # type: ignore[return-value]
