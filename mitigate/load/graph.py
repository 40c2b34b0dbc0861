"""Knowledge graphs as numbers: triples of ids, split into train, valid and test, with a name for each id; and
embeddings that another program trained. A user's own graph, and the published FB15k-237 (Toutanova and Chen 2015),
CoDEx-M (Safavi and Koutra 2020) and WD50K (Galkin et al. 2020), which are read from the folder kg/ of data.root or of
MITIGATE_DATA, and never downloaded."""

import json
import re
import tarfile
import zlib
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.load.statements import find_root, root_with
from mitigate.load.stream import Counts, OnBadLine, describe, filled, path_of, report
from mitigate.load.table import layout_of, not_opened, open_lines, open_table, read_all
from mitigate.words.outside_text import counted

SPLITS = ("train", "valid", "test")
NAMES = ("head", "relation", "tail")
Triple = tuple[str, str, str]  # head, relation, tail
ENDINGS = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
SHARE = 0.05  # of the triples of one file, for validation and for testing each
FILES = ("train.txt", "valid.txt", "test.txt")
ENTITIES, RELATIONS = "entity2id.txt", "relation2id.txt"
EXPECTED_OPENKE = f"three ids of {ENTITIES} and {RELATIONS}: head tail relation"
REGION = re.compile(r"-(GB|US)$")
WIKIDATA_LABELS = "kg/wikidata_labels.tsv"
UPSTREAM = {
    "kg/fb15k-237": "https://www.microsoft.com/en-us/download/details.aspx?id=52312",
    "kg/codex-m": "https://github.com/tsafavi/codex",
    "kg/wd50k": "https://github.com/migalkin/StarE",
}


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
        """The numbers of all entities of this name (case does not matter), or the one of this id; int64."""
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
    notices: Iterable[str] = (),
) -> Graph:
    """The graph of the triples of each split, with notices of triples that splits share and of ids without a name.

    A triple that its own or an earlier split has already is left out: it would be ranked after training on it. Entities
    that training triples lack stay, as in the published figures of FB15k-237."""
    found, kept, seen = list(notices), dict[str, list[Triple]](), set[Triple]()
    for split in SPLITS:
        kept[split] = [triple for triple in dict.fromkeys(splits[split]) if triple not in seen]
        seen.update(kept[split])
        if repeated := len(splits[split]) - len(kept[split]):
            found.append(f"{split}: {counted(repeated, 'triple')} left out that it or an earlier split has already")
    entities = tuple(sorted({end for head, _, tail in seen for end in (head, tail)}))
    relations = tuple(sorted({relation for _, relation, _ in seen}))
    entity, relation = ({id_: number for number, id_ in enumerate(ids)} for ids in (entities, relations))
    numbered = {
        split: np.array([(entity[h], relation[r], entity[t]) for h, r, t in kept[split]], dtype=np.int64).reshape(-1, 3)
        for split in SPLITS
    }
    train = numbered["train"]
    for what, ids, used in (("entities", entities, train[:, ::2]), ("relations", relations, train[:, 1])):
        if missing := len(ids) - len(np.unique(used)):
            found.append(f"{missing:,} of {len(ids):,} {what} occur in no training triple")
    if nameless := sum(id_ not in entity_names for id_ in entities):
        found.append(f"{nameless:,} of {len(entities):,} entities have no name: their id is shown")
    return Graph(
        entities,
        relations,
        tuple(entity_names.get(id_, id_) for id_ in entities),
        tuple(relation_names.get(id_, id_) for id_ in relations),
        **numbered,
        notices=tuple(found),
    )


def triples_of(path: Path, on_bad_line: OnBadLine = "error") -> tuple[list[Triple], list[str]]:
    """The triples of a file, lines `head<TAB>relation<TAB>tail` or a table with such columns, and notices."""
    layout = layout_of(path)
    if set(NAMES) <= set(layout.lower):
        table = open_table(path, {name: name for name in NAMES}, layout=layout)
    else:
        table = open_table(path, {name: place for place, name in enumerate(NAMES, 1)}, separator="\t", widths=(3,))
    rows, counts = read_all(table)
    good = filled(path, rows, NAMES, counts)
    notices = describe(counts, on_bad_line)
    if good.is_empty():
        raise MitigateError(f"{path} has no triples; expected lines 'head<TAB>relation<TAB>tail'")
    return good.select(NAMES).rows(), notices


def names_of(path: Path, *, underscores: bool = False) -> dict[str, str]:
    """The name of each id, from lines `id<TAB>name`; the first one where an id is repeated.

    underscores: whether an underscore in a name stands for a space."""
    rows, counts = read_all(open_table(path, {"id": 1, "name": 2}, separator="\t", widths=(2,)))
    distinct = filled(path, rows, ("id", "name"), counts).unique("id", keep="first", maintain_order=True)
    describe(counts, None)
    return {id_: name.replace("_", " ") if underscores else name for _, id_, name in distinct.iter_rows()}


def load(path: str | None, names: str | None = None, on_bad_line: OnBadLine = "error", seed: int = 1) -> Graph:
    """The graph of a folder with train, valid and test (.tsv or .txt, perhaps .gz), of a folder in OpenKE's layout, or
    of one file; lines are `head<TAB>relation<TAB>tail`. One file may also be a table with columns head, relation, tail.

    names: a file of lines `id<TAB>name`, of entities and relations alike. One file is split at random by the seed:
    5 % for validation, 5 % for testing, and the rest, with every triple that alone has an entity or a relation, for
    training."""
    place = path_of(path, "graph", "FILE.tsv, or a folder with train, valid and test")
    if (place / "train2id.txt").is_file():
        splits, notices = _by_id(place, on_bad_line)
    elif place.is_dir():
        splits, notices = {}, []
        for split in SPLITS:
            file = next((file for ending in ENDINGS if (file := place / f"{split}{ending}").is_file()), None)
            if file is None:
                expected = f"expected train, valid and test ({', '.join(ENDINGS)})"
                raise MitigateError(f"{place} has no file {split}.tsv; {expected}")
            splits[split], of_file = triples_of(file, on_bad_line)
            notices += of_file
    elif place.name.endswith("2id.txt"):
        raise MitigateError(f"{place} is one file of an OpenKE folder; set data.path={place.parent}")
    else:
        triples, notices = triples_of(place, on_bad_line)
        splits = split_at_random(triples, seed)
        if repeated := len(triples) - sum(map(len, splits.values())):
            notices.append(f"{place}: {repeated:,} of {len(triples):,} triples repeat another and were left out")
        notices.append(
            f"{place} was split by seed {seed}: " + ", ".join(f"{split} {len(splits[split]):,}" for split in SPLITS)
        )
    known = names_of(Path(names)) if names else {}
    return build(splits, known, known, notices)


def split_at_random(triples: list[Triple], seed: int) -> dict[str, list[Triple]]:
    """Each distinct triple in one split. Training has every entity and relation."""
    distinct = list(dict.fromkeys(triples))
    seen: set[tuple[str, str]] = set()
    spare: list[int] = []
    for i in np.random.default_rng(seed).permutation(len(distinct)):
        head, relation, tail = distinct[i]
        parts = {("entity", head), ("relation", relation), ("entity", tail)}
        if parts <= seen:
            spare.append(i)
        seen |= parts
    count = min(round(SHARE * len(distinct)), len(spare) // 2)
    if not count:
        raise MitigateError(
            f"{counted(len(distinct), 'triple')}, too few to split: validation and test need triples whose head, "
            "relation and tail occur in other triples too. Give more triples, or a folder with train, valid and test"
        )
    taken = {"valid": sorted(spare[:count]), "test": sorted(spare[count : 2 * count])}
    held_out = {*taken["valid"], *taken["test"]}
    return {
        "train": [triple for i, triple in enumerate(distinct) if i not in held_out],
        **{split: [distinct[i] for i in numbers] for split, numbers in taken.items()},
    }


def _by_id(folder: Path, on_bad_line: OnBadLine) -> tuple[dict[str, list[Triple]], list[str]]:
    """The triples of each split by names, and notices."""
    entities, relations = _ids(folder / ENTITIES), _ids(folder / RELATIONS)
    splits: dict[str, list[Triple]] = {}
    counts = Counts()
    for split in SPLITS:
        path, splits[split] = folder / f"{split}2id.txt", []
        for number, line in _counted_lines(path):
            ids = line.split()
            head, tail, relation = ids if len(ids) == 3 else ("", "", "")
            if head in entities and tail in entities and relation in relations:
                splits[split].append((entities[head], relations[relation], entities[tail]))
            else:
                report(path, [(number, f"{line[:60]!r}, expected {EXPECTED_OPENKE}")], counts)
    notice = f"{folder} is in OpenKE's layout: lines are read as head, tail, relation"
    return splits, [notice, *describe(counts, on_bad_line)]


def _ids(path: Path) -> dict[str, str]:
    """Id -> name."""
    pairs = [line.rstrip().replace("\t", " ").rpartition(" ")[::2] for _, line in _counted_lines(path)]
    if wrong := [f"{name} {id_}" for name, id_ in pairs if not name.strip() or not id_.isdigit()]:
        raise MitigateError(f"{path}: found {wrong[0][:60]!r}, expected lines 'name<TAB>id'")
    names = {id_: name.strip() for name, id_ in pairs}
    if len(names) < len(pairs) or len(set(names.values())) < len(names):
        raise MitigateError(f"{path} gives two ids the same name, or an id twice; each id needs its own name")
    return names


def _counted_lines(path: Path) -> list[tuple[int, str]]:
    """The numbered lines behind the first, which says how many there are."""
    rows, counts = read_all(open_lines(path))
    describe(counts, None)
    (_, size), *rest = rows.rows()
    if size.strip() != str(len(rest)):
        raise MitigateError(
            f"{path}: its first line is {size[:60]!r}, expected {len(rest)}, the number of the lines that follow; the "
            "file is truncated or was changed. Download it again"
        )
    return rest


def fb15k237(root: str | None = None) -> Graph:
    """FB15k-237: 272,115 training, 17,535 validation and 20,466 test triples of 14,541 entities and 237 relations.

    It is read from FB15k-237.tar.gz in place. Names are those of mid2name.tsv, some of which end with the region of a
    spelling ("Animator-GB"): this ending is left out."""
    folder = find(root, "kg/fb15k-237", ("FB15k-237.tar.gz", "mid2name.tsv"))
    path, contents = folder / "FB15k-237.tar.gz", dict[str, bytes]()
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isreg() and (file := archive.extractfile(member)):
                    contents[PurePosixPath(member.name).name] = file.read()
        splits = {split: _published(contents[f"{split}.txt"])[0] for split in SPLITS}
    except (OSError, EOFError, KeyError, zlib.error, tarfile.TarError) as error:
        raise MitigateError(f"{path} is damaged, or lacks train.txt, valid.txt or test.txt: {error}") from error
    names = names_of(folder / "mid2name.tsv", underscores=True)
    return build(splits, {id_: REGION.sub("", name) for id_, name in names.items()}, {})


def codex_m(root: str | None = None) -> Graph:
    """CoDEx-M: 185,584 training, 10,310 validation and 10,311 test triples of 17,050 entities and 51 relations.

    Names of entities are those of kg/wikidata_labels.tsv, of relations those of relations.json."""
    folder = find(root, "kg/codex-m", [*FILES, "relations.json"])
    splits = {split: _published(folder / f"{split}.txt")[0] for split in SPLITS}
    path = folder / "relations.json"
    try:
        relations = {id_: str(facts["label"]) for id_, facts in json.loads(path.read_bytes()).items()}
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise MitigateError(f'{path} is not of the form {{"P106": {{"label": "occupation"}}, ...}}') from error
    return build(splits, _wikidata_names(root), relations)


def wd50k(root: str | None = None) -> Graph:
    """WD50K without its qualifiers: 164,631 training triples, 23,860 for validation and 46,023 for testing, of 41,334
    entities and 486 relations. Without qualifiers 676 validation triples are training triples too; they are left out.

    Lines may have qualifiers behind the triple (head,relation,tail,qualifier relation,qualifier entity,...), as in the
    statements of the paper: what is behind the third field is dropped, and counted. Relations have no names."""
    folder = find(root, "kg/wd50k", FILES)
    read = {split: _published(folder / f"{split}.txt", ",") for split in SPLITS}
    notices = [
        f"{folder / split}.txt: the qualifiers of {counted(number, 'line')} were dropped"
        for split, (_, number) in read.items()
        if number
    ]
    return build({split: triples for split, (triples, _) in read.items()}, _wikidata_names(root), {}, notices)


def find(root: str | None, folder: str, names: Sequence[str]) -> Path:
    """The folder under data.root or MITIGATE_DATA."""
    return root_with(root, [f"{folder}/{name}" for name in names], UPSTREAM[folder]) / folder


def _published(source: Path | bytes, separator: str = "\t") -> tuple[list[Triple], int]:
    """The triples of a file, and the number of lines with more behind them."""
    schema = dict.fromkeys([*NAMES, "more"], pl.String)
    lenient: dict[str, Any] = {"extra_columns": "ignore", "missing_columns": "insert"}
    rows = pl.read_csv(source, has_header=False, separator=separator, quote_char=None, schema=schema, **lenient)
    return rows.select(NAMES).drop_nulls().rows(), rows["more"].drop_nulls().len()


def _wikidata_names(root: str | None) -> dict[str, str]:
    """Names are a help to readers: without the file ids are shown, and build says so."""
    folder = find_root(root)
    return names_of(folder / WIKIDATA_LABELS) if folder and (folder / WIKIDATA_LABELS).is_file() else {}


@dataclass(frozen=True, eq=False)
class TrainedEmbeddings:
    """Embeddings that another program trained: vectors of entities (n, dimension) and relations, float32, with their
    ids. Complex vectors have all real parts first, then all imaginary parts."""

    kind: str  # the interaction, one of models.kge.KINDS
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    entity_vectors: np.ndarray
    relation_vectors: np.ndarray  # (m, dimension); with reciprocal relations (2 m, dimension), these at the end
    origin: str  # the path


def read_embeddings(path: str | None, kind: str | None, kinds: Collection[str]) -> TrainedEmbeddings:
    """The embeddings of a folder: entities.npy and relations.npy, a row a vector, entities.txt and relations.txt, an id
    a line. Pickled files are not read: they can run code. kind: their interaction, one of `kinds`.

    Raises MitigateError for a path or a kind that is not given or unknown, missing or damaged files, ids that repeat,
    numbers that are not finite, and ids and vectors of different count."""
    if path is None:
        raise MitigateError(
            "model=foreign needs embeddings: give model.path, a folder with entities.npy, relations.npy, entities.txt "
            "and relations.txt"
        )
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
