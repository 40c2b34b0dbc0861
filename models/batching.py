"""Batches of texts of similar length."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

TOKENS = 2048  # in one batch; beyond it the activations of a small encoder no longer fit the cache of a core


def token_batches(lengths: Sequence[int], tokens: int = TOKENS, one_length: bool = False) -> Iterator[np.ndarray]:
    """Indices of texts, shortest first, in batches of at most `tokens` tokens once they are padded to the longest; a
    longer text is a batch of its own. one_length: a batch has texts of one length, which need no padding."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end, index in enumerate(order):
        is_other = one_length and lengths[index] != lengths[order[start]]
        if end > start and (is_other or (end + 1 - start) * lengths[index] > tokens):
            yield order[start:end]
            start = end
    if len(order):
        yield order[start:]


def pad(rows: Sequence[Sequence[int]], padding: int) -> "tuple[Tensor, Tensor | None]":
    """Token ids (batch, longest) and their mask (batch, longest), None when nothing had to be padded."""
    import torch  # takes a second, which token_batches does without

    longest = max(map(len, rows))
    tokens = torch.full((len(rows), longest), padding)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
    if min(map(len, rows)) == longest:
        return tokens, None
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, (torch.arange(longest) < lengths[:, None]).long()
