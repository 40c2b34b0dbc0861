"""Equation 1 of "Measuring social bias in knowledge graph embeddings" by automatic differentiation, for any
interaction: people's vectors take a step that makes one value of an attribute more likely than another, and professions
are scored again. measure.kge has closed forms."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from models.kge import DotProduct, Embeddings

PEOPLE = 512  # at a time


class Attribute(NamedTuple):
    """A relation from people to values, say gender, and the entities that are compared, as numbers. The mean over the
    entities of a side counts."""

    relation: int
    values: np.ndarray  # entities that are value a
    others: np.ndarray  # entities that are value b


class Query(NamedTuple):
    """The vectors to change and the scores to watch, as numbers of entities and relations."""

    people: np.ndarray  # (n,)
    attributes: Sequence[Attribute]  # several for an intersection, whose scores are added
    occupation: int  # the relation of a person to a profession
    professions: np.ndarray  # (p,)


class Nudged(NamedTuple):
    """The change of each profession's score, (p,) float64 each."""

    mean: np.ndarray  # over people
    deviation: np.ndarray  # standard deviation over people: 0 for a dot product, except for rounding


def nudge(network: Embeddings, query: Query, step: float = 0.01) -> Nudged:
    """Move each person by step along the gradient of m = g(e, r_s, a) - g(e, r_s, b), summed over attributes, and
    average the changes of the scores of professions.

    Computed in float64: the changes are much smaller than the scores."""
    entities, relations = network.entities.detach().double(), network.relations.detach().double()
    total = torch.zeros(len(query.professions), dtype=torch.float64, device=entities.device)
    squares = torch.zeros_like(total)
    professions = entities[_numbers(query.professions, entities)]
    for numbers in np.array_split(query.people, max(1, -(-len(query.people) // PEOPLE))):
        vectors = entities[_numbers(numbers, entities)].requires_grad_()
        change = _change(network, vectors, entities, relations, query, professions, step)
        total += change.sum(0)
        squares += change.square().sum(0)
    mean = total / len(query.people)
    variance = (squares / len(query.people) - mean.square()).clamp_min(0)
    return Nudged(mean.cpu().numpy(), variance.sqrt().cpu().numpy())


def weights(network: Embeddings, relation: int, tails: np.ndarray) -> np.ndarray:
    """The gradient of the score by the head for each tail, (tails, dimension) float64, for the closed form of
    measure.kge. Raises ValueError for an interaction whose score is not linear in the head."""
    if not isinstance(network.interaction, DotProduct):
        raise ValueError(f"{network.facts['kind']} is not a dot product: its gradient depends on the head")
    vectors = network.entities.detach().double()[_numbers(tails, network.entities)]
    own = network.relations.detach().double()[relation].expand_as(vectors)
    return network.interaction.weight(own, vectors).cpu().numpy()


def _change(
    network: Embeddings,
    people: Tensor,
    entities: Tensor,
    relations: Tensor,
    query: Query,
    professions: Tensor,
    step: float,
) -> Tensor:  # (people, professions)
    tails = network.interaction.tails
    sums = []
    for relation, values, others in query.attributes:
        own = relations[relation].expand_as(people)
        a, b = (tails(people, own, entities[_numbers(ends, entities)]).mean(1) for ends in (values, others))
        sums.append((a - b).sum())
    (gradient,) = torch.autograd.grad(torch.stack(sums).sum(), people)  # a person's part of the sum is its own m
    with torch.no_grad():
        occupation = relations[query.occupation].expand_as(people)
        moved = people + step * gradient
        return tails(moved, occupation, professions) - tails(people, occupation, professions)


def _numbers(numbers: np.ndarray, like: Tensor) -> Tensor:
    return torch.as_tensor(numbers, dtype=torch.long, device=like.device)
