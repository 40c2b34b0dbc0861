"""COMeT: a decoder that completes the head and relation of an assertion with its tail (Bosselut et al. 2019)."""

import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models import minilm
from models.decoder import Decoder
from models.encoding import Encoding
from models.packing import PackedCausal, pack

HEAD_TOKENS, RELATION_TOKENS, TAIL_TOKENS = 10, 5, 15
"""What is read of each part at most, as in COMeT; the tail's end token is not counted."""


class Comet(nn.Module):
    """A decoder and its encoding: prompts in, tails out."""

    def __init__(self, decoder: Decoder, encoding: Encoding) -> None:
        super().__init__()
        self.decoder = decoder
        self.encoding = encoding

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """What tails are asked for with: the start token if there is one, the head, the relation's phrase."""
        start = [] if self.encoding.start is None else [self.encoding.start]
        pairs = zip(self.encoding.encode(heads), self.encoding.encode(phrases), strict=True)
        return [start + head[:HEAD_TOKENS] + phrase[:RELATION_TOKENS] for head, phrase in pairs]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """What is to be said: the tail and the end token."""
        return [[*tail[:TAIL_TOKENS], self.encoding.end] for tail in self.encoding.encode(tails)]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order.

        The vocabulary's logits, the most costly part of a small model, are computed only where a tail's token
        comes next; a tail's last token is not read at all."""
        device = self.decoder.words.weight.device
        texts = [[*prompt, *tail[:-1]] for prompt, tail in zip(prompts, tails, strict=True)]
        lengths = [len(text) for text in texts]
        dropout = self.decoder.config.dropout if self.training else 0.0
        hidden = self.decoder(*pack(texts, device), PackedCausal(lengths, dropout, device))
        ends = accumulate(lengths)
        rows = [row for end, tail in zip(ends, tails, strict=True) for row in range(end - len(tail), end)]
        logits = self.decoder.logits(hidden[torch.tensor(rows, device=device)])  # (tokens, vocab_size)
        return F.cross_entropy(logits.float(), pack(tails, device)[0], reduction="none")

    @classmethod
    def from_encoder(cls, folder: Path, dropout: float = 0.1) -> "Comet":
        """An untrained COMeT that knows words and phrases from all-MiniLM-L6-v2."""
        return cls(minilm.causal(folder, dropout), Encoding.of_encoder(folder)).eval()

    @classmethod
    def load(cls, folder: Path) -> "Comet":
        """The COMeT of a Hugging Face folder, or the language model of one to be made a COMeT."""
        decoder, encoding = Decoder.load(folder), Encoding.load(folder)
        if encoding.vocab_size > decoder.config.vocab_size:  # an end token was added
            decoder.grow(encoding.vocab_size)
        return cls(decoder, encoding).eval()

    def save(self, folder: Path) -> None:
        """Writes what AutoModelForCausalLM, AutoTokenizer and `generate` need to work without this code."""
        tokens = {"bos_token_id": self.encoding.start, "eos_token_id": self.encoding.end}
        tokens["pad_token_id"] = self.encoding.pad
        self.decoder.save(folder, **tokens)
        self.encoding.save(folder)
        generation = {**tokens, "max_new_tokens": TAIL_TOKENS + 1}
        text = json.dumps({name: value for name, value in generation.items() if value is not None}, indent=2)
        (folder / "generation_config.json").write_text(text + "\n", encoding="utf-8")
