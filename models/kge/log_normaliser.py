"""The normaliser of a softmax over many candidates, in fewer passes over the scores than autograd takes."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SMALLEST = 1e-30  # sum of weights: keeps its inverse finite where all candidates are far below one that is left out
Cells = tuple[Tensor, Tensor]  # rows and columns, (k,) int64 each


def normalise(scores: Tensor, left_out: Cells | None = None, picked: Cells | None = None) -> tuple[Tensor, Tensor]:
    """The logarithm of each row's sum of exponentials, (n,), and the scores of the picked cells, (k,).

    scores: (n, m) float32; left_out: cells that are no candidates. The gradient can be taken once."""
    return _Normalise.apply(scores, left_out, picked)  # type: ignore[no-untyped-call,no-any-return]


def matches(own: Tensor, drawn: Tensor) -> Cells:
    """The cells of a matrix (n, m) at which own (n,) and drawn (m,) are the same number."""
    ordered, order = drawn.sort()
    rows, places = places_of(own, ordered)
    return rows, order[places]


def places_of(own: Tensor, ordered: Tensor) -> Cells:
    """The same where drawn is in ascending order."""
    start = torch.searchsorted(ordered, own)
    count = torch.searchsorted(ordered, own, right=True) - start
    rows = torch.repeat_interleave(torch.arange(len(own), device=own.device), count)
    within = torch.arange(len(rows), device=own.device) - torch.repeat_interleave(count.cumsum(0) - count, count)
    return rows, start[rows] + within


class _Normalise(torch.autograd.Function):
    """The normaliser with a gradient of its own. Autograd would compute the exponential again, in a new matrix, and add
    another matrix for the picked cells."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, left_out: Cells | None, picked: Cells | None) -> tuple[Tensor, Tensor]:
        top = scores.amax(1, keepdim=True)
        weights = (scores - top).exp_()
        if left_out is not None:
            weights[left_out] = 0
        total = weights.sum(1).clamp_min_(SMALLEST)
        ctx.weights, ctx.total, ctx.picked = weights, total, picked
        return top.squeeze(1) + total.log(), scores.new_zeros(0) if picked is None else scores[picked]

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, of_rows: Tensor, of_picked: Tensor) -> tuple[Tensor, None, None]:
        gradient = ctx.weights.mul_((of_rows / ctx.total)[:, None])
        if ctx.picked is not None:
            gradient.index_put_(ctx.picked, of_picked, accumulate=True)
        return gradient, None, None
