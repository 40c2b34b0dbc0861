"""Dropout that costs little on a CPU, where PyTorch draws a random number an entry, one after the other."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CHANCES = 2**16  # a rate is exact to one part in so many


class Dropout(nn.Dropout):
    """nn.Dropout by the function `dropout`. Entries of any shape -> the same shape."""

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p if self.training else 0.0)


def dropout(entries: Tensor, rate: float) -> Tensor:
    """F.dropout in training. On a CPU one drawn number decides on four entries, by 16 of its bits each."""
    if not rate:
        return entries
    if entries.device.type != "cpu":
        return F.dropout(entries, rate)
    dropped = round(rate * CHANCES)
    drawn = torch.empty(-(-entries.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = drawn.view(torch.int16)[: entries.numel()].view_as(entries) >= dropped - CHANCES // 2
    return entries * (kept.to(entries.dtype) * (CHANCES / (CHANCES - dropped)))
