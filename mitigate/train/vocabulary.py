"""The tokens of the vocabulary over which the loss of a training is normalised.

The tails of ConceptNet train100k have 11,342 of MiniLM's 30,522 tokens; the logits of the others take a third of the
time of a training, which learns from them only that they are rare. Here a model begins with that knowledge: each
token's output bias is the logarithm of its frequency in the tails, unseen tokens share the mass that Good (1953)
estimates for them, and the loss is normalised over the tokens of tails. Perplexity and beam search are over all
tokens."""

from collections.abc import Sequence
from itertools import chain
from typing import Literal

import torch
from torch import Tensor

from mitigate.errors import MitigateError
from models.decoder import Decoder


def begin_vocabulary(
    decoder: Decoder, tails: Sequence[Sequence[int]], vocabulary: Literal["auto", "all", "tails"]
) -> Tensor | None:
    """The tokens (n,) over which the loss is normalised, in rising order; then the decoder's output bias is set too.
    None: all tokens.

    "tails": those of the tails; "auto": the same if the decoder has an output bias that no training has changed. Raises
    MitigateError for "tails" with a decoder without an output bias: the other tokens would keep their likelihood."""
    if vocabulary == "all" or (vocabulary == "auto" and (decoder.bias is None or bool(decoder.bias.any()))):
        return None
    if decoder.bias is None:
        raise MitigateError(
            f"trainer.vocabulary=tails needs a model with an output bias, and {decoder.config.kind} has none; set "
            "trainer.vocabulary=all, or auto"
        )
    tokens = torch.tensor(list(chain.from_iterable(tails)))
    if not decoder.bias.any():  # the bias of a trained model stays
        decoder.bias.data.copy_(log_frequencies(tokens, decoder.config.vocab_size))
    return tokens.unique()


def log_frequencies(tokens: Tensor, vocab_size: int) -> Tensor:
    """The logarithms (vocab_size,) of each token's share of tokens (n,) int. Tokens that do not occur have together the
    share of those that occur once (Good 1953, equation 9), at least 1 in n and at most half."""
    counts = tokens.bincount(minlength=vocab_size).double()
    unseen = counts == 0
    if unseen.any():
        mass = ((counts == 1).sum() / len(tokens)).clamp(1 / len(tokens), 0.5)
        counts = torch.where(unseen, mass * len(tokens) / unseen.sum(), (1 - mass) * counts)
    return (counts / len(tokens)).log().float()
