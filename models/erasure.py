"""Least-squares concept erasure (LEACE, Belrose et al. 2023): the smallest change of hidden states after which no
linear classifier tells classes apart better than one that always says the same.

Theorem 4.3: r(x) = x - W⁺ P W (x - E[x]), where W is the pseudoinverse of the square root of the covariance of x, and P
projects onto the columns of W Cov(x, z), z the classes one-hot. It takes away fewer directions than there are classes.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from models.beam import NextTokens
from models.comet import Comet
from models.decoder import Decoder
from models.steered import Steered
from models.top_tokens import TopTokens

SMALLEST = 1e-9
"""Share of the largest variance below which a direction does not vary, and correlation below which one has nothing to
do with the classes: less than this are errors of rounding."""


class Eraser(NamedTuple):
    """r(x) = x - left right (x - mean)."""

    mean: Tensor  # (width,)
    left: Tensor  # (width, rank)
    right: Tensor  # (rank, width)

    def __call__(self, hidden: Tensor) -> Tensor:  # (rows, width) -> (rows, width)
        return hidden - (hidden - self.mean) @ self.right.T @ self.left.T


class Moments:
    """Sums over hidden states of known classes, in float64: all that an eraser is made from."""

    def __init__(self, width: int, classes: int) -> None:
        self.counts = torch.zeros(classes, dtype=torch.float64)
        self.sums = torch.zeros(width, classes, dtype=torch.float64)
        self.squares = torch.zeros(width, width, dtype=torch.float64)

    def add(self, hidden: Tensor, classes: Tensor) -> None:
        """hidden (n, width), classes (n,) from 0."""
        hidden = hidden.double().cpu()
        of_class = torch.nn.functional.one_hot(classes, len(self.counts)).double()
        self.counts += of_class.sum(0)
        self.sums += hidden.T @ of_class
        self.squares += hidden.T @ hidden

    def eraser(self) -> Eraser:
        """The eraser in float64. Raises ValueError where fewer than two classes were added."""
        if (self.counts > 0).sum() < 2:
            raise ValueError(
                f"hidden states of {int((self.counts > 0).sum())} class: at least two are to be made alike"
            )
        total = self.counts.sum()
        mean = self.sums.sum(1) / total
        covariance = self.squares / total - mean[:, None] * mean
        with_classes = self.sums / total - mean[:, None] * (self.counts / total)  # Cov(x, z)
        values, vectors = torch.linalg.eigh(covariance)
        varies = values > SMALLEST * values.max()
        values, vectors = values[varies].sqrt(), vectors[:, varies]
        whiten, colour = (vectors / values) @ vectors.T, (vectors * values) @ vectors.T  # W and its pseudoinverse
        directions, sizes, _ = torch.linalg.svd(whiten @ with_classes, full_matrices=False)
        directions = directions[:, sizes > SMALLEST]
        return Eraser(mean, colour @ directions, directions.T @ whiten)


class Erased(Steered):
    """A COMeT whose last hidden states, from which words are predicted, pass through an eraser."""

    def __init__(self, comet: Comet, eraser: Eraser) -> None:
        super().__init__(comet)
        for name, tensor in eraser._asdict().items():
            self.register_buffer(name, tensor.to(comet.decoder.words.weight))

    @property
    def eraser(self) -> Eraser:
        """The map that hidden states pass through."""
        return Eraser(*(self.get_buffer(name) for name in Eraser._fields))

    def head(self, decoder: Decoder, rows: int) -> NextTokens:
        """The function that proposes next tokens."""
        top_tokens, eraser = TopTokens(decoder, rows), self.eraser
        return lambda hidden, count: top_tokens(eraser(hidden), count)

    def logits(self, hidden: Tensor) -> Tensor:
        """The logits of all words after erasure of the hidden states."""
        return self.comet.decoder.logits(self.eraser(hidden))
