"""Texts of different lengths laid end to end, so that no layer spends time on padding."""

from collections.abc import Sequence
from itertools import chain, groupby

import torch
from torch import Tensor
from torch.nn import functional as F

from models.dropout import dropout

UNSEEN = -1e30  # added to a score; finite, so that a row that sees nothing still gets numbers


class PackedCausal:
    """Attention in which a row looks at itself and the earlier rows of its own text. (An `Attention`.)

    Neighbours of the same length are one group, so texts are best given in the order of their lengths. For texts
    as short as these PyTorch's own attention takes twice as long on a CPU, and in bf16 without dropout ten times.
    Rows beyond the texts are filling and stay as they are. unseen (rows of the texts,) marks rows that none looks
    at, not even themselves."""

    def __init__(
        self,
        lengths: Sequence[int],
        dropout: float = 0.0,
        device: torch.device | None = None,
        unseen: Tensor | None = None,
    ) -> None:
        self.dropout = dropout
        self.groups = [(len(list(same)), length) for length, same in groupby(lengths)]  # texts, and rows of each
        self.rows = [texts * length for texts, length in self.groups]
        longest = max(lengths)
        causal = torch.full((longest, longest), UNSEEN, device=device).triu(1)
        hidden = torch.zeros(sum(self.rows), device=device) if unseen is None else UNSEEN * unseen
        self.biases = [  # (texts, 1, length, length): added to a row's score of another
            causal[:length, :length] + part.view(texts, 1, 1, length)
            for (texts, length), part in zip(self.groups, hidden.split(self.rows), strict=True)
        ]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        sizes = [*self.rows, len(query) - sum(self.rows)]
        *groups, filling = zip(query.split(sizes), key.split(sizes), value.split(sizes), strict=True)
        mixed = [self._mix(*group, bias) for group, bias in zip(groups, self.biases, strict=True)]
        return torch.cat([*mixed, filling[-1]])

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:  # each (rows, heads, head_width)
        texts, heads = len(bias), query.shape[1]
        query, key, value = (
            rows.unflatten(0, (texts, -1)).transpose(1, 2).flatten(0, 1)  # (texts * heads, length, head_width)
            for rows in (query, key, value)
        )
        bias = bias.to(query.dtype).expand(-1, heads, -1, -1).flatten(0, 1)
        scores = torch.baddbmm(bias, query, key.mT, alpha=query.shape[-1] ** -0.5)
        mixed = dropout(scores.softmax(-1), self.dropout) @ value
        return mixed.unflatten(0, (texts, heads)).transpose(1, 2).flatten(0, 1)


def pack(texts: Sequence[Sequence[int]], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Tokens (rows,) of all texts in order, and the position (rows,) of each in its text."""
    tokens = torch.tensor(list(chain.from_iterable(texts)))
    positions = torch.cat([torch.arange(len(text)) for text in texts])  # there, not in as many steps of a GPU
    return tokens.to(device), positions.to(device)


def fill(rows: Tensor, multiple: int = 32) -> Tensor:
    """Rows (n,), with zeros added up to a multiple. Where tensors come in few sizes, freed memory fits the next."""
    return F.pad(rows, (0, -len(rows) % multiple))
