"""The base of all interactions: from the vectors of triples to scores. A higher score means more likely."""

from abc import ABC, abstractmethod
from typing import Protocol

from torch import Tensor


class Interaction(Protocol):
    """Scores of triples whose heads, relations and tails are vectors, (n, dimension) each."""

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The scores of n triples, (n,)."""
        ...

    def tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        """The scores of each head and relation with each of m candidates (m, dimension) as the tail, (n, m)."""
        ...

    def heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        """The scores of each relation and tail with each of m candidates as the head, (n, m)."""
        ...

    def moduli(self, vectors: Tensor) -> Tensor:
        """The absolute value of each component: (n, dimension), or (n, dimension / 2) of complex vectors."""
        ...


class DotProduct(ABC):
    """An interaction that transforms the head by the relation, then takes the dot product with the tail (Lerer et al.
    2019, PyTorch-BigGraph). Such a score is linear in the head too: score = head . weight(relation, tail) + offset."""

    @abstractmethod
    def transform(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The transformed heads, (n, dimension)."""

    @abstractmethod
    def weight(self, relations: Tensor, tails: Tensor) -> Tensor:
        """The gradient of the score by the head, which is the same at every head, (n, dimension)."""

    def offset(self, relations: Tensor, tails: Tensor) -> Tensor:
        """The score of a head of zeros, (n,)."""
        return tails.new_zeros(tails.shape[:-1])

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self.transform(heads, relations) * tails).sum(-1)

    def tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        return self.transform(heads, relations) @ candidates.T

    def heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        return self.weight(relations, tails) @ candidates.T + self.offset(relations, tails)[:, None]

    def moduli(self, vectors: Tensor) -> Tensor:
        return vectors.abs()
