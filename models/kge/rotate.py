"""RotatE (Sun et al. 2019): a relation turns each complex dimension by an angle."""

import torch
from torch import Tensor

from models.kge.complex import moduli, product
from models.kge.transe import TransEL2


class RotatE(TransEL2):
    """- || head * relation - tail || in complex numbers, the relation's divided by their moduli. Of a vector's numbers
    the first half are the real parts and the second half the imaginary ones; the dimension must be even.

    A rotation keeps distances, so that a head is compared with the tail turned back."""

    def move(self, heads: Tensor, relations: Tensor) -> Tensor:
        return product(heads, _unit(relations))

    def move_back(self, tails: Tensor, relations: Tensor) -> Tensor:
        real, imaginary = _unit(relations).chunk(2, -1)
        return product(tails, torch.cat([real, -imaginary], -1))

    def moduli(self, vectors: Tensor) -> Tensor:
        return moduli(vectors)


def _unit(relations: Tensor) -> Tensor:
    sizes = moduli(relations)
    return relations / torch.cat([sizes, sizes], -1)
