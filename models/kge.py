"""Knowledge-graph embeddings: scores of a head, a relation and a tail, each a vector, and the ranks of true triples by
them. A higher score means more likely. Tensors only, which know no names.

Filtered ranks (Bordes et al. 2013) say where the true head and the true tail of a triple stand among all entities that
do not make another true triple. Entities with the same score share their mean rank, PyKEEN's "realistic" rank."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import embedding

from mitigate.models.stored_tensors import CONFIG, WEIGHTS, read, read_facts, write_facts

SHORTEST = 1e-12  # squared distance: the square root has no gradient at 0


class DotProduct(ABC):
    """The dot product of the head, transformed by the relation, with the tail (Lerer et al. 2019, PyTorch-BigGraph).

    Heads, relations and tails are vectors, (n, dimension) each, and so are m candidates. The score is linear in the
    head too: head . transform_tails(relation, tail) + offset. So `transform_tails` is its gradient by the head."""

    @abstractmethod
    def transform_heads(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The transformed heads, which tails are compared with, (n, dimension)."""

    @abstractmethod
    def transform_tails(self, relations: Tensor, tails: Tensor) -> Tensor:
        """The tails, transformed so that heads are compared with them, (n, dimension)."""

    def offset(self, relations: Tensor, tails: Tensor) -> Tensor:
        """The score of a head of zeros, (n,)."""
        return tails.new_zeros(tails.shape[:-1])

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The scores of n triples, (n,)."""
        return (self.transform_heads(heads, relations) * tails).sum(-1)

    def score_tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        """The scores of each head and relation with each candidate as the tail, (n, m)."""
        return self.transform_heads(heads, relations) @ candidates.T

    def score_heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        """The scores of each relation and tail with each candidate as the head, (n, m)."""
        return self.transform_tails(relations, tails) @ candidates.T + self.offset(relations, tails)[:, None]


class TransE(DotProduct):
    """TransE (Bordes et al. 2013), a relation is a translation: (head + relation) . tail, as section 2.2 of the
    paper on bias in knowledge-graph embeddings scores it, with the dot product for similarity."""

    def transform_heads(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads + relations

    def transform_tails(self, relations: Tensor, tails: Tensor) -> Tensor:
        return tails

    def offset(self, relations: Tensor, tails: Tensor) -> Tensor:
        return (relations * tails).sum(-1)


class DistMult(DotProduct):
    """DistMult (Yang et al. 2015), sum of head * relation * tail: a relation scales each dimension. It is symmetric."""

    def transform_heads(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads * relations

    def transform_tails(self, relations: Tensor, tails: Tensor) -> Tensor:
        return relations * tails


class ComplEx(DotProduct):
    """ComplEx (Trouillon et al. 2016), Re(sum of head * relation * conjugate of tail) in complex numbers.

    Of a vector's numbers the first half are the real parts and the second half the imaginary ones, so the dimension is
    even, and the score is the dot product of head * relation with the tail."""

    def transform_heads(self, heads: Tensor, relations: Tensor) -> Tensor:
        return product(heads, relations)

    def transform_tails(self, relations: Tensor, tails: Tensor) -> Tensor:
        return product(conjugate(relations), tails)


class TransEL2:
    """- || head + relation - tail ||, the Euclidean distance of the original TransE. Methods as those of DotProduct."""

    def transform_heads(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads + relations

    def transform_tails(self, relations: Tensor, tails: Tensor) -> Tensor:
        return tails - relations

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return -(self.transform_heads(heads, relations) - tails).square().sum(-1).clamp_min(SHORTEST).sqrt()

    def score_tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        return -distances(self.transform_heads(heads, relations), candidates)

    def score_heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        return -distances(self.transform_tails(relations, tails), candidates)


class RotatE(TransEL2):
    """RotatE (Sun et al. 2019), - || head * relation - tail || in complex numbers (as ComplEx's), the relation's
    divided by their moduli: a relation turns each dimension by an angle, which keeps distances."""

    def transform_heads(self, heads: Tensor, relations: Tensor) -> Tensor:
        return product(heads, relations / torch.cat([moduli(relations)] * 2, -1))

    def transform_tails(self, relations: Tensor, tails: Tensor) -> Tensor:
        return self.transform_heads(tails, conjugate(relations))


def distances(points: Tensor, candidates: Tensor) -> Tensor:
    """The distances between all points (n, dimension) and candidates (m, dimension), (n, m). They are computed by a
    matrix product, since the differences themselves would be n * m * dimension numbers."""
    lengths = points.square().sum(-1)[:, None] + candidates.square().sum(-1)
    return torch.addmm(lengths, points, candidates.T, alpha=-2).clamp_min(SHORTEST).sqrt()


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of complex numbers, (n, dimension) each."""
    a, b = left.chunk(2, -1)
    c, d = right.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def conjugate(vectors: Tensor) -> Tensor:
    """The conjugates of complex numbers, (n, dimension)."""
    real, imaginary = vectors.chunk(2, -1)
    return torch.cat([real, -imaginary], -1)


def moduli(vectors: Tensor) -> Tensor:
    """The moduli of complex numbers, (n, dimension / 2), at least 1e-12, since the square root has no gradient at 0."""
    real, imaginary = vectors.chunk(2, -1)
    return (real.square() + imaginary.square()).clamp_min(1e-24).sqrt()


KINDS: dict[str, type[DotProduct | TransEL2]] = {
    "transe": TransE,
    "complex": ComplEx,
    "distmult": DistMult,
    "rotate": RotatE,
    "transe_l2": TransEL2,
}
COMPLEX = ("complex", "rotate")


class Embeddings(nn.Module):
    """Vectors of entities and relations, and their scores. Entities and relations are given as numbers, int64.

    Raises ValueError for a kind that is not in KINDS, or an odd dimension of complex vectors."""

    def __init__(self, kind: str, entities: int, relations: int, dimension: int, init: float = 1e-3) -> None:
        """init: standard deviation of the numbers that training starts from."""
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; allowed: {', '.join(KINDS)}")
        if kind in COMPLEX and dimension % 2:
            raise ValueError(f"dimension={dimension} must be even: complex numbers have two parts")
        self.facts = {"kind": kind, "entities": entities, "relations": relations, "dimension": dimension}
        self.interaction = KINDS[kind]()
        self.entities = nn.Parameter(torch.randn(entities, dimension) * init)
        self.relations = nn.Parameter(torch.randn(relations, dimension) * init)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The scores of n heads and relations with each entity as the tail, (n, entities)."""
        return self.interaction.score_tails(self.entity_vectors(heads), self.relation_vectors(relations), self.entities)

    def score_heads(self, relations: Tensor, tails: Tensor) -> Tensor:
        """The scores of n relations and tails with each entity as the head, (n, entities)."""
        return self.interaction.score_heads(self.relation_vectors(relations), self.entity_vectors(tails), self.entities)

    def score_with_candidates(self, triples: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The scores (n,) of triples (n, 3), and those with each of the candidates (m,) as the tail and as the head,
        (n, m) each. The embeddings are looked up once, since each lookup makes a gradient of all vectors."""
        size = len(triples)
        vectors = self.entity_vectors(torch.cat([triples[:, 0], triples[:, 2], candidates]))  # (2 n + m, dimension)
        heads, tails, others = vectors.split([size, size, len(candidates)])
        relations = self.relation_vectors(triples[:, 1])  # (n, dimension)
        by_tail = self.interaction.score_tails(heads, relations, others)  # (n, m)
        by_head = self.interaction.score_heads(relations, tails, others)  # (n, m)
        return self.interaction.score(heads, relations, tails), by_tail, by_head

    def moduli(self, vectors: Tensor) -> Tensor:
        """The absolute value of each component: (n, dimension), or (n, dimension / 2) of complex vectors."""
        return moduli(vectors) if self.facts["kind"] in COMPLEX else vectors.abs()

    def entity_vectors(self, entities: Tensor) -> Tensor:
        """The vectors of n entities, (n, dimension)."""
        return embedding(entities, self.entities)  # an index would do, with a slower gradient on CPUs

    def relation_vectors(self, relations: Tensor) -> Tensor:
        """The vectors of n relations, (n, dimension)."""
        return embedding(relations, self.relations)

    def save(self, folder: Path) -> None:
        """Write the vectors and the facts that loading needs. The names of entities and relations are not written."""
        write_facts(folder / CONFIG, self.facts)
        save_file({name: value.detach().cpu() for name, value in self.named_parameters()}, folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> "Embeddings":
        """The model of a folder. Raises OSError and ValueError for files that are absent or damaged."""
        network = cls(**read_facts(folder / CONFIG))
        network.load_state_dict(read(folder / WEIGHTS))
        return network.eval()


CELLS = 2**24  # scores held at a time: 64 MiB


@torch.inference_mode()
def filtered_ranks(
    network: Any, triples: Tensor, known: Tensor, num_entities: int, *, cells: int = CELLS
) -> tuple[Tensor, Tensor]:
    """The rank of the true head and of the true tail of each triple, (n,) float64 each; 1 is best.

    network: Embeddings, or another with its methods score_heads and score_tails. triples: (n, 3) head, relation, tail,
    int64; known: (m, 3) all true triples, those of training, validation and testing as a rule. Both on the network's
    device. cells: the most scores held at a time. Raises FloatingPointError when a score is not a finite number."""
    scale = int(max(triples[:, 1].max(), known[:, 1].max())) + 1  # makes one number of an entity and a relation
    both_ranks = []
    for given, predicted in ((2, 0), (0, 2)):  # columns: heads are predicted from tails, and tails from heads
        keys = triples[:, given] * scale + triples[:, 1]  # (n,) the query of each triple
        known_keys, order = (known[:, given] * scale + known[:, 1]).sort()  # (m,)
        answers, targets = known[order, predicted], triples[:, predicted]  # (m,), (n,)
        ranks = torch.empty(len(keys), dtype=torch.float64, device=keys.device)
        for chosen in keys.argsort().split(max(1, cells // num_entities)):  # the triples of a query stand together
            queries, query = keys[chosen].unique(return_inverse=True)  # (queries,), and for each triple its place there
            heads, relations, tails = triples[torch.empty_like(queries).scatter_(0, query, chosen)].T  # of one triple
            scores = network.score_heads(relations, tails) if given == 2 else network.score_tails(heads, relations)
            target_scores = scores[query, targets[chosen]]  # (chosen,) of scores (queries, entities)
            if not scores.sum(1).isfinite().all():  # a pass of its own over all cells would take a quarter of the time
                raise FloatingPointError("a score is not a finite number")
            # Leave out the known answers of each query: those from `start` in `answers`, `count` of them.
            start = torch.searchsorted(known_keys, queries)
            count = torch.searchsorted(known_keys, queries, right=True) - start
            row = torch.arange(len(queries), device=keys.device).repeat_interleave(count)
            within = torch.arange(len(row), device=keys.device) - (count.cumsum(0) - count)[row]
            scores[row, answers[start[row] + within]] = -torch.inf
            scores[query, targets[chosen]] = -torch.inf
            # 1 for a score above the target's, 0 for an equal one, -1 for one below, and so for those left out. The sum
            # is exact for up to 2**24 entities.
            signs = scores[query].sub_(target_scores[:, None]).sign_().sum(1)
            ranks[chosen] = 1 + (scores.shape[1] + signs.double()) / 2
        both_ranks.append(ranks)
    return both_ranks[0], both_ranks[1]
