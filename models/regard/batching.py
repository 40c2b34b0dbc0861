"""Texts of similar length share a batch, so that little of it is padding."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

TOKENS = 2048  # in one batch; beyond it the activations of a small encoder no longer fit the cache of a core


def token_batches(lengths: Sequence[int], tokens: int = TOKENS) -> Iterator[np.ndarray]:
    """Indices of texts, shortest first, in batches of at most `tokens` tokens with padding; a longer text is
    a batch of its own."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        full = end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens
        if full:
            yield order[start:end]
            start = end


def pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor | None]:
    """Token ids (batch, longest) and their mask (batch, longest), None when nothing had to be padded."""
    longest = max(map(len, rows))
    tokens = torch.full((len(rows), longest), padding)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
    if min(map(len, rows)) == longest:
        return tokens, None
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, (torch.arange(longest) < lengths[:, None]).long()
