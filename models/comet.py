"""COMeT: a decoder that completes the head and relation of an assertion with its tail (Bosselut et al. 2019)."""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models import hf_layouts, minilm
from models.beam import beam_search
from models.beam_state import Beam
from models.decoder import Decoder
from models.encoding import Encoding
from models.packing import PackedTrees, fill, pack
from models.stored_tensors import read_facts

HEAD_TOKENS, RELATION_TOKENS, TAIL_TOKENS = 10, 5, 15
"""The most tokens of each part, as in COMeT; the tail's end token is not counted."""


Layout = Literal["packed", "comet"]
"""The positions of a text's parts: one after the other, or in the fixed slots of the original (the relation at 10, the
tail at 15), whose gaps are padding that no row attends to. There, the first token of a tail is predicted from the last
place of the relation's slot, padding or not."""


class Regimen(NamedTuple):
    """The layout and wording that a COMeT is trained and prompted with."""

    layout: Layout = "packed"
    relation: str = "phrase"  # which wording of relations: known here by its name only


def regimen(folder: Path, layout: Layout | None = None, relation: str | None = None) -> Regimen:
    """The layout and wording for prompts to the model of a Hugging Face folder: for a COMeT those of its training, from
    its config.json; for another language model the given ones.

    Raises ValueError for an unknown layout, and for a layout or wording that the COMeT was not trained with."""
    if layout is not None and layout not in get_args(Layout):
        raise ValueError(f"unknown model.layout {layout!r}; allowed: {', '.join(get_args(Layout))}")
    path = folder / hf_layouts.CONFIG  # which the folder of a mere tokenizer may lack
    config = read_facts(path) if path.is_file() else {}
    wanted = {"layout": layout, "relation": relation}
    trained = {name: config[f"comet_{name}"] for name in wanted if f"comet_{name}" in config}
    for name, value in trained.items():
        if wanted[name] not in (None, value):
            raise ValueError(
                f"model.{name}={wanted[name]}, but the COMeT in {folder} was trained with model.{name}={value}; give "
                f"that, or null"
            )
    return Regimen(**{name: value for name, value in wanted.items() if value is not None} | trained)


class Candidates(NamedTuple):
    """Some tokens of the vocabulary, among which the next one is looked for."""

    tokens: Tensor  # (candidates,) in rising order
    places: Tensor  # (vocab_size,) where each token stands among them; -1 for the others

    @classmethod
    def of(cls, tokens: Tensor, vocab_size: int) -> "Candidates":
        """tokens (candidates,) int, in any order, each once or more."""
        tokens = tokens.unique()
        return cls(tokens, torch.full((vocab_size,), -1).index_put((tokens,), torch.arange(len(tokens))))

    def to(self, device: torch.device) -> "Candidates":
        return Candidates(self.tokens.to(device), self.places.to(device))


class Comet(nn.Module):
    """A decoder and its encoding: prompts in, tails out."""

    def __init__(
        self, decoder: Decoder, encoding: Encoding, layout: Layout = "packed", relation: str = "phrase"
    ) -> None:
        super().__init__()
        self.decoder = decoder
        self.encoding = encoding
        self.layout = layout
        self.relation = relation

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens before a tail: the start token if there is one, the head, the relation's phrase."""
        start = [] if self.encoding.start is None else [self.encoding.start]
        pairs = zip(self.encoding.encode(heads), self.encoding.encode(phrases), strict=True)
        parts = [(head[:HEAD_TOKENS], phrase[:RELATION_TOKENS]) for head, phrase in pairs]
        if self.layout == "comet":
            return [self._slot(head, HEAD_TOKENS) + self._slot(phrase, RELATION_TOKENS) for head, phrase in parts]
        return [start + head + phrase for head, phrase in parts]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens to generate: the tail and the end token."""
        return [[*tail[:TAIL_TOKENS], self.encoding.end] for tail in self.encoding.encode(tails)]

    def nll(
        self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]], candidates: Candidates | None = None
    ) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order; with candidates, which must hold
        them all, given that the token is one of these.

        Neighbours that have the same prompt share its rows (packing.py). The vocabulary's logits, the most costly part
        of a small model, are computed only where a tail's token comes next."""
        hidden = hidden_before(self.decoder, prompts, tails, self.unseen)
        said = list(chain.from_iterable(tails))
        words = fill(torch.tensor(said)).to(hidden.device)
        if candidates is None:
            logits = self.decoder.logits(hidden)  # (tokens, vocab_size)
        else:
            logits = self.decoder.logits(hidden, candidates.tokens)  # (tokens, candidates)
            words = candidates.places[words].clamp_min(0)  # the filling need not be one of them
        return F.cross_entropy(logits.float(), words, reduction="none")[: len(said)]

    def begin_steps(self) -> None:
        """Prepare the process that trains: there is nothing to do."""

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see beam_search)."""
        return beam_search(
            self.decoder,
            prompts,
            end=self.encoding.end,
            unseen=self.unseen,
            beams=beams,
            max_length=max_length,
            rows=rows,
        )

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text."""
        return self.encoding.decode(tail)

    @property
    def unseen(self) -> int | None:
        """The padding token, which no row attends to within a prompt; None with a layout without padding. In a tail it
        is a word like others: the original pads with GPT-1's token 0, a full stop within a word."""
        return self.encoding.pad if self.layout == "comet" else None

    def add(self, tokens: Sequence[str]) -> None:
        """Add tokens that are words of their own, such as <CapableOf> for a relation."""
        self.encoding.add(tokens)
        self.decoder.grow(self.encoding.vocab_size)

    @classmethod
    def from_encoder(
        cls, folder: Path, dropout: float = 0.1, layout: Layout | None = None, relation: str | None = None
    ) -> "Comet":
        """An untrained COMeT that knows words and phrases from all-MiniLM-L6-v2."""
        encoding = Encoding.of_encoder(folder)
        return cls(minilm.causal(folder, dropout), encoding, *regimen(folder, layout, relation)).eval()

    @classmethod
    def load(cls, folder: Path, layout: Layout | None = None, relation: str | None = None) -> "Comet":
        """The COMeT of a Hugging Face folder, or the language model of one to be made a COMeT (see regimen)."""
        decoder, encoding = Decoder.load(folder), Encoding.load(folder)
        if encoding.vocab_size > decoder.config.vocab_size:  # an end token was added
            decoder.grow(encoding.vocab_size)
        return cls(decoder, encoding, *regimen(folder, layout, relation)).eval()

    def save(self, folder: Path) -> None:
        """Write the files that AutoModelForCausalLM, AutoTokenizer and `generate` need to work without this code."""
        tokens = {"bos_token_id": self.encoding.start, "eos_token_id": self.encoding.end}
        tokens["pad_token_id"] = self.encoding.pad
        self.decoder.save(folder, **tokens, comet_layout=self.layout, comet_relation=self.relation)
        self.encoding.save(folder)
        generation = {**tokens, "max_new_tokens": TAIL_TOKENS + 1}
        text = json.dumps({name: value for name, value in generation.items() if value is not None}, indent=2)
        (folder / "generation_config.json").write_text(text + "\n", encoding="utf-8")

    def _slot(self, tokens: list[int], size: int) -> list[int]:
        return tokens + [self.encoding.pad] * (size - len(tokens))


def hidden_before(
    decoder: Decoder, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]], unseen: int | None = None
) -> Tensor:
    """The last hidden states (tokens, width) from which each token of the tails is predicted, in order; rows beyond
    these are filling. unseen: the token that nothing looks at where it stands in a prompt."""
    packed = pack(prompts, tails).to(decoder.words.weight.device)
    seen = packed.seen
    if unseen is not None:
        read = (packed.tokens != unseen) | (packed.positions >= HEAD_TOKENS + RELATION_TOKENS)
        seen = seen & read.view(len(seen), 1, -1)
    dropout = decoder.config.dropout if decoder.training else 0.0
    hidden = decoder(packed.tokens, packed.positions, PackedTrees(seen, dropout))
    return hidden[fill(packed.before)]
