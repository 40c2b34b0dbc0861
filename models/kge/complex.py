"""ComplEx (Trouillon et al. 2016): Re(sum of head * relation * conjugate of tail), in complex numbers.

Of a vector's numbers the first half are the real parts and the second half the imaginary ones, so that the score is the
dot product of the transformed head, head * relation, with the tail, as in section 2.2 of the paper on bias."""

import torch
from torch import Tensor

from models.kge.interaction import DotProduct


class ComplEx(DotProduct):
    """A relation turns and scales each complex dimension. The dimension, of real numbers, must be even."""

    def transform(self, heads: Tensor, relations: Tensor) -> Tensor:
        return product(heads, relations)

    def weight(self, relations: Tensor, tails: Tensor) -> Tensor:
        real, imaginary = relations.chunk(2, -1)
        return product(torch.cat([real, -imaginary], -1), tails)

    def moduli(self, vectors: Tensor) -> Tensor:
        return moduli(vectors)


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of complex numbers, (n, dimension) each."""
    a, b = left.chunk(2, -1)
    c, d = right.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def moduli(vectors: Tensor) -> Tensor:
    """The moduli of complex numbers, (n, dimension / 2), at least 1e-12, since the square root has no gradient at 0."""
    real, imaginary = vectors.chunk(2, -1)
    return (real.square() + imaginary.square()).clamp_min(1e-24).sqrt()
