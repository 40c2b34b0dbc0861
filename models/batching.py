"""Batches of texts and blocks of rows, formed so that no text's results depend on the other texts."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

TOKENS = 2048  # in one batch; beyond it the activations of a small encoder no longer fit the cache of a core
ROWS = 64  # of a block


def token_batches(lengths: Sequence[int], tokens: int = TOKENS, fewest: int = 2) -> Iterator[np.ndarray]:
    """Indices of texts, shortest first, in batches of one length and at most `tokens` tokens; a longer text is a batch
    of its own. Padding, and a product of one row, change the last bits of a text's numbers, which then depended on the
    texts beside it: a batch of less than `fewest` texts has its text so often."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        is_last = end == len(order) or lengths[order[end]] != lengths[order[start]]
        if is_last or (end + 1 - start) * lengths[order[end]] > tokens:
            yield order[start:end] if end - start >= fewest else order[start:end].repeat(fewest)
            start = end


def passes(lengths: Sequence[int], tokens: int) -> Iterator[np.ndarray]:
    """Indices of texts, shortest first, in passes of at most `tokens` tokens; a longer text has a pass of its own."""
    order = np.argsort(lengths, kind="stable")
    start = total = 0
    for end, index in enumerate(order):
        if total + lengths[index] > tokens and end > start:
            yield order[start:end]
            start, total = end, 0
        total += lengths[index]
    if len(order):
        yield order[start:]


def in_blocks(function: Callable[[np.ndarray], np.ndarray], places: np.ndarray) -> np.ndarray:
    """function(places), one row for each of n places, computed in blocks of exactly ROWS places, of which the last is
    filled up. Matrix products with different numbers of rows can use different kernels, whose last bits differ."""
    if not len(places):
        return function(places)
    filled = np.resize(places, -(-len(places) // ROWS) * ROWS)
    return np.concatenate([function(block) for block in filled.reshape(-1, ROWS)])[: len(places)]


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
