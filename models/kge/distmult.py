"""DistMult (Yang et al. 2015): sum of head * relation * tail. The score does not tell head from tail."""

from torch import Tensor

from models.kge.interaction import DotProduct


class DistMult(DotProduct):
    """A relation scales each dimension."""

    def transform(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads * relations

    def weight(self, relations: Tensor, tails: Tensor) -> Tensor:
        return relations * tails
