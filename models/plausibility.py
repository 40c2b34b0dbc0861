"""Networks of the plausibility of triples: a phrase becomes a vector, and a relation is a matrix between two phrases,
the bilinear model of Li et al. (2016), "Commonsense Knowledge Base Completion".

A phrase encoder has `encode(phrases)`, and, called with n phrases so encoded, gives (n, width). There are two: the mean
of words' vectors, as in Bilinear AVG of Li et al., and the mean token state of all-MiniLM-L6-v2, which is not trained
further. The classifier averages the logits of both, which err on different triples."""

import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mitigate.models.encoder import load_encoder, mean_states, read_tokenizer
from mitigate.models.stored_tensors import (
    CONFIG,
    WEIGHTS,
    load_trained,
    read,
    read_facts,
    save_trained,
    sha256_of,
    write_facts,
)

WORDS = "embeddings.word_embeddings.weight"
LONGEST = 32  # word pieces of a phrase that are read; the longest of train100k has 32
SPREAD = 0.3  # standard deviation of the numbers in words' vectors; with MiniLM's own, .05, tanh has no curve


class PieceReader:
    """A function that cuts phrases into the word pieces of an encoder's tokenizer."""

    def __init__(self, encoder_folder: Path) -> None:
        self.tokenizer = read_tokenizer(encoder_folder, LONGEST)
        ids: Any = map(self.tokenizer.token_to_id, ("[CLS]", "[SEP]", "[UNK]"))
        self.start, self.end, self.unknown = ids

    def __call__(self, phrases: Sequence[str]) -> list[list[int]]:
        """The pieces of each phrase; [UNK] for a phrase without any."""
        encodings = self.tokenizer.encode_batch_fast(list(phrases), add_special_tokens=False)
        return [encoding.ids or [self.unknown] for encoding in encodings]


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

    def forward(self, phrases: Sequence[Sequence[int]]) -> Tensor:
        lengths = torch.tensor([len(pieces) for pieces in phrases])  # (n,)
        pieces = torch.tensor(list(chain.from_iterable(phrases)))
        means = self.words(pieces, lengths.cumsum(0) - lengths)  # (n, the encoder's width)
        return torch.tanh(self.project(self.dropout(means)))


class MiniLMPhrases(nn.Module):
    """The mean of the token states of a phrase by the encoder, which is not trained, through a tanh layer of `width`;
    `dropout` is of the means. Training reads a phrase once, so that no epoch after the first costs an encoder."""

    def __init__(self, encoder_folder: Path, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.read = PieceReader(encoder_folder)
        self.encoder = load_encoder(encoder_folder).requires_grad_(False)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(self.encoder.config.hidden_size, width)

    def encode(self, phrases: Sequence[str]) -> Tensor:
        """The mean token states of n phrases, (n, the encoder's width)."""
        rows = [[self.read.start, *pieces, self.read.end] for pieces in self.read(phrases)]
        return mean_states(self.encoder, rows)[:, 0]

    def forward(self, means: Tensor) -> Tensor:
        return torch.tanh(self.project(self.dropout(means.to(self.project.weight.dtype))))


ENCODERS: dict[str, Any] = {"words": MeanOfWords, "minilm": MiniLMPhrases}


class Bilinear(nn.Module):
    """Logits of relations between phrases, read as ENCODERS[phrases] of such a shape (width, dropout)."""

    def __init__(self, encoder_folder: Path, relations: Sequence[str], phrases: str, width: int, **shape: Any) -> None:
        super().__init__()
        self.facts = {"relations": list(relations), "phrases": phrases, "width": width, **shape}
        self.facts["encoder_sha256"] = sha256_of(encoder_folder / WEIGHTS)
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
        logits = np.zeros(len(relations), dtype=np.float32)
        if not len(relations):
            return logits
        distinct = list(dict.fromkeys([*heads, *tails]))
        index = {phrase: i for i, phrase in enumerate(distinct)}
        vectors = self.vectors(self.phrases.encode(distinct)).numpy()  # (distinct, width + 1)
        head, tail = (np.array([index[phrase] for phrase in column]) for column in (heads, tails))  # (n,) each
        names = np.array(relations)
        for relation, matrix in zip(self.relations, self.matrices.float().numpy(), strict=True):
            rows = np.flatnonzero(names == relation)
            logits[rows] = (vectors[head[rows]] @ matrix * vectors[tail[rows]]).sum(1)
        return logits

    @torch.no_grad()
    def shift(self, by: float) -> None:
        """Add a constant to all logits."""
        self.matrices[:, -1, -1] += by

    def save(self, folder: Path) -> None:
        """Write the trained tensors in half precision and the facts that loading needs."""
        save_trained(self, folder / WEIGHTS)
        write_facts(folder / CONFIG, self.facts)

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path) -> "Bilinear":
        """The network of a folder, compact or not.

        Raises ValueError when the folder was trained on another encoder, and when its weights are damaged."""
        facts = read_facts(folder / CONFIG, ["encoder_sha256"])
        trained_on = facts.pop("encoder_sha256")
        network = cls(encoder_folder, **facts)
        if trained_on != (here := network.facts["encoder_sha256"]):
            raise ValueError(f"{folder} was trained on the encoder {trained_on}, here it is {here}")
        if (folder / COMPACT).is_file():
            _expand(network, read(folder / COMPACT, ("words", "scales", "bias", "matrices")))
        else:
            load_trained(network, folder / WEIGHTS)
        return network.eval()


MEMBERS = ("minilm", "words")
COMPACT = "compact.safetensors"
LEVELS = 127  # of an 8-bit number, to either side


class Average:
    """Logits of triples: the mean of the members', which are in the order of MEMBERS, and a shift."""

    def __init__(self, members: Sequence[Bilinear], by: float = 0.0) -> None:
        self.members, self.by, self.relations = members, by, members[0].relations

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        """The logits of n triples, (n,) float32: above 0 is valid. Raises ValueError for an unknown relation."""
        logits = np.stack([member.logits(heads, relations, tails) for member in self.members])
        return logits.mean(0) + np.float32(self.by)

    def shift(self, by: float) -> None:
        """Add a constant to all logits."""
        self.by += by

    def save(self, folder: Path, made_of: Path) -> None:
        """Write the shift and the members: the folder of minilm in made_of as it is, the network of words compact."""
        shutil.copytree(made_of / "minilm", folder / "minilm")
        save_compact(self.members[MEMBERS.index("words")], folder / "words")
        write_facts(folder / CONFIG, {"average": MEMBERS, "shift": self.by})

    @classmethod
    def load(cls, folder: Path, encoder_folder: Path) -> "Average":
        """The classifier of a folder. Raises ValueError when it was trained on another encoder."""
        facts = read_facts(folder / CONFIG, ["average", "shift"])
        return cls([Bilinear.load(folder / name, encoder_folder) for name in facts["average"]], facts["shift"])


def save_compact(network: Bilinear, folder: Path) -> None:
    """The network's folder with its words' vectors as they come out of the layer, in 8 bits: mean and layer are both
    linear, so that the layer can be applied to words as well as to their mean."""
    phrases: Any = network.phrases
    with torch.no_grad():
        projected = phrases.words.weight @ phrases.project.weight.T  # (words, width)
        scales = projected.abs().amax(1).clamp(min=1e-6) / LEVELS
        words = (projected / scales[:, None]).round().to(torch.int8)
    kept = {"scales": scales, "bias": phrases.project.bias.detach(), "matrices": network.matrices.detach()}
    write_facts(folder / CONFIG, network.facts)
    save_file({"words": words} | {name: value.half() for name, value in kept.items()}, folder / COMPACT)


@torch.no_grad()
def _expand(network: Bilinear, stored: dict[str, Tensor]) -> None:
    """Load such tensors: the layer that is left passes on the first `width` numbers of a word's vector."""
    kept, phrases = {name: value.float() for name, value in stored.items()}, network.phrases
    width = len(kept["bias"])
    phrases.words.weight.zero_()[:, :width] = kept["words"] * kept["scales"][:, None]
    phrases.project.weight.copy_(torch.eye(width, phrases.words.embedding_dim))
    phrases.project.bias.copy_(kept["bias"])
    network.matrices.copy_(kept["matrices"])
