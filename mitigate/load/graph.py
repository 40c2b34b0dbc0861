"""Knowledge graphs as numbers: triples of ids, split into train, valid and test, with a name for each id. A user's own
graph, and the published FB15k-237 (Toutanova and Chen 2015), CoDEx-M (Safavi and Koutra 2020) and WD50K (Galkin et al.
2020), which are read from the folder kg/ of data.root or of MITIGATE_DATA, and never downloaded."""

import json
import re
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, counted, did_you_mean
from mitigate.load.statements import root_with
from mitigate.load.stream import OnBadLine, describe, filled, path_of
from mitigate.load.table import layout_of, open_table, read_table

SPLITS = ("train", "valid", "test")
NAMES = ("head", "relation", "tail")
Triple = tuple[str, str, str]  # head, relation, tail
ENDINGS = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
FILES = tuple(f"{split}.txt" for split in SPLITS)
SHARE = 0.05  # of the triples of one file, for validation and for testing each
REGION = re.compile(r"-(GB|US)$")


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def triples(self) -> np.ndarray:
        """Triples of all splits."""
        return np.concatenate([self.train, self.valid, self.test])

    def numbers_of(self, name: str, what: str, setting: str) -> np.ndarray:
        """The numbers of all entities of this name (case does not matter), or the one of this id; int64. what: "entity"
        or "relation"; setting: the one that gives the name."""
        parts = {"entity": (self.entities, self.entity_names), "relation": (self.relations, self.relation_names)}
        ids, names = parts[what]
        if name in ids:
            return np.array([ids.index(name)])
        numbers = [number for number, known in enumerate(names) if known.casefold() == name.casefold()]
        if not numbers:
            near = did_you_mean(name, names) or "; names and ids of the graph are allowed"
            raise MitigateError(f"{setting}: the graph has no {what} {name!r}{near}")
        return np.array(numbers)


def build(
    splits: Mapping[str, Sequence[Triple]],
    entity_names: Mapping[str, str],
    relation_names: Mapping[str, str],
    notices: Iterable[str] = (),
) -> Graph:
    """The graph of the triples of each split, with notices of triples that splits share and of ids without a name.

    A triple that its own or an earlier split has already is left out: it would be ranked after training on it. Entities
    that training triples lack stay, as in the published figures of FB15k-237."""
    notices, kept, seen = list(notices), dict[str, list[Triple]](), set[Triple]()
    for split in SPLITS:
        kept[split] = [triple for triple in dict.fromkeys(splits[split]) if triple not in seen]
        seen.update(kept[split])
        if repeated := len(splits[split]) - len(kept[split]):
            notices.append(f"{split}: {counted(repeated, 'triple')} left out that it or an earlier split has already")
    entities = tuple(sorted({end for head, _, tail in seen for end in (head, tail)}))
    relations = tuple(sorted({relation for _, relation, _ in seen}))
    entity, relation = ({id_: number for number, id_ in enumerate(ids)} for ids in (entities, relations))
    train, valid, test = (
        np.array([(entity[h], relation[r], entity[t]) for h, r, t in kept[split]], dtype=np.int64).reshape(-1, 3)
        for split in SPLITS
    )
    if missing := len(entities) - len(np.unique(train[:, ::2])):
        notices.append(f"{missing:,} of {len(entities):,} entities occur in no training triple")
    if nameless := sum(id_ not in entity_names for id_ in entities):
        notices.append(f"{nameless:,} of {len(entities):,} entities have no name: their id is shown")
    names = tuple(entity_names.get(id_, id_) for id_ in entities)
    phrases = tuple(relation_names.get(id_, id_) for id_ in relations)
    return Graph(entities, relations, names, phrases, train, valid, test, tuple(notices))


def triples_of(path: Path, on_bad_line: OnBadLine = "error") -> tuple[list[Triple], list[str]]:
    """The triples of a file, lines `head<TAB>relation<TAB>tail` or a table with such columns, and notices."""
    layout = layout_of(path)
    is_named = set(NAMES) <= set(layout.lower)
    places = {name: name if is_named else place for place, name in enumerate(NAMES, 1)}
    rows, counts = open_table(path, places, layout=layout, widths=(3,)).read()
    rows = filled(path, rows, NAMES, counts)
    return rows.select(NAMES).rows(), describe(counts, on_bad_line)


def names_of(path: Path) -> dict[str, str]:
    """The name of each id, from lines `id<TAB>name`; the first one where an id is repeated."""
    rows, _ = read_table(path, {"id": 1, "name": 2}, widths=(2,))
    return dict(reversed(rows.select("id", "name").rows()))


def load(path: str | None, names: str | None = None, on_bad_line: OnBadLine = "error", seed: int = 1) -> Graph:
    """The graph of a folder with train, valid and test (.tsv or .txt, perhaps .gz), or of one file; lines are
    `head<TAB>relation<TAB>tail`. One file may also be a table with columns head, relation, tail.

    names: a file of lines `id<TAB>name`, of entities and relations alike. One file is split at random by the seed:
    5 % for validation, 5 % for testing, and the rest, with every triple that alone has an entity or a relation, for
    training."""
    place = path_of(path, "graph", "FILE.tsv, or a folder with train, valid and test")
    splits, notices = dict[str, Sequence[Triple]](), list[str]()
    for split in SPLITS if place.is_dir() else ():
        files = [file for ending in ENDINGS if (file := place / f"{split}{ending}").is_file()]
        if not files:
            raise MitigateError(f"{place} has no {split}.tsv; expected train, valid and test as {', '.join(ENDINGS)}")
        splits[split], of_file = triples_of(files[0], on_bad_line)
        notices += of_file
    if not splits:
        triples, notices = triples_of(place, on_bad_line)
        splits = split_at_random(triples, seed)
        sizes = ", ".join(f"{split} {len(splits[split]):,}" for split in SPLITS)
        notices.append(f"{place} was split by seed {seed}, each triple once: {sizes} of {len(triples):,}")
    known = names_of(Path(names)) if names else {}
    return build(splits, known, known, notices)


def split_at_random(triples: list[Triple], seed: int) -> dict[str, Sequence[Triple]]:
    """Each distinct triple in one split. Training has every entity and relation."""
    distinct, seen, spare = list(dict.fromkeys(triples)), set[tuple[str, str]](), list[int]()
    for i in np.random.default_rng(seed).permutation(len(distinct)):
        head, relation, tail = distinct[i]
        parts = {("entity", head), ("relation", relation), ("entity", tail)}
        spare += [i] * (parts <= seen)
        seen |= parts
    count = min(round(SHARE * len(distinct)), len(spare) // 2)
    if not count:
        raise MitigateError(
            f"{counted(len(distinct), 'triple')}, too few to split: validation and test need triples whose parts occur "
            "in others too. Give more triples, or a folder with train, valid and test"
        )
    taken = {"train": {*range(len(distinct))} - {*spare[: 2 * count]}, "valid": spare[:count]}
    taken["test"] = spare[count : 2 * count]
    return {split: [distinct[i] for i in sorted(numbers)] for split, numbers in taken.items()}


def published(
    folder: str,
    upstream: str,
    root: str | None = None,
    *,
    archive: str | None = None,
    separator: str = "\t",
    names: str = "kg/wikidata_labels.tsv",
    relations: str | None = None,
) -> Graph:
    """A published graph, from train.txt, valid.txt and test.txt in a folder of data.root or MITIGATE_DATA.

    upstream: where it can be downloaded; archive: the tar archive that the files are in. names: a file of lines
    `id<TAB>name` below the root, of entities. relations: a JSON file of the folder, {id: {"label": name}}. Further
    fields of a line, such as qualifiers of WD50K, are dropped and counted."""
    needed = [archive] if archive else [*FILES, *filter(None, [relations])]
    place = root_with(root, [f"{folder}/{name}" for name in needed], upstream) / folder
    contents: dict[str, Any] = {name: place / name for name in FILES}
    if archive:
        try:
            with tarfile.open(place / archive) as packed:
                files = {Path(one.name).name: packed.extractfile(one) for one in packed if one.isreg()}
                contents = {name: member.read() for name in FILES if (member := files[name])}
        except (OSError, EOFError, KeyError, tarfile.TarError, zlib.error) as error:
            raise MitigateError(f"{place / archive} is damaged ({error}); get it again from {upstream}") from error
    schema = dict.fromkeys([*NAMES, "more"], pl.String)
    lenient: dict[str, Any] = {"extra_columns": "ignore", "missing_columns": "insert", "quote_char": None}
    splits, notices = dict[str, Sequence[Triple]](), list[str]()
    for split, name in zip(SPLITS, FILES, strict=True):
        rows = pl.read_csv(contents[name], has_header=False, separator=separator, schema=schema, **lenient)
        splits[split] = rows.select(NAMES).drop_nulls().rows()
        if not splits[split] or len(splits[split]) < rows.height:
            raise MitigateError(f"{place / name}: expected lines {separator.join(NAMES)!r}")
        if more := rows["more"].drop_nulls().len():
            notices.append(f"{place / name}: the qualifiers of {counted(more, 'line')} were dropped")
    file = place.parent.parent / names
    known = names_of(file) if file.is_file() else {}
    known = {id_: REGION.sub("", name.replace("_", " ")) for id_, name in known.items()}
    labels = json.loads((place / relations).read_bytes()) if relations else {}
    return build(splits, known, {id_: str(facts["label"]) for id_, facts in labels.items()}, notices)
