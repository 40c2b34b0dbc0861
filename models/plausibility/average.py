"""The plausibility classifier that averages the logits of the two others, which err on different triples; and a compact
form of the one that reads words, an eighth of its size, so that both together are a few megabytes."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from models.plausibility.bilinear import CONFIG, Bilinear
from models.plausibility.phrases import MeanOfWords
from models.stored_tensors import read, read_facts

MEMBERS = ("minilm", "words")
COMPACT = "compact.safetensors"
PARTS = ("words", "scales", "bias", "matrices")  # of it
LEVELS = 127  # of an 8-bit number, to either side


class Average:
    """Logits of triples: the mean of the members', which are in the order of MEMBERS, and a shift."""

    def __init__(self, members: Sequence[Bilinear], by: float = 0.0) -> None:
        self.members = members
        self.by = by
        self.relations = members[0].relations

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        """The logits of n triples, (n,) float32: above 0 is valid. Raises ValueError for a relation that was not in
        training."""
        logits = np.stack([member.logits(heads, relations, tails) for member in self.members])
        return logits.mean(0) + np.float32(self.by)

    def shift(self, by: float) -> None:
        """Add a constant to all logits."""
        self.by += by

    def save(self, folder: Path, made_of: Path) -> None:
        """Write the shift and the members, from their folders in made_of: minilm's folder as it is, words' network
        compact."""
        shutil.copytree(made_of / "minilm", folder / "minilm", ignore=shutil.ignore_patterns("*.md"))
        save_compact(self.members[MEMBERS.index("words")], folder / "words")
        (folder / CONFIG).write_text(json.dumps({"average": MEMBERS, "shift": self.by}, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path, dtype: torch.dtype = torch.float32) -> "Average":
        """The classifier of a folder. Raises ValueError when it was trained on another encoder."""
        facts = read_facts(folder / CONFIG)
        loaders = {"minilm": Bilinear.load, "words": load_compact}
        return cls([loaders[name](folder / name, encoder_folder, dtype) for name in facts["average"]], facts["shift"])


def load_network(folder: Path, encoder_folder: Path, dtype: torch.dtype = torch.float32) -> Average | Bilinear:
    """The classifier of a folder, whichever it is. Raises ValueError when it was trained on another encoder."""
    kind = Average if "average" in read_facts(folder / CONFIG) else Bilinear
    return kind.load(folder, encoder_folder, dtype)


def save_compact(network: Bilinear, folder: Path) -> None:
    """The network's folder with its words' vectors as they come out of the layer, in 8 bits: mean and layer are both
    linear, so that the layer can be applied to words as well as to their mean."""
    phrases = network.phrases
    assert isinstance(phrases, MeanOfWords)
    with torch.no_grad():
        projected = phrases.words.weight @ phrases.project.weight.T  # (words, width)
        scales = projected.abs().amax(1).clamp(min=1e-6) / LEVELS
        kept = {
            "words": (projected / scales[:, None]).round().to(torch.int8),
            "scales": scales.half(),
            "bias": phrases.project.bias.half(),
            "matrices": network.matrices.half(),
        }
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.contiguous() for name, value in kept.items()}, folder / COMPACT)
    (folder / CONFIG).write_text(json.dumps(network.facts, indent=2) + "\n")


def load_compact(folder: Path, encoder_folder: Path, dtype: torch.dtype = torch.float32) -> Bilinear:
    """The network of such a folder: the layer that is left passes on the first `width` numbers of a word's vector."""
    network = Bilinear.described(folder, encoder_folder)
    kept: dict[str, Tensor] = {name: value.float() for name, value in read(folder / COMPACT, PARTS).items()}
    phrases = network.phrases
    with torch.no_grad():
        width = len(kept["bias"])
        phrases.words.weight.zero_()[:, :width] = kept["words"] * kept["scales"][:, None]
        phrases.project.weight.copy_(torch.eye(width, phrases.words.embedding_dim))
        phrases.project.bias.copy_(kept["bias"])
        network.matrices.copy_(kept["matrices"])
    phrases.to(dtype)
    return network.eval()
