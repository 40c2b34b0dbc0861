"""A relation as a matrix between the vectors of two phrases: the bilinear model of Li et al. (2016), "Commonsense
Knowledge Base Completion"."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from models.digests import sha256_of
from models.plausibility.phrases import MeanOfWords, MiniLMPhrases
from models.stored_tensors import load_trained, read_facts

CONFIG, WEIGHTS = "config.json", "model.safetensors"
ENCODERS: dict[str, Any] = {"words": MeanOfWords, "minilm": MiniLMPhrases}


class Bilinear(nn.Module):
    """Logits of relations between phrases, read as ENCODERS[phrases] of such a shape (width, dropout)."""

    def __init__(self, encoder_folder: Path, relations: Sequence[str], phrases: str, width: int, **shape: Any) -> None:
        super().__init__()
        self.facts = {
            "relations": list(relations),
            "phrases": phrases,
            "width": width,
            **shape,
            "encoder_sha256": sha256_of(encoder_folder / WEIGHTS),
        }
        self.relations = tuple(relations)
        self.phrases = ENCODERS[phrases](encoder_folder, width, **shape)
        # A phrase's vector has a 1 behind it, so that a relation can also like heads or tails as such.
        self.matrices = nn.Parameter(torch.randn(len(relations), width + 1, width + 1) / width)

    def vectors(self, phrases: Sequence[Any] | Tensor) -> Tensor:
        """The vectors of n phrases as phrases.encode gives them, with a constant 1 appended, (n, width + 1) float32."""
        return nn.functional.pad(self.phrases(phrases).float(), (0, 1), value=1.0)

    @torch.inference_mode()
    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        """The logits of n triples, (n,) float32: above 0 is valid. Each distinct phrase is read once.

        Raises ValueError for a relation that was not in training."""
        if unknown := sorted(set(relations) - set(self.relations)):
            raise ValueError(
                f"relations {', '.join(unknown)} are unknown to this network; known are {', '.join(self.relations)}"
            )
        found = np.zeros(len(relations), dtype=np.float32)
        if not len(relations):
            return found
        distinct = list(dict.fromkeys([*heads, *tails]))
        place = {phrase: i for i, phrase in enumerate(distinct)}
        vectors = self.vectors(self.phrases.encode(distinct)).numpy()
        first, second = (np.array([place[phrase] for phrase in column]) for column in (heads, tails))
        named = np.array(relations)
        for relation, matrix in zip(self.relations, self.matrices.float().numpy(), strict=True):
            rows = np.flatnonzero(named == relation)
            found[rows] = (vectors[first[rows]] @ matrix * vectors[second[rows]]).sum(1)
        return found

    @torch.no_grad()
    def shift(self, by: float) -> None:
        """Add a constant to all logits."""
        self.matrices[:, -1, -1] += by

    def trained(self) -> dict[str, Tensor]:
        """The trained tensors, which a folder holds: those that differ from the encoder."""
        return {name: value.detach() for name, value in self.named_parameters() if value.requires_grad}

    def save(self, folder: Path) -> None:
        """Write the trained tensors in half precision and the facts that loading needs."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.half() for name, value in self.trained().items()}, folder / WEIGHTS)
        (folder / CONFIG).write_text(json.dumps(self.facts, indent=2) + "\n")

    @classmethod
    def described(cls, folder: Path, encoder_folder: Path) -> "Bilinear":
        """A network of the shape that a folder's config.json states, its own weights not yet loaded.

        Raises ValueError when the folder was trained on another encoder."""
        facts = read_facts(folder / CONFIG, ["encoder_sha256"])
        trained_on = facts.pop("encoder_sha256")
        network = cls(encoder_folder, **facts)
        if trained_on != network.facts["encoder_sha256"]:
            raise ValueError(
                f"{folder} was trained on the encoder {trained_on}, here it is {network.facts['encoder_sha256']}"
            )
        return network

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path, dtype: torch.dtype = torch.float32) -> "Bilinear":
        """The network of a folder.

        Raises ValueError when the folder was trained on another encoder, and when its weights are damaged."""
        network = cls.described(folder, encoder_folder)
        load_trained(network, folder / WEIGHTS)
        network.phrases.to(dtype)
        return network.eval()
