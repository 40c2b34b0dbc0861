"""Bilinear AVG of Li et al. (2016), "Commonsense Knowledge Base Completion": a phrase is the mean of its words'
vectors through a tanh layer, and a relation is a matrix between two phrases.

Words are MiniLM's word pieces, and their vectors start as MiniLM's, where the paper's started from vectors trained on
the sentences of Open Mind Common Sense."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models.plausibility.pairs import Pieces, encode, read_tokenizer

CONFIG, WEIGHTS = "config.json", "model.safetensors"
WORDS = "embeddings.word_embeddings.weight"
SPREAD = 0.3  # standard deviation of the numbers of words' vectors: MiniLM's own, .05, leave tanh without a curve


class Bilinear(nn.Module):
    """Logits of `relations` between phrases whose vectors have `width` numbers; `dropout` is of words' vectors."""

    def __init__(self, encoder_folder: Path, relations: Sequence[str], width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.relations = tuple(relations)
        self.tokenizer = read_tokenizer(encoder_folder)
        with safe_open(encoder_folder / WEIGHTS, "pt") as file:
            vectors = file.get_tensor(WORDS)
        self.words = nn.EmbeddingBag.from_pretrained(SPREAD * vectors / vectors.std(), freeze=False, mode="mean")
        self.dropout = nn.Dropout(dropout)
        self.phrase = nn.Linear(vectors.shape[1], width)
        # A phrase's vector has a 1 behind it, so that a matrix can also like or dislike heads and tails as such.
        self.matrices = nn.Parameter(torch.randn(len(relations), width + 1, width + 1) / width)

    def forward(self, heads: Sequence[Pieces], tails: Sequence[Pieces]) -> Tensor:
        """Logits (n, relations)."""
        return torch.einsum("ni,rij,nj->nr", self.vectors(heads), self.matrices, self.vectors(tails))

    def vectors(self, phrases: Sequence[Pieces]) -> Tensor:
        """Of n phrases, (n, width + 1)."""
        lengths = torch.tensor([len(pieces) for pieces in phrases])
        together = torch.tensor([piece for pieces in phrases for piece in pieces])
        means = self.words(together, lengths.cumsum(0) - lengths)
        return nn.functional.pad(torch.tanh(self.phrase(self.dropout(means))), (0, 1), value=1.0)

    def encode(self, phrases: Sequence[str]) -> list[list[int]]:
        """Each phrase's word pieces."""
        return encode(self.tokenizer, phrases)

    @torch.no_grad()
    def shift(self, by: float) -> None:
        """Adds so much to all logits."""
        self.matrices[:, -1, -1] += by

    def save(self, folder: Path) -> None:
        """Writes all weights in half precision and what loading needs to know."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.half() for name, value in self.state_dict().items()}, folder / WEIGHTS)
        facts = {"relations": self.relations, "width": self.phrase.out_features}
        (folder / CONFIG).write_text(json.dumps(facts, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path) -> "Bilinear":
        """The network of a folder; the encoder's tokenizer is needed still."""
        network = cls(encoder_folder, **json.loads((folder / CONFIG).read_text()))
        network.load_state_dict(load_file(folder / WEIGHTS))
        return network.eval()
