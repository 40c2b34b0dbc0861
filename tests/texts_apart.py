"""The obvious attention among texts one after the other: each is computed by itself."""

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional as F

from mitigate.models.decoder import UNSEEN


class TextsApart:
    """A row looks at itself and the earlier rows of its text, but not at those that unseen (rows,) marks. (An
    `Attention`.)"""

    def __init__(self, lengths: Sequence[int], unseen: Tensor | None = None) -> None:
        self.lengths = list(lengths)
        self.unseen = torch.zeros(sum(lengths), dtype=torch.bool) if unseen is None else unseen

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        texts = zip(*(rows.split(self.lengths) for rows in (query, key, value, self.unseen)), strict=True)
        return torch.cat([self._alone(*text) for text in texts])

    def _alone(self, query: Tensor, key: Tensor, value: Tensor, unseen: Tensor) -> Tensor:
        length = len(query)
        bias = torch.full((length, length), UNSEEN).triu(1) + UNSEEN * unseen
        query, key, value = (rows.transpose(0, 1) for rows in (query, key, value))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias.to(query.dtype)).transpose(0, 1)


def rows_of(texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Tokens (rows,) of all texts in order, and the position (rows,) of each in its text."""
    return torch.tensor(list(chain.from_iterable(texts))), torch.cat([torch.arange(len(text)) for text in texts])
