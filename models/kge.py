"""Knowledge-graph embeddings: scores of a head, a relation and a tail, each a vector, and the ranks of true triples by
them. A higher score means more likely. Tensors only, which know no names.

Filtered ranks (Bordes et al. 2013) say where the true head and the true tail of a triple stand among all entities that
do not make another true triple. Entities with the same score share their mean rank, PyKEEN's "realistic" rank."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import embedding

from models.stored_tensors import read_facts, write_facts


class DotProduct(ABC):
    """An interaction that transforms the head by the relation, then takes the dot product with the tail (Lerer et al.
    2019, PyTorch-BigGraph). Such a score is linear in the head too: score = head . weight(relation, tail) + offset.

    Heads, relations and tails are vectors, (n, dimension) each, and so are m candidates."""

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
        """The scores of n triples, (n,)."""
        return (self.transform(heads, relations) * tails).sum(-1)

    def tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        """The scores of each head and relation with each candidate as the tail, (n, m)."""
        return self.transform(heads, relations) @ candidates.T

    def heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        """The scores of each relation and tail with each candidate as the head, (n, m)."""
        return self.weight(relations, tails) @ candidates.T + self.offset(relations, tails)[:, None]


SHORTEST = 1e-12  # squared distance: the square root has no gradient at 0


class TransE(DotProduct):
    """TransE (Bordes et al. 2013), a relation is a translation: (head + relation) . tail, as section 2.2 of the
    paper on bias in knowledge-graph embeddings scores it, with the dot product for similarity."""

    def transform(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads + relations

    def weight(self, relations: Tensor, tails: Tensor) -> Tensor:
        return tails

    def offset(self, relations: Tensor, tails: Tensor) -> Tensor:
        return (relations * tails).sum(-1)


class TransEL2:
    """- || head + relation - tail ||, the Euclidean distance of the original. Methods as those of DotProduct."""

    def move(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Where a relation leads from each head, (n, dimension)."""
        return heads + relations

    def move_back(self, tails: Tensor, relations: Tensor) -> Tensor:
        """Where a relation leads from to each tail, (n, dimension)."""
        return tails - relations

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return -(self.move(heads, relations) - tails).square().sum(-1).clamp_min(SHORTEST).sqrt()

    def tails(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        return -_distances(self.move(heads, relations), candidates)

    def heads(self, relations: Tensor, tails: Tensor, candidates: Tensor) -> Tensor:
        return -_distances(self.move_back(tails, relations), candidates)


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
    return torch.addmm(lengths, points, candidates.T, alpha=-2).clamp_min(SHORTEST).sqrt()


class DistMult(DotProduct):
    """DistMult (Yang et al. 2015), sum of head * relation * tail: a relation scales each dimension. The score does not
    tell head from tail."""

    def transform(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads * relations

    def weight(self, relations: Tensor, tails: Tensor) -> Tensor:
        return relations * tails


class ComplEx(DotProduct):
    """ComplEx (Trouillon et al. 2016), Re(sum of head * relation * conjugate of tail) in complex numbers.

    Of a vector's numbers the first half are the real parts and the second half the imaginary ones, so the dimension is
    even, and the score is the dot product of head * relation with the tail."""

    def transform(self, heads: Tensor, relations: Tensor) -> Tensor:
        return product(heads, relations)

    def weight(self, relations: Tensor, tails: Tensor) -> Tensor:
        real, imaginary = relations.chunk(2, -1)
        return product(torch.cat([real, -imaginary], -1), tails)


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of complex numbers, (n, dimension) each."""
    a, b = left.chunk(2, -1)
    c, d = right.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def moduli(vectors: Tensor) -> Tensor:
    """The moduli of complex numbers, (n, dimension / 2), at least 1e-12, since the square root has no gradient at 0."""
    real, imaginary = vectors.chunk(2, -1)
    return (real.square() + imaginary.square()).clamp_min(1e-24).sqrt()


class RotatE(TransEL2):
    """RotatE (Sun et al. 2019), - || head * relation - tail || in complex numbers (as ComplEx's), the relation's
    divided by their moduli: a relation turns each dimension by an angle.

    A rotation keeps distances, so that a head is compared with the tail turned back."""

    def move(self, heads: Tensor, relations: Tensor) -> Tensor:
        return product(heads, _unit(relations))

    def move_back(self, tails: Tensor, relations: Tensor) -> Tensor:
        real, imaginary = _unit(relations).chunk(2, -1)
        return product(tails, torch.cat([real, -imaginary], -1))


def _unit(relations: Tensor) -> Tensor:
    sizes = moduli(relations)
    return relations / torch.cat([sizes, sizes], -1)


CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Kind(NamedTuple):
    """A kind of model."""

    interaction: Any
    reciprocal: bool  # whether heads are predicted as tails of a second, reversed relation (Lacroix et al. 2018)


KINDS = {
    "transe": Kind(TransE, False),
    "complex": Kind(ComplEx, False),
    "transe_l2": Kind(TransEL2, False),
    "distmult": Kind(DistMult, False),
    "complex_n3": Kind(ComplEx, True),
    "rotate": Kind(RotatE, False),
    "transe_l1": Kind(TransEL1, False),
}
COMPLEX = (ComplEx, RotatE)


class Embeddings(nn.Module):
    """Vectors of entities and relations, and their scores. Entities and relations are given as numbers, int64.

    Raises ValueError for a kind that is not in KINDS, or an odd dimension of complex vectors."""

    def __init__(self, kind: str, entities: int, relations: int, dimension: int, init: float = 1e-3) -> None:
        """init: standard deviation of the numbers that training starts from."""
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; allowed: {', '.join(KINDS)}")
        if KINDS[kind].interaction in COMPLEX and dimension % 2:
            raise ValueError(f"dimension={dimension} must be even: complex numbers have two parts")
        self.facts = {"kind": kind, "entities": entities, "relations": relations, "dimension": dimension}
        self.interaction: DotProduct | TransEL2 = KINDS[kind].interaction()
        self.reciprocal = KINDS[kind].reciprocal
        self.num_relations = relations
        self.entities = nn.Parameter(torch.randn(entities, dimension) * init)
        self.relations = nn.Parameter(torch.randn(relations * (1 + self.reciprocal), dimension) * init)

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The scores of n triples, (n,)."""
        return self.interaction.score(self.of(heads), self.of_relations(relations), self.of(tails))

    def tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The scores of n heads and relations with each entity as the tail, (n, entities)."""
        return self.interaction.tails(self.of(heads), self.of_relations(relations), self.entities)

    def heads(self, relations: Tensor, tails: Tensor) -> Tensor:
        """The scores of n relations and tails with each entity as the head, (n, entities)."""
        if self.reciprocal:
            return self.tails(tails, self.reversed(relations))
        return self.interaction.heads(self.of_relations(relations), self.of(tails), self.entities)

    def beside(self, triples: Tensor, candidates: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The scores of n triples (n, 3) beside those of candidates: the score as `tails` gives it, (n,), and the
        scores with each of m candidates as the tail, (n, m); then the same of heads. Each vector is read once: a
        gradient of all vectors is made for each reading."""
        size = len(triples)
        vectors = self.of(torch.cat([triples[:, 0], triples[:, 2], candidates]))
        heads, tails, others = vectors.split([size, size, len(candidates)])
        relations = self.of_relations(triples[:, 1])
        score = self.interaction.score(heads, relations, tails)
        by_tail = score, self.interaction.tails(heads, relations, others)
        if not self.reciprocal:
            return by_tail, (score, self.interaction.heads(relations, tails, others))
        relations = self.of_relations(self.reversed(triples[:, 1]))
        return by_tail, (
            self.interaction.score(tails, relations, heads),
            self.interaction.tails(tails, relations, others),
        )

    def moduli(self, vectors: Tensor) -> Tensor:
        """The absolute value of each component: (n, dimension), or (n, dimension / 2) of complex vectors."""
        return moduli(vectors) if isinstance(self.interaction, COMPLEX) else vectors.abs()

    def of(self, entities: Tensor) -> Tensor:
        """The vectors of n entities, (n, dimension)."""
        return embedding(entities, self.entities)  # an index would do, with a slower gradient on CPUs

    def of_relations(self, relations: Tensor) -> Tensor:
        """The vectors of n relations, (n, dimension)."""
        return embedding(relations, self.relations)

    def reversed(self, relations: Tensor) -> Tensor:
        """The relations by which heads are predicted; those themselves where no others were made for it."""
        return relations + self.num_relations if self.reciprocal else relations

    def save(self, folder: Path) -> None:
        """Write the vectors and the facts that loading needs. The names of entities and relations are not written."""
        write_facts(folder / CONFIG, self.facts)
        save_file({name: value.detach().cpu() for name, value in self.named_parameters()}, folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> "Embeddings":
        """The model of a folder."""
        network = cls(**read_facts(folder / CONFIG))
        network.load_state_dict(load_file(folder / WEIGHTS))
        return network.eval()


Cells = tuple[Tensor, Tensor]  # rows and columns, (k,) int64 each


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


CELLS = 2**24  # scores held at a time: 64 MiB


@torch.inference_mode()
def filtered_ranks(
    network: Any, triples: Tensor, known: Tensor, num_entities: int, *, cells: int = CELLS
) -> tuple[Tensor, Tensor]:
    """The rank of the true head and of the true tail of each triple, (n,) float64 each; 1 is best.

    network: Embeddings, or another with its methods heads and tails. triples: (n, 3) head, relation, tail, int64;
    known: (m, 3) all true triples, those of training, validation and testing as a rule. Both on the network's device.
    Raises FloatingPointError when a score is not a finite number."""
    heads, relations, tails = triples.T
    first, middle, last = known.T
    scale = int(max(relations.max(), middle.max())) + 1  # makes one number of an entity and a relation
    size = max(1, cells // num_entities)

    def of_heads(chosen: Tensor) -> Tensor:
        return network.heads(relations[chosen], tails[chosen])

    def of_tails(chosen: Tensor) -> Tensor:
        return network.tails(heads[chosen], relations[chosen])

    return (
        _ranks(of_heads, tails * scale + relations, heads, last * scale + middle, first, size),
        _ranks(of_tails, heads * scale + relations, tails, first * scale + middle, last, size),
    )


def _ranks(
    scores_of: Callable[[Tensor], Tensor], keys: Tensor, targets: Tensor, known: Tensor, answers: Tensor, size: int
) -> Tensor:
    """The rank of each target, (n,). scores_of(k triples) scores all entities for the query of each, (k, entities);
    keys (n,): the number of each triple's query; known (m,), answers (m,): queries with their true answers."""
    known, order = known.sort()
    answers = answers[order]
    ranks = torch.empty(len(keys), dtype=torch.float64, device=keys.device)
    for chosen in keys.argsort().split(size):  # triples of one query stand together: it is scored once
        distinct, place = keys[chosen].unique(return_inverse=True)
        one = torch.empty_like(distinct).scatter_(0, place, chosen)  # a triple of each query
        scores = scores_of(one).float()
        target = scores[place, targets[chosen]]
        if not scores.sum(1).isfinite().all():  # a pass of its own over all cells would take a quarter of the time
            raise FloatingPointError("a score is not a finite number")
        rows, places = places_of(distinct, known)
        scores[rows, answers[places]] = -torch.inf
        scores[place, targets[chosen]] = -torch.inf  # counted as the first of its equals below
        # 1 for a score above, 0 for an equal one, -1 for one below: the sum is exact for up to 2**24 entities.
        signs = scores[place].sub_(target[:, None]).sign_().sum(1)
        ranks[chosen] = 1 + (scores.shape[1] + signs.double()) / 2
    return ranks
