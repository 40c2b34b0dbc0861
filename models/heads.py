"""Linear classifiers of three classes on the mean token state of all-MiniLM-L6-v2, which is not trained.

Several heads share one encoding of a text: one learnt from everything, and others that have each not seen a part of it.
The encoder is known by the SHA-256 of its file; what is stored is the heads alone."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch.nn.functional import normalize

from models.bert import Bert
from models.minilm import SHA256
from models.regard.batching import pad, token_batches
from models.regard.minilm import CONFIG, WEIGHTS, MiniLMClassifier
from models.stored import read_facts

LABELS = ("negative", "neutral", "positive")
"""What the columns mean."""


class Encoder:
    """Texts to the mean of their token states, of length 1."""

    def __init__(self, encoder_folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self._classifier = MiniLMClassifier(encoder_folder, None, read=Bert.load).to(dtype).eval()

    @classmethod
    def shared(cls, encoder_folder: Path, dtype: torch.dtype) -> "Encoder":
        """The same for all who ask while one of them keeps it: heads are small, and it has 90 MB."""
        key = (encoder_folder.resolve(), dtype)
        encoder = _alive.get(key)
        if encoder is None:
            _alive[key] = encoder = cls(encoder_folder, dtype)
        return encoder

    @torch.inference_mode()
    def features(self, texts: Sequence[str]) -> np.ndarray:
        """(n, width) float32."""
        rows = self._classifier.encode(texts)
        found = np.zeros((len(rows), self._classifier.head.in_features), dtype=np.float32)
        for indices in token_batches([len(row) for row in rows]):
            tokens, mask = pad([rows[index] for index in indices], padding=0)
            states = self._classifier.encoder(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
            kept = torch.ones(tokens.shape) if mask is None else mask.float()
            found[indices] = normalize((states * kept[:, :, None]).sum(1) / kept.sum(1, keepdim=True)).numpy()
        return found


_alive: WeakValueDictionary[tuple[Path, torch.dtype], Encoder] = WeakValueDictionary()


@dataclass(frozen=True)
class Heads:
    """weight (heads, width, 3), bias (heads, 3), threshold (heads,): a text is polar for a head where its probability
    of being neutral is below 1 - threshold."""

    weight: np.ndarray
    bias: np.ndarray
    threshold: np.ndarray

    def probabilities(self, features: np.ndarray, head: int) -> np.ndarray:
        """(n, 3) float32, columns as in LABELS."""
        return softmax(features @ self.weight[head] + self.bias[head])

    def columns(self, probabilities: np.ndarray, head: int) -> np.ndarray:
        """Which of LABELS each text is, (n,)."""
        negative, neutral, positive = (LABELS.index(label) for label in ("negative", "neutral", "positive"))
        sign = np.where(probabilities[:, positive] > probabilities[:, negative], positive, negative)
        return np.where(1 - probabilities[:, neutral] > self.threshold[head], sign, neutral)

    def save(self, folder: Path) -> None:
        """Writes the heads and the encoder that they are for."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {"weight": self.weight, "bias": self.bias, "threshold": self.threshold}
        save_file({name: value.astype(np.float32) for name, value in tensors.items()}, folder / WEIGHTS)
        (folder / CONFIG).write_text(json.dumps({"labels": LABELS, "encoder_sha256": SHA256}, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Heads":
        """The heads of a folder. Raises ValueError when they are for another encoder or other labels."""
        facts = read_facts(folder / CONFIG)
        if facts != {"labels": list(LABELS), "encoder_sha256": SHA256}:
            raise ValueError(f"{folder} holds heads for {facts}; here they are for {list(LABELS)} on {SHA256}")
        return cls(**load_file(folder / WEIGHTS))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
