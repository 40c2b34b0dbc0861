"""Texts of different lengths laid end to end, so that no layer spends time on padding."""

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional as F


class PackedCausal:
    """Attention in which a row looks at itself and the earlier rows of its own text. (An `Attention`.)

    Only here are the texts padded: to the right, where a causal attention never looks. Rows beyond the texts are
    filling and get zeros. unseen (rows of the texts,) marks rows that none looks at, not even themselves."""

    def __init__(
        self,
        lengths: Sequence[int],
        dropout: float = 0.0,
        device: torch.device | None = None,
        unseen: Tensor | None = None,
    ) -> None:
        self.shape = len(lengths), max(lengths)
        self.dropout = dropout
        rows = [text * self.shape[1] + i for text, length in enumerate(lengths) for i in range(length)]
        self.places = torch.tensor(rows, device=device)  # (rows,) in the flattened (texts, longest)
        self.mask = None  # (texts, 1, longest, longest): who sees whom, where that is not plainly causal
        if unseen is not None:
            seen = self._pad(~unseen[:, None, None]).transpose(2, 3)
            self.mask = seen & torch.ones(2 * self.shape[1:], device=device).tril().bool()

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(
            self._pad(query),
            self._pad(key),
            self._pad(value),
            attn_mask=self.mask,
            dropout_p=self.dropout,
            is_causal=self.mask is None,
        )  # (texts, heads, longest, head_width)
        found = mixed.transpose(1, 2).flatten(0, 1)[self.places]
        return F.pad(found, (0, 0, 0, 0, 0, len(query) - len(found)))

    def _pad(self, rows: Tensor) -> Tensor:  # (rows, heads, head_width) -> (texts, heads, longest, head_width)
        texts, longest = self.shape
        padded = rows.new_zeros(texts * longest, *rows.shape[1:]).index_copy(0, self.places, rows[: len(self.places)])
        return padded.unflatten(0, (texts, longest)).transpose(1, 2)


def pack(texts: Sequence[Sequence[int]], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Tokens (rows,) of all texts in order, and the position (rows,) of each in its text."""
    tokens = torch.tensor(list(chain.from_iterable(texts)))
    positions = torch.cat([torch.arange(len(text)) for text in texts])  # there, not in as many steps of a GPU
    return tokens.to(device), positions.to(device)


def fill(rows: Tensor, multiple: int = 32) -> Tensor:
    """Rows (n,), with zeros added up to a multiple. Where tensors come in few sizes, freed memory fits the next."""
    return F.pad(rows, (0, -len(rows) % multiple))
