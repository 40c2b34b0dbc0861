"""Triples that embeddings are trained and tested on, and changed ones: with permuted attributes, and downsampled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mitigate.load.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Triples:
    """Numbers of head, relation and tail, (n, 3) int64 each."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    num_entities: int
    num_relations: int
    num_added: int = 0  # made-up entities, with the highest numbers, of which no vector is kept

    @property
    def all(self) -> np.ndarray:
        """Triples of all splits."""
        return np.concatenate([self.train, self.valid, self.test])

    @property
    def held_out(self) -> np.ndarray:
        """Validation and test triples."""
        return np.concatenate([self.valid, self.test])


def triples_of(graph: Graph) -> Triples:
    """The triples of a graph."""
    return Triples(graph.train, graph.valid, graph.test, len(graph.entities), len(graph.relations))


def permute_attributes(triples: Triples, relations: Sequence[int], seed: int) -> Triples:
    """Permute the values of attributes among their people, drawn by the seed: all values of one person go to one other
    person, in every split, so that nothing else of the attributes changes."""
    people = np.unique(triples.all[np.isin(triples.all[:, 1], relations), 0])
    other = dict(zip(people.tolist(), np.random.default_rng(seed).permutation(people).tolist(), strict=True))
    changed = {name: getattr(triples, name).copy() for name in ("train", "valid", "test")}
    for split in changed.values():
        chosen = np.isin(split[:, 1], relations)
        split[chosen, 0] = [other[head] for head in split[chosen, 0].tolist()]
    return replace(triples, **changed)


def downsample(
    triples: Triples, occupation: int, professions: np.ndarray, group_a: np.ndarray, group_b: np.ndarray, seed: int
) -> Triples:
    """Drop training triples, drawn by the seed, until the same share of both groups holds each profession.

    professions: entities; group_a, group_b: people of one group only. A profession that one group lacks is dropped for
    the other. Validation and test triples, and people of neither group, stay."""
    rng = np.random.default_rng(seed)
    train = triples.train
    kept = np.ones(len(train), dtype=bool)
    is_held = train[:, 1] == occupation
    for profession in professions.tolist():
        holders = is_held & (train[:, 2] == profession)
        places = [np.flatnonzero(holders & np.isin(train[:, 0], group)) for group in (group_a, group_b)]
        sizes = (len(group_a), len(group_b))
        share = min(len(place) / size for place, size in zip(places, sizes, strict=True))
        for place, size in zip(places, sizes, strict=True):
            too_many = len(place) - round(share * size)
            kept[rng.choice(place, too_many, replace=False)] = False
    return replace(triples, train=train[kept])


def add_people(
    triples: Triples,
    occupation: int,
    professions: np.ndarray,
    groups: Sequence[np.ndarray],
    facts: Sequence[Sequence[tuple[int, int]]],
) -> Triples:
    """Add new people to training until as large a share of one group as of the other holds each profession.

    professions: entities; groups: two, of people; facts: the relations and tails of a new person of either group. A
    profession that nobody of a group has is added too."""
    train, added = triples.train, []
    number = triples.num_entities
    for profession in professions.tolist():
        holders = train[(train[:, 1] == occupation) & (train[:, 2] == profession), 0]
        counts = [int(np.isin(holders, group).sum()) for group in groups]
        share = max(count / len(group) for count, group in zip(counts, groups, strict=True))
        for count, group, own in zip(counts, groups, facts, strict=True):
            for _ in range(round(share * len(group)) - count):
                added += [(number, relation, tail) for relation, tail in (*own, (occupation, profession))]
                number += 1
    rows = np.array(added, dtype=np.int64).reshape(-1, 3)
    num_added = number - triples.num_entities
    return replace(triples, train=np.concatenate([train, rows]), num_entities=number, num_added=num_added)
