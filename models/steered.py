"""Trained generators with changed probabilities of next tokens: the common part of all kinds."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.beam import NextTokens, beam_search
from models.comet import Comet, hidden_before
from models.decoder import Decoder
from models.tail_prompts import Beam


class Steered(nn.Module, ABC):
    """A COMeT with another decoder or head and unchanged prompts and decoding. (A `Generator` of the probe.)

    A kind of it has `decoder`, what beam search runs; `head`, what proposes next tokens; and `logits`."""

    def __init__(self, comet: Comet) -> None:
        super().__init__()
        self.comet = comet

    @property
    def decoder(self) -> Decoder:
        """The decoder that gives the hidden states of tokens."""
        return self.comet.decoder

    @abstractmethod
    def head(self, decoder: Decoder, rows: int) -> NextTokens:
        """The function that proposes next tokens, for at most `rows` rows."""

    @abstractmethod
    def logits(self, hidden: Tensor) -> Tensor:
        """The logits of the next token, (rows, vocab_size), by the decoder's hidden states (rows, width)."""

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens of each prompt."""
        return self.comet.prompts(heads, phrases)

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of tails, with their end."""
        return self.comet.tails(tails)

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text."""
        return self.comet.decode(tail)

    @torch.inference_mode()
    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        words = torch.tensor(list(chain.from_iterable(tails)), device=self.decoder.words.weight.device)
        hidden = hidden_before(self.decoder, prompts, tails, self.comet.unseen)[: len(words)]
        logits = self.logits(hidden)
        return F.cross_entropy(logits.float(), words, reduction="none")

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see beam_search)."""
        return beam_search(
            self.decoder,
            prompts,
            end=self.comet.encoding.end,
            unseen=self.comet.unseen,
            beams=beams,
            max_length=max_length,
            rows=rows,
            head=self.head,
        )
