"""COMeT's loss for a GPU, which would wait for Python most of the time: compiled once, and replayed as a graph.

A graph has fixed shapes. So texts are padded to the right to few lengths, the tails' tokens to few numbers, and one
recording is made of each pair of these; the packed rows of packing.py would make a new one at every step. Not
compiled, this is still the way of fewest kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from models.comet import Candidates, Comet
from models.decoder import Decoder
from models.tail_prompts import HEAD_TOKENS, RELATION_TOKENS

OPTIONS: dict[str, Any] = {"triton.cudagraphs": True, "triton.cudagraph_dynamic_shape_warn_limit": 100}
LENGTHS, SAID = 2, 64
"""A text's tokens, and the tokens of a batch's tails, are filled up to multiples of these. 6,000 batches of 64 triples
of ConceptNet then have 21 shapes, and an eighth of their rows is filling."""


class PaddedCausal:
    """Attention among the rows of texts of one length: each attends to itself and the earlier rows of its text, or,
    with a mask (texts, 1, length, length), to the rows for which it is True. (An `Attention`.)"""

    def __init__(self, texts: int, dropout: float, mask: Tensor | None) -> None:
        self.texts = texts
        self.dropout = dropout
        self.mask = mask

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (rows.unflatten(0, (self.texts, -1)).transpose(1, 2) for rows in (query, key, value))
        mixed = F.scaled_dot_product_attention(
            query, key, value, attn_mask=self.mask, dropout_p=self.dropout, is_causal=self.mask is None
        )  # (texts, heads, length, head_width)
        return mixed.transpose(1, 2).flatten(0, 1)


class PaddedNll:
    """Comet.nll, the same numbers but for rounding."""

    def __init__(self, comet: Comet, compiled: bool, candidates: Candidates | None = None) -> None:
        self.comet = comet
        self.compiled = compiled
        self.candidates = None if candidates is None else candidates.to(comet.decoder.words.weight.device)
        self.places = None if candidates is None else candidates.places.cpu().numpy()
        self.compute = torch.compile(_nll, options=OPTIONS) if compiled else _nll

    def __call__(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        decoder, unseen = self.comet.decoder, self.comet.unseen
        texts = [[*prompt, *tail[:-1]] for prompt, tail in zip(prompts, tails, strict=True)]
        length = min(_filled(max(map(len, texts)), LENGTHS), decoder.config.positions)  # the original's are 31
        tokens = np.zeros((len(texts), length), dtype=np.int64)
        seen = np.ones_like(tokens, dtype=bool)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
        if unseen is not None:
            seen[:, : HEAD_TOKENS + RELATION_TOKENS] = tokens[:, : HEAD_TOKENS + RELATION_TOKENS] != unseen
        said = np.concatenate(tails)
        if self.places is not None:
            said = self.places[said]
        places = np.concatenate(
            [
                row * tokens.shape[1] + np.arange(len(text) - len(tail), len(text))
                for row, (text, tail) in enumerate(zip(texts, tails, strict=True))
            ]
        )
        filling = (0, -len(said) % SAID)
        sent = [tokens, np.pad(places, filling), np.pad(said, filling), *([] if unseen is None else [seen])]
        tensors = [send(array, decoder.words.weight.device) for array in sent]
        if self.compiled:
            for tensor in tensors:  # one compilation, not one for each shape
                torch._dynamo.maybe_mark_dynamic(tensor, tensor.ndim - 1)
            torch.compiler.cudagraph_mark_step_begin()  # what the last step gave may be written over
        among = None if self.candidates is None else self.candidates.tokens
        return self.compute(decoder, among, *tensors)[: len(said)]


def send(array: np.ndarray, device: torch.device) -> Tensor:
    """A tensor of the same on the device, for which neither waits: a copy from ordinary memory would wait until the
    GPU has done all it was given."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def _nll(
    decoder: Decoder, among: Tensor | None, tokens: Tensor, places: Tensor, said: Tensor, seen: Tensor | None = None
) -> Tensor:
    """among (candidates,), tokens and seen (texts, length), places and said (tokens,) -> (tokens,)."""
    texts, length = tokens.shape
    mask = None
    if seen is not None:
        mask = seen[:, None, None] & torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    dropout = decoder.config.dropout if decoder.training else 0.0
    positions = torch.arange(length, device=tokens.device).repeat(texts)
    hidden = decoder(tokens.flatten(), positions, PaddedCausal(texts, dropout, mask))
    return F.cross_entropy(decoder.logits(hidden[places], among).float(), said, reduction="none")


def _filled(number: int, multiple: int) -> int:
    return number + -number % multiple
