"""COMeT: a decoder that completes the head and relation of an assertion with its tail (Bosselut et al. 2019)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mitigate.models.beam import beam_search
from mitigate.models.decoder import Decoder, DecoderReading, Padded
from mitigate.models.stored_tensors import CONFIG, read_facts, write_facts
from mitigate.models.tail_prompts import (
    HEAD_TOKENS,
    RELATION_TOKENS,
    TAIL_TOKENS,
    Beam,
    Encoding,
    Layout,
    regimen,
    tagged,
)


class Comet(nn.Module):
    """A decoder and its encoding: prompts in, tails out."""

    def __init__(
        self,
        decoder: Decoder,
        encoding: Encoding,
        layout: Layout = "packed",
        relation: str = "phrase",
        tags: str | None = None,
    ) -> None:
        super().__init__()
        self.decoder = decoder
        self.encoding = encoding
        self.layout = layout
        self.relation = relation
        self.tags = tags

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens before a tail: the start token if there is one, the head (of a generator with control tokens the
        neutral one, then the head), the relation's phrase."""
        start = [] if self.encoding.start is None else [self.encoding.start]
        pairs = zip(self.encoding.encode(tagged(heads, self.tags)), self.encoding.encode(phrases), strict=True)
        parts = [(head[:HEAD_TOKENS], phrase[:RELATION_TOKENS]) for head, phrase in pairs]
        if self.layout == "comet":
            return [self._slot(head, HEAD_TOKENS) + self._slot(phrase, RELATION_TOKENS) for head, phrase in parts]
        return [start + head + phrase for head, phrase in parts]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens to generate: the tail and the end token."""
        return [[*tail[:TAIL_TOKENS], self.encoding.end] for tail in self.encoding.encode(tails)]

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text."""
        return self.encoding.decode(tail)

    @property
    def unseen(self) -> int | None:
        """The padding token, which no row attends to within a prompt; None with a layout without padding. In a tail it
        is a word like others: the original pads with GPT-1's token 0, a full stop within a word."""
        return self.encoding.pad if self.layout == "comet" else None

    def _slot(self, tokens: list[int], size: int) -> list[int]:
        return tokens + [self.encoding.pad] * (size - len(tokens))

    def nll(
        self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]], candidates: Tensor | None = None
    ) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order; with candidates (n,) in rising
        order, which must hold them all, given that the token is one of these.

        The vocabulary's logits, the most costly part of a small model, are computed only where a tail's token comes
        next."""
        decoder, device, unseen = self.decoder, self.decoder.token_embedding.weight.device, self.unseen
        texts = [[*prompt, *tail[:-1]] for prompt, tail in zip(prompts, tails, strict=True)]
        length = max(map(len, texts))
        tokens = np.zeros((len(texts), length), dtype=np.int64)  # padded to the right
        places = []  # from whose states the tokens of tails are predicted
        for row, (text, tail) in enumerate(zip(texts, tails, strict=True)):
            tokens[row, : len(text)] = text
            places.append(row * length + np.arange(len(text) - len(tail), len(text)))
        mask = None
        if unseen is not None:  # nothing looks at it where it stands in a prompt
            seen = tokens != unseen
            seen[:, HEAD_TOKENS + RELATION_TOKENS :] = True
            mask = send(seen, device)[:, None] & torch.ones(length, length, dtype=torch.bool, device=device).tril()
        positions = torch.arange(length, device=device).repeat(len(texts))
        attention = Padded(len(texts), decoder.config.dropout if decoder.training else 0.0, mask)
        hidden = decoder(send(tokens.ravel(), device), positions, attention)[send(np.concatenate(places), device)]
        logits = self.decoder.logits(hidden, candidates)  # (tokens, vocab_size), or (tokens, candidates)
        words = send(np.concatenate(tails), hidden.device)
        words = words if candidates is None else torch.searchsorted(candidates, words)
        return F.cross_entropy(logits.float(), words, reduction="none")

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see beam_search). A copy in bfloat16 searches approximately.
        Raises ValueError in training mode, and for a prompt that is empty or too long for the decoder's positions."""
        if self.decoder.training:
            raise ValueError("the decoder is in training mode, where dropout changes what it says; call eval() first")
        longest, positions = max(map(len, prompts), default=0), self.decoder.config.positions
        if not all(map(len, prompts)):
            raise ValueError("a prompt is empty; it must hold at least one token to be continued")
        if longest + max_length - 1 > positions:
            raise ValueError(
                f"a prompt of {longest} tokens with tails of {max_length} needs {longest + max_length - 1} positions; "
                f"the decoder has {positions}"
            )
        limits = {"beams": beams, "max_length": max_length, "rows": rows}
        reading, device = partial(DecoderReading, self.decoder, self.unseen), self.decoder.token_embedding.weight.device
        return beam_search(reading, prompts, end=self.encoding.end, device=device, **limits)

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
        return cls(Decoder.from_encoder(folder, dropout), encoding, *regimen(folder, layout, relation)).eval()

    @classmethod
    def load(cls, folder: Path, layout: Layout | None = None, relation: str | None = None) -> "Comet":
        """The COMeT of a Hugging Face folder, or the language model of one to be made a COMeT (see regimen)."""
        decoder, encoding = Decoder.load(folder), Encoding.load(folder)
        if decoder.config.kind == "gpt2" and "comet_layout" not in read_facts(folder / CONFIG):
            # Head, phrase and tail are encoded apart, and GPT-2 marks a word by the space before it.
            encoding.tokenizer.pre_tokenizer.add_prefix_space = True
        if encoding.vocab_size > decoder.config.vocab_size:  # an end token was added
            decoder.grow(encoding.vocab_size)
        return cls(decoder, encoding, *regimen(folder, layout, relation)).eval()

    def save(self, folder: Path) -> None:
        """Write the files that AutoModelForCausalLM, AutoTokenizer and `generate` need to work without this code."""
        tokens = {"bos_token_id": self.encoding.start, "eos_token_id": self.encoding.end}
        tokens["pad_token_id"] = self.encoding.pad
        facts = {"comet_layout": self.layout, "comet_relation": self.relation}
        facts |= {} if self.tags is None else {"comet_tags": self.tags}
        self.decoder.save(folder, **tokens, **facts)
        self.encoding.save(folder)
        generation = {name: value for name, value in tokens.items() if value is not None}
        write_facts(folder / "generation_config.json", {**generation, "max_new_tokens": TAIL_TOKENS + 1})


def send(array: np.ndarray, device: torch.device) -> Tensor:
    """A tensor of the same on the device. A copy from pinned memory waits for nothing that the GPU has to do."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
