"""Decoding with an anti-expert: what it finds likely becomes less likely.

DExperts (Liu et al. 2021, Section 2.1) adds strength x (z_expert - z_anti) to the logits z of a generator. Here the
generator itself is the expert, which the paper does too where there is no other ("anti-only"), so the logits are
(1 + strength) z - strength z_anti. Far down the list of words the difference of two logits is noise, so the paper
weighs likely ones only; here these are the generator's best `candidates`, so that a beam always has continuations."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from models.beam import NextTokens
from models.comet import Comet
from models.decoder import Attention, Decoder
from models.steered import Steered
from models.top_tokens import TopTokens


class Pair(Decoder):
    """Two decoders of one shape as one: the hidden states of both, side by side, (rows, 2 x width)."""

    def __init__(self, first: Decoder, second: Decoder) -> None:
        nn.Module.__init__(self)  # it has no layers of its own
        self.first, self.second = first, second
        self.words, self.bias = first.words, None
        self.config = replace(first.config, layers=2 * first.config.layers)  # what attention remembers

    def forward(self, tokens: Tensor, positions: Tensor, attention: Attention) -> Tensor:
        """tokens (rows,), positions (rows,) -> hidden (rows, 2 x width)."""
        later = partial(_later, attention, self.first.config.layers)
        return torch.cat([self.first(tokens, positions, attention), self.second(tokens, positions, later)], dim=1)


class Experts(Steered):
    """A COMeT decoded against an anti-expert of its own shape. strength: 0 leaves it as it is; candidates: how many of
    its best next tokens are weighed, at least as many as beams, all others having probability 0.

    The likelihood of given tails (`nll`) is that of all words, since a probability of 0 has none. Raises ValueError for
    an anti-expert of another shape or vocabulary."""

    def __init__(self, comet: Comet, anti: Comet, strength: float, candidates: int) -> None:
        super().__init__(comet)
        if comet.decoder.config != anti.decoder.config:
            raise ValueError(f"the anti-expert is {anti.decoder.config}, the generator {comet.decoder.config}")
        self.pair = Pair(comet.decoder, anti.decoder).eval()
        self.strength, self.candidates = strength, candidates

    @property
    def decoder(self) -> Decoder:
        """Both decoders."""
        return self.pair

    def head(self, decoder: Decoder, rows: int) -> NextTokens:
        """The function that proposes next tokens."""
        return _Weighed(self.pair, rows, self.strength, self.candidates)

    def logits(self, hidden: Tensor) -> Tensor:
        """The logits of all words by the hidden states of both decoders."""
        own, other = hidden.chunk(2, dim=1)
        return (1 + self.strength) * self.pair.first.logits(own) - self.strength * self.pair.second.logits(other)


class _Weighed:
    """The generator's best tokens, weighed anew."""

    def __init__(self, pair: Pair, rows: int, strength: float, candidates: int) -> None:
        self.best_tokens = TopTokens(pair.first, rows)
        self.anti = pair.second
        self.strength, self.candidates = strength, candidates

    def __call__(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        own, other = hidden.chunk(2, dim=1)
        best, tokens = self.best_tokens(own, self.candidates)
        tokens, order = tokens.sort(dim=1)  # so that of equal values the lower token comes first
        against = (self.anti.words.weight[tokens] @ other[:, :, None])[:, :, 0]
        if self.anti.bias is not None:
            against = against + self.anti.bias[tokens]
        # a logit and a log-probability differ by the same number for all tokens of a row, which log_softmax takes away
        weighed = (1 + self.strength) * best.gather(1, order) - self.strength * against.float()
        log_probs = weighed.log_softmax(1)
        kept = log_probs.sort(dim=1, descending=True, stable=True).indices[:, :count]
        return log_probs.gather(1, kept), tokens.gather(1, kept)


def _later(attention: Attention, layers: int, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention in a decoder whose layers are numbered after `layers` others."""
    return attention(layers + layer, query, key, value)
