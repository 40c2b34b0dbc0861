"""TransE (Bordes et al. 2013): a relation is a translation. Several ways to compare where it leads with the tail."""

import torch
from torch import Tensor

from models.kge.interaction import DotProduct

SMALLEST = 1e-12  # squared distance: the square root has no gradient at 0


class TransE(DotProduct):
    """(head + relation) . tail, as the paper on bias in knowledge-graph embeddings scores it: section 2.2, with the
    transformation of TransE and the dot product for similarity."""

    def transform(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads + relations

    def weight(self, relations: Tensor, tails: Tensor) -> Tensor:
        return tails

    def offset(self, relations: Tensor, tails: Tensor) -> Tensor:
        return (relations * tails).sum(-1)


class TransEL2:
    """- || head + relation - tail ||, the Euclidean distance of the original."""

    def move(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Where a relation leads from each head, (n, dimension)."""
        return heads + relations

    def move_back(self, tails: Tensor, relations: Tensor) -> Tensor:
        """Where a relation leads from to each tail, (n, dimension)."""
        return tails - relations

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return -(self.move(heads, relations) - tails).square().sum(-1).clamp_min(SMALLEST).sqrt()

    def tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        return -_distances(self.move(heads, relations), candidates)

    def heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        return -_distances(self.move_back(tails, relations), candidates)

    def moduli(self, vectors: Tensor) -> Tensor:
        return vectors.abs()


class TransEL1(TransEL2):
    """- | head + relation - tail |, the sum of absolute differences, the other distance of the original."""

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return -(self.move(heads, relations) - tails).abs().sum(-1)

    def tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        return -torch.cdist(self.move(heads, relations), candidates, p=1)

    def heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        return -torch.cdist(self.move_back(tails, relations), candidates, p=1)


def _distances(points: Tensor, candidates: Tensor) -> Tensor:
    """The distances between all points (n, dimension) and candidates (m, dimension), (n, m). They are computed by a
    matrix product, since the differences themselves would be n * m * dimension numbers."""
    lengths = points.square().sum(-1)[:, None] + candidates.square().sum(-1)
    return torch.addmm(lengths, points, candidates.T, alpha=-2).clamp_min(SMALLEST).sqrt()
