"""Embeddings that another program trained, in a folder: entities.npy and relations.npy, a row a vector, and
entities.txt and relations.txt, an id a line. Complex vectors have all real parts first, then all imaginary parts.
Pickled files are not read: they can run code."""

from collections.abc import Collection, Container
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mitigate.errors import MitigateError, one_of
from mitigate.load.graph import SPLITS, Graph, build
from mitigate.load.stream import not_opened
from mitigate.load.table import open_lines, read_all
from mitigate.words.outside_text import counted

EXPECTED = "a folder with entities.npy, relations.npy, entities.txt and relations.txt"


@dataclass(frozen=True, eq=False)
class TrainedEmbeddings:
    """Vectors of entities (n, dimension) and relations, float32, with their ids."""

    kind: str  # the interaction, one of models.kge.KINDS
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    entity_vectors: np.ndarray
    relation_vectors: np.ndarray  # (m, dimension); with reciprocal relations (2 m, dimension), these at the end
    origin: str  # the path


def read_embeddings(path: str | None, kind: str | None, kinds: Collection[str]) -> TrainedEmbeddings:
    """The embeddings of a folder. kind: their interaction, one of `kinds`.

    Raises MitigateError for a path or a kind that is not given or unknown, missing or damaged files, ids that repeat,
    numbers that are not finite, and ids and vectors of different count."""
    if path is None:
        raise MitigateError(f"model=foreign needs embeddings: give model.path, {EXPECTED}")
    if kind not in kinds:
        raise one_of("model.kind", str(kind), kinds)
    entities, entity_vectors = _part(Path(path), "entities")
    relations, relation_vectors = _part(Path(path), "relations")
    widths = entity_vectors.shape[1], relation_vectors.shape[1]
    if widths[0] != widths[1]:
        raise MitigateError(f"{path}: vectors of entities and relations have {widths[0]} and {widths[1]} numbers")
    return TrainedEmbeddings(str(kind), entities, relations, entity_vectors, relation_vectors, path)


def restrict(graph: Graph, entities: Container[str], relations: Container[str]) -> Graph:
    """The triples of a graph that these entities and relations are in, with a notice of the others. Raises
    MitigateError if fewer than half of the test triples are left, or none of a split."""
    names, labels = graph.entities, graph.relations
    splits = {
        split: [(names[h], labels[r], names[t]) for h, r, t in getattr(graph, split).tolist()] for split in SPLITS
    }
    kept = {
        split: [(h, r, t) for h, r, t in rows if h in entities and r in relations and t in entities]
        for split, rows in splits.items()
    }
    if 2 * len(kept["test"]) < len(splits["test"]) or not all(kept.values()):
        raise MitigateError(
            f"model.path has vectors for {len(kept['test']):,} of {len(splits['test']):,} test triples: the embeddings "
            f"are of another graph, or have other ids; the graph has entities such as {graph.entities[0]!r} and "
            f"relations such as {graph.relations[0]!r}"
        )
    lost = sum(map(len, splits.values())) - sum(map(len, kept.values()))
    if not lost:
        return graph
    notice = f"{counted(lost, 'triple')} left out: model.path has no vector for an entity or the relation"
    entity_names = dict(zip(graph.entities, graph.entity_names, strict=True))
    relation_names = dict(zip(graph.relations, graph.relation_names, strict=True))
    return build(kept, entity_names, relation_names, [*graph.notices, notice])


def align(found: TrainedEmbeddings, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the graph's entities (n, dimension) and relations (m, dimension), in its order; with reciprocal
    relations (2 m, dimension)."""
    entity, relation = ({id_: number for number, id_ in enumerate(ids)} for ids in (found.entities, found.relations))
    rows = np.array([relation[id_] for id_ in graph.relations])
    if len(found.relation_vectors) > len(found.relations):
        rows = np.concatenate([rows, rows + len(found.relations)])
    return found.entity_vectors[[entity[id_] for id_ in graph.entities]], found.relation_vectors[rows]


def _part(folder: Path, part: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The ids and the vectors of entities or of relations."""
    path = folder / f"{part}.npy"
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read ({error})") from error
    ids = tuple(read_all(open_lines(folder / f"{part}.txt"))[0]["statement"])
    if array.ndim != 2 or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise MitigateError(f"{path}: {array.dtype} of shape {array.shape}; expected finite floats (n, dimension)")
    if len(array) != len(ids) and (part, len(array)) != ("relations", 2 * len(ids)):
        raise MitigateError(f"{folder}: {len(array):,} vectors of {part} and {len(ids):,} ids; give one for each")
    if repeated := len(ids) - len(set(ids)):
        raise MitigateError(f"{folder}: {counted(repeated, 'id')} of {part} repeat another; give each once")
    return ids, array.astype(np.float32)
