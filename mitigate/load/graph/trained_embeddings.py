"""Embeddings that another program trained, with the ids of what they stand for.

Three layouts: a folder with vectors.safetensors (tensors `entities` and `relations`), entities.txt and relations.txt (a
line for each id), as docs/examples/convert_embeddings.py writes it; a folder with entities.tsv and relations.tsv (lines
`id<TAB>number<TAB>number ...`); a file .npz with entities, relations, entity_ids and relation_ids. Pickled files are
not read: they can run code. Complex vectors are given as all real parts, then all imaginary parts."""

import json
import zipfile
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from mitigate.errors import MitigateError, one_of
from mitigate.load.graph.graph import SPLITS, Graph, build
from mitigate.load.lines import not_opened, read_lines
from mitigate.words.outside_text import counted

FACTS, VECTORS = "embeddings.json", "vectors.safetensors"
PARTS = ("entities", "relations")
IDS = {"entities": "entity_ids", "relations": "relation_ids"}  # in an .npz
LAYOUTS = (
    f"a folder with {VECTORS}, entities.txt and relations.txt, one with entities.tsv and relations.tsv, or an .npz"
)
PICKLED = (".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".bin")


@dataclass(frozen=True, eq=False)
class TrainedEmbeddings:
    """Vectors of entities (n, dimension) and relations, float32, with their ids."""

    kind: str  # the interaction, one of models.kge.embeddings.KINDS
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    entity_vectors: np.ndarray
    relation_vectors: np.ndarray  # (m, dimension); with reciprocal relations (2 m, dimension), these at the end
    origin: str  # the program that trained them, or the path

    @property
    def reciprocal(self) -> bool:
        """True if each relation has a second vector, by which heads are predicted."""
        return len(self.relation_vectors) == 2 * len(self.relations)


def read_embeddings(path: str | None, kind: str | None, kinds: Iterable[str]) -> TrainedEmbeddings:
    """The embeddings of a folder or file. kind: their interaction, one of `kinds`; None: the one in embeddings.json.

    Raises MitigateError for a path or a kind that is not given or unknown, a pickled file, missing parts, ids that
    repeat, numbers that are not finite, and ids and vectors of different count."""
    if path is None:
        raise MitigateError(f"model=foreign needs embeddings: give model.path, {LAYOUTS}")
    place = Path(path)
    if place.suffix in PICKLED:
        raise MitigateError(
            f"model.path={path} is a pickled file, which can run code and is not read; convert it where it was trained "
            "(docs/examples/convert_embeddings.py), and give the folder that this writes"
        )
    vectors, ids, facts = _parts(place)
    kind = kind or facts.get("kind")
    if kind is None:
        raise MitigateError(f"{path} does not name its interaction: give model.kind, one of {', '.join(kinds)}")
    if kind not in kinds:
        raise one_of("model.kind", str(kind), kinds)
    _check(place, vectors, ids)
    origin = str(facts.get("origin", path))
    return TrainedEmbeddings(
        str(kind), ids["entities"], ids["relations"], vectors["entities"], vectors["relations"], origin
    )


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
    if found.reciprocal:
        rows = np.concatenate([rows, rows + len(found.relations)])
    return found.entity_vectors[[entity[id_] for id_ in graph.entities]], found.relation_vectors[rows]


def _parts(place: Path) -> tuple[dict[str, np.ndarray], dict[str, tuple[str, ...]], dict[str, Any]]:
    """Vectors and ids by part, and the facts of embeddings.json, empty without one."""
    try:
        if place.suffix == ".npz":
            with place.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                vectors = {part: arrays[part] for part in PARTS}
                return vectors, {part: tuple(map(str, arrays[IDS[part]].tolist())) for part in PARTS}, {}
        if (place / VECTORS).is_file():
            tensors = load_file(place / VECTORS)
            facts = json.loads((place / FACTS).read_bytes()) if (place / FACTS).is_file() else {}
            ids = {part: tuple(_lines(place / f"{part}.txt")) for part in PARTS}
            return {part: tensors[part] for part in PARTS}, ids, facts
        tables = {part: [line.split("\t") for line in _lines(place / f"{part}.tsv")] for part in PARTS}
        vectors = {part: np.array([row[1:] for row in rows], dtype=np.float32) for part, rows in tables.items()}
        return vectors, {part: tuple(row[0] for row in rows) for part, rows in tables.items()}, {}
    except OSError as error:
        raise not_opened(place, error) or MitigateError(f"{place} cannot be read: {error}") from error
    except KeyError as error:
        raise MitigateError(f"{place} lacks {error}; expected {LAYOUTS}") from error
    except (ValueError, SafetensorError, zipfile.BadZipFile) as error:
        raise MitigateError(f"{place} cannot be read ({error}); expected {LAYOUTS}") from error


def _lines(path: Path) -> list[str]:
    return [line.decode() for line in read_lines(path, "id")[0]]


def _check(place: Path, vectors: dict[str, np.ndarray], ids: dict[str, tuple[str, ...]]) -> None:
    """Raise MitigateError for vectors that do not fit their ids or each other; make them float32."""
    for part in PARTS:
        array, count = vectors[part], len(ids[part])
        if array.ndim != 2 or array.dtype.kind != "f":
            raise MitigateError(
                f"{place}: {part} are {array.dtype} of shape {array.shape}; expected (n, dimension) floats"
            )
        if len(array) not in (count, 2 * count if part == "relations" else count):
            raise MitigateError(f"{place}: {len(array):,} vectors of {part} and {count:,} ids; give one for each")
        if repeated := count - len(set(ids[part])):
            raise MitigateError(f"{place}: {counted(repeated, 'id')} of {part} repeat another; give each once")
        if not np.isfinite(array).all():
            raise MitigateError(f"{place}: vectors of {part} have numbers that are not finite")
        vectors[part] = np.ascontiguousarray(array, dtype=np.float32)
    if len({array.shape[1] for array in vectors.values()}) > 1:
        widths = " and ".join(str(vectors[part].shape[1]) for part in PARTS)
        raise MitigateError(f"{place}: vectors of entities and relations have {widths} numbers; expected equally many")
