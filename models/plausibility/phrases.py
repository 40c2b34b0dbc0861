"""Two ways to make a phrase a vector: the mean of its words, as in Li et al. (2016), and the mean token state of
all-MiniLM-L6-v2, which is not trained further."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from models.bert import Bert, mean_states

Pieces = Sequence[int]
"""A phrase as word pieces, with no tokens added."""

WEIGHTS, WORDS = "model.safetensors", "embeddings.word_embeddings.weight"
LONGEST = 32  # word pieces of a phrase that are read; the longest of train100k has 32
MOST_KEPT = 20_000  # phrases, 31 MB
SPREAD = 0.3  # standard deviation of the numbers in words' vectors; with MiniLM's own, .05, tanh has no curve


class PieceReader:
    """A function that cuts phrases into the word pieces of an encoder's tokenizer."""

    def __init__(self, encoder_folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(encoder_folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)
        self.start, self.end, self.unknown = (self._piece(name) for name in ("[CLS]", "[SEP]", "[UNK]"))

    def __call__(self, phrases: Sequence[str]) -> list[list[int]]:
        """The pieces of each phrase; of one that has none, that it is unknown."""
        found = self.tokenizer.encode_batch_fast(list(phrases), add_special_tokens=False)
        return [encoded.ids or [self.unknown] for encoded in found]

    def _piece(self, name: str) -> int:
        piece = self.tokenizer.token_to_id(name)
        if piece is None:
            raise ValueError(f"the tokenizer has no piece {name}: it is not that of a BERT-type encoder")
        return piece


class MeanOfWords(nn.Module):
    """The mean of the vectors of a phrase's words through a tanh layer of `width`; `dropout` is of the means.

    Words are MiniLM's word pieces and their vectors start as MiniLM's, where the paper's started from vectors trained
    on the sentences of Open Mind Common Sense."""

    def __init__(self, encoder_folder: Path, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.encode = PieceReader(encoder_folder)
        vectors = load_file(encoder_folder / WEIGHTS)[WORDS]
        self.words = nn.EmbeddingBag.from_pretrained(SPREAD * vectors / vectors.std(), freeze=False, mode="mean")
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(vectors.shape[1], width)

    def forward(self, phrases: Sequence[Pieces]) -> Tensor:
        """The vectors of n phrases as encode gives them, (n, width)."""
        lengths = torch.tensor([len(pieces) for pieces in phrases])
        together = torch.tensor([piece for pieces in phrases for piece in pieces])
        means = self.words(together, lengths.cumsum(0) - lengths)
        return torch.tanh(self.project(self.dropout(means)))


class MeanOfStates(nn.Module):
    """The mean of the token states that the encoder gives a phrase. It is not trained, so that training reads a phrase
    once, and no epoch after the first costs an encoder. The last MOST_KEPT phrases stay in memory: the tails of a
    generator repeat from question to question."""

    def __init__(self, encoder_folder: Path) -> None:
        super().__init__()
        self.read = PieceReader(encoder_folder)
        self.encoder = Bert.load(encoder_folder)
        self.encoder.requires_grad_(False)
        self._kept: dict[str, Tensor] = {}

    @torch.no_grad()
    def forward(self, phrases: Sequence[str]) -> Tensor:
        """The mean token states of n phrases, (n, the encoder's width)."""
        kept = self._kept
        new = [phrase for phrase in dict.fromkeys(phrases) if phrase not in kept]
        if len(new) + len(kept) > MOST_KEPT:
            kept = self._kept = {}  # another thread may still read the old one
            new = list(dict.fromkeys(phrases))
        if len(new) > MOST_KEPT:
            return self._read(phrases)
        if new:
            kept.update(zip(new, self._read(new).unbind(), strict=True))
        return torch.stack([kept[phrase] for phrase in phrases])

    def _read(self, phrases: Sequence[str]) -> Tensor:
        """The same by the encoder."""
        rows = [[self.read.start, *pieces, self.read.end] for pieces in self.read(phrases)]
        return mean_states(self.encoder, rows)[:, 0]


class MiniLMPhrases(nn.Module):
    """The mean of the encoder's token states through a tanh layer of `width`; `dropout` is of the means."""

    def __init__(self, encoder_folder: Path, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.encode = MeanOfStates(encoder_folder)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(self.encode.encoder.config.hidden_size, width)

    def forward(self, means: Sequence[Tensor] | Tensor) -> Tensor:
        """The vectors of n phrases as encode gives them, (n, width)."""
        rows = means if isinstance(means, Tensor) else torch.stack(list(means))
        return torch.tanh(self.project(self.dropout(rows.to(self.project.weight.dtype))))
