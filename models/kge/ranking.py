"""Filtered ranks (Bordes et al. 2013): where the true head and the true tail of a triple stand among all entities that
do not make another true triple. Entities with the same score share their mean rank, PyKEEN's "realistic" rank."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from models.kge.log_normaliser import places_of

CELLS = 2**24  # scores held at a time: 64 MiB


class Scores(Protocol):
    """A model that scores candidates: models.kge.embeddings."""

    def tails(self, heads: Tensor, relations: Tensor) -> Tensor: ...

    def heads(self, relations: Tensor, tails: Tensor) -> Tensor: ...


class Answers(NamedTuple):
    """The true answers of each query, a pair of numbers, sorted by query."""

    keys: Tensor  # (answers,) a query's number, ascending
    entities: Tensor  # (answers,)


@torch.inference_mode()
def filtered_ranks(
    network: Scores, triples: Tensor, known: Tensor, num_entities: int, *, cells: int = CELLS
) -> tuple[Tensor, Tensor]:
    """The rank of the true head and of the true tail of each triple, (n,) float64 each; 1 is best.

    triples: (n, 3) head, relation, tail, int64; known: (m, 3) all true triples, those of training, validation and
    testing as a rule. Both on the network's device. Raises FloatingPointError when a score is not a finite number."""
    heads, relations, tails = triples.T
    first, middle, last = known.T
    scale = int(max(triples[:, 1].max(), known[:, 1].max())) + 1  # makes one number of an entity and a relation
    size = max(1, cells // num_entities)
    of_heads = _ranks(
        lambda chosen: network.heads(relations[chosen], tails[chosen]),
        tails * scale + relations,
        heads,
        _answers(last * scale + middle, first),
        size,
    )
    of_tails = _ranks(
        lambda chosen: network.tails(heads[chosen], relations[chosen]),
        heads * scale + relations,
        tails,
        _answers(first * scale + middle, last),
        size,
    )
    return of_heads, of_tails


def _answers(keys: Tensor, entities: Tensor) -> Answers:
    order = keys.argsort()
    return Answers(keys[order], entities[order])


def _ranks(scores_of: Callable[[Tensor], Tensor], keys: Tensor, targets: Tensor, answers: Answers, size: int) -> Tensor:
    """The rank of each target, (n,). scores_of(k triples) scores all entities for the query of each, (k, entities);
    keys: the number of each triple's query."""
    ranks = torch.empty(len(keys), dtype=torch.float64, device=keys.device)
    for chosen in keys.argsort().split(size):  # triples of one query stand together: it is scored once
        distinct, place = keys[chosen].unique(return_inverse=True)
        one = torch.empty_like(distinct).scatter_(0, place, chosen)  # a triple of each query
        scores = scores_of(one).float()
        target = scores[place, targets[chosen]]
        if not scores.sum(1).isfinite().all():  # a pass of its own over all cells would take a quarter of the time
            raise FloatingPointError("a score is not a finite number")
        rows, places = places_of(distinct, answers.keys)
        scores[rows, answers.entities[places]] = -torch.inf
        scores[place, targets[chosen]] = -torch.inf  # counted as the first of its equals below
        # 1 for a score above, 0 for an equal one, -1 for one below: the sum is exact for up to 2**24 entities.
        signs = scores[place].sub_(target[:, None]).sign_().sum(1)
        ranks[chosen] = 1 + (scores.shape[1] + signs.double()) / 2
    return ranks
