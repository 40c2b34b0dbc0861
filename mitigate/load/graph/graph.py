"""A knowledge graph as numbers, as all loaders of graphs return it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mitigate.errors import MitigateError, did_you_mean
from mitigate.words.outside_text import counted

SPLITS = ("train", "valid", "test")
Triple = tuple[str, str, str]  # head, relation, tail


@dataclass(frozen=True)
class Graph:
    """A knowledge graph. Triples are (n, 3) int64: the numbers of head, relation and tail."""

    entities: tuple[str, ...]  # ids, sorted; the number of an entity is its place
    relations: tuple[str, ...]  # likewise
    entity_names: tuple[str, ...]  # in the order of entities; the id where there is no name
    relation_names: tuple[str, ...]
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    notices: tuple[str, ...] = ()  # a sentence for each oddity of the files

    def entities_called(self, name: str) -> np.ndarray:
        """The numbers of all entities of this name (case does not matter), or the one of this id; int64.

        Several ids may have one name. Raises MitigateError when there is none."""
        return _called(name, self.entities, self.entity_names, "entity")

    def relations_called(self, name: str) -> np.ndarray:
        """The numbers of all relations of this name, or the one of this id, as entities_called."""
        return _called(name, self.relations, self.relation_names, "relation")


def _called(name: str, ids: Sequence[str], names: Sequence[str], what: str) -> np.ndarray:
    if name in ids:
        return np.array([ids.index(name)])
    wanted = name.casefold()
    found = [number for number, known in enumerate(names) if known.casefold() == wanted]
    if not found:
        near = did_you_mean(name, names)
        raise MitigateError(f"unknown {what} {name!r}; allowed: names and ids of the graph{near}")
    return np.array(found)


def build(
    splits: Mapping[str, Sequence[Triple]],
    entity_names: Mapping[str, str],
    relation_names: Mapping[str, str],
    notices: Sequence[str] = (),
) -> Graph:
    """The graph of the triples of each split, with notices of triples that splits share and of ids without a name.

    A validation or test triple that an earlier split has too is left out: it would be ranked after training on it.
    Entities that training triples lack stay, as in the published figures of FB15k-237."""
    kept, told = _distinct(splits)
    everything = [triple for split in SPLITS for triple in kept[split]]
    entities = tuple(sorted({triple[0] for triple in everything} | {triple[2] for triple in everything}))
    relations = tuple(sorted({triple[1] for triple in everything}))
    entity, relation = _numbers(entities), _numbers(relations)
    numbered = {
        split: np.array([(entity[h], relation[r], entity[t]) for h, r, t in kept[split]], dtype=np.int64).reshape(-1, 3)
        for split in SPLITS
    }
    train = numbered["train"]
    told += _unseen(len(entities), np.union1d(train[:, 0], train[:, 2]), "entities")
    told += _unseen(len(relations), np.unique(train[:, 1]), "relations")
    if nameless := sum(id_ not in entity_names for id_ in entities):
        told.append(f"{nameless:,} of {len(entities):,} entities have no name: their id is shown")
    return Graph(
        entities,
        relations,
        tuple(entity_names.get(id_, id_) for id_ in entities),
        tuple(relation_names.get(id_, id_) for id_ in relations),
        **numbered,
        notices=(*notices, *told),
    )


def _numbers(ids: Sequence[str]) -> dict[str, int]:
    return {id_: number for number, id_ in enumerate(ids)}


def _distinct(splits: Mapping[str, Sequence[Triple]]) -> tuple[dict[str, list[Triple]], list[str]]:
    """Each triple once, in the first split that has it, and notices of the number left out."""
    seen: set[Triple] = set()
    kept: dict[str, list[Triple]] = {}
    notices = []
    for split in SPLITS:
        distinct = [triple for triple in dict.fromkeys(splits[split]) if triple not in seen]
        if repeated := len(splits[split]) - len(distinct):
            notices.append(f"{split}: {counted(repeated, 'triple')} left out that it or an earlier split has already")
        kept[split] = distinct
        seen.update(distinct)
    return kept, notices


def _unseen(count: int, seen: np.ndarray, what: str) -> list[str]:
    missing = count - len(seen)
    return [f"{missing:,} of {count:,} {what} occur in no training triple"] if missing else []
