"""Knowledge graphs as numbers: triples of ids, split into train, valid and test, with a name for each id. A user's own
graph, and the published FB15k-237 (Toutanova and Chen 2015), CoDEx-M (Safavi and Koutra 2020) and WD50K (Galkin et al.
2020), which are read from the folder kg/ of data.root or of MITIGATE_DATA, and never downloaded."""

import json
import re
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.load.statements import find_root, root_with
from mitigate.load.stream import OnBadLine, describe, first, not_opened, path_of, report, report_faults
from mitigate.load.table import layout_of, open_lines, open_table, read_all
from mitigate.words.outside_text import counted

SPLITS = ("train", "valid", "test")
NAMES = ("head", "relation", "tail")
Triple = tuple[str, str, str]  # head, relation, tail
ENDINGS = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
SHARE = 0.05  # of the triples of one file, for validation and for testing each
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
    kept, repeats = _distinct(splits)
    everything = [triple for split in SPLITS for triple in kept[split]]
    entities = tuple(sorted({triple[0] for triple in everything} | {triple[2] for triple in everything}))
    relations = tuple(sorted({triple[1] for triple in everything}))
    entity, relation = _numbers(entities), _numbers(relations)
    numbered = {
        split: np.array([(entity[h], relation[r], entity[t]) for h, r, t in kept[split]], dtype=np.int64).reshape(-1, 3)
        for split in SPLITS
    }
    train = numbered["train"]
    found = [*notices, *repeats]
    found += _unseen(len(entities), np.union1d(train[:, 0], train[:, 2]), "entities")
    found += _unseen(len(relations), np.unique(train[:, 1]), "relations")
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


def triples_of(
    path: Path, on_bad_line: OnBadLine = "error", content: bytes | None = None, separator: str | None = None
) -> tuple[list[Triple], list[str]]:
    """The triples of a file, lines `head<TAB>relation<TAB>tail` or a table with such columns, and notices. content: in
    place of the file's. separator: of lines without names.

    Raises MitigateError for a file that is missing, unreadable, empty or of another form, and, unless on_bad_line is
    "skip", for lines with other than three fields, blank fields, or bytes that are not UTF-8."""
    layout = layout_of(path, content)
    is_headed = {name.strip().lower() for name in layout.names} >= set(NAMES)
    wanted = {name: name if is_headed else place for place, name in enumerate(NAMES, start=1)}
    how = {"layout": layout} if is_headed else {"separator": separator or "\t", "widths": (3,), "stray_quotes": True}
    rows, counts = read_all(open_table(path, wanted, content=content, **how))
    plain = rows.with_columns(pl.col(NAMES).fill_null("").str.strip_chars())
    blank = plain.filter(pl.any_horizontal(pl.col(NAMES) == ""))["row"]
    report(path, [(row, "a blank field") for row in blank], counts)
    good = plain.filter(~pl.col("row").is_in(blank.implode()))
    if good.is_empty() and not blank.len():
        raise MitigateError(f"{path} has no triples; expected lines 'head<TAB>relation<TAB>tail'")
    return good.select(NAMES).rows(), describe(counts, on_bad_line)


def names_of(path: Path, *, underscores: bool = False) -> dict[str, str]:
    """The name of each id, from lines `id<TAB>name`; the first one where an id is repeated.

    underscores: whether an underscore in a name stands for a space. Raises MitigateError for a file that is missing,
    unreadable or empty, and for bad lines."""
    rows, counts = read_all(open_table(path, {"id": 1, "name": 2}, separator="\t", widths=(2,), stray_quotes=True))
    plain = rows.with_columns(pl.col("id", "name").str.strip_chars())
    report(path, [(row, "a blank field") for row, *texts in plain.rows() if not all(texts)], counts)
    describe(counts, "error")
    distinct = plain.unique("id", keep="first", maintain_order=True).select("id", "name")
    return {id_: name.replace("_", " ") if underscores else name for id_, name in distinct.iter_rows()}


def labels_of(path: Path) -> dict[str, str]:
    """The names in a JSON file of CoDEx's form: {id: {"label": name, ...}, ...}.

    Raises MitigateError for a file that is missing or of another form."""
    try:
        return {id_: str(facts["label"]) for id_, facts in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        wrong = f'{path} is not of the form {{"P106": {{"label": "occupation"}}, ...}}'
        raise not_opened(path, error) or MitigateError(wrong) from error


def members_of(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The contents of the files of a tar.gz that have these names, whatever folder they are in. Nothing is written to
    disk. Raises MitigateError for an archive that is missing or damaged, or that lacks a name."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if name in names and member.isreg() and (file := archive.extractfile(member)):
                    found[name] = file.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error
    if missing := [name for name in names if name not in found]:
        raise MitigateError(f"{path} has no file {' and no file '.join(missing)}")
    return found


def load(path: str | None, names: str | None = None, on_bad_line: OnBadLine = "error", seed: int = 1) -> Graph:
    """The graph of a folder with train, valid and test (.tsv or .txt, perhaps .gz), of a folder in OpenKE's layout, or
    of one file; lines are `head<TAB>relation<TAB>tail`. One file may also be a table with columns head, relation, tail.

    names: a file of lines `id<TAB>name`, of entities and relations alike. One file is split at random by the seed:
    5 % for validation, 5 % for testing, and the rest, with every triple that alone has an entity or a relation, for
    training. Raises MitigateError for a path that is not given, missing files, bad lines, and too few triples."""
    place = path_of(path, "graph", "FILE.tsv, or a folder with train, valid and test")
    notices: list[str] = []
    splits: dict[str, list[Triple]] = {}
    if (place / "train2id.txt").is_file():
        splits, notices = triples_by_id(place, on_bad_line)
    elif place.is_dir():
        for split in SPLITS:
            file = _split_file(place, split)
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
    """Each distinct triple in one split. Training has every entity and relation.

    Raises MitigateError when fewer than two triples could be taken out of training."""
    distinct = list(dict.fromkeys(triples))
    order = np.random.default_rng(seed).permutation(len(distinct))
    seen: set[tuple[str, str]] = set()
    spare: list[int] = []
    for i in order:
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
    taken = {"valid": set(spare[:count]), "test": set(spare[count : 2 * count])}
    held_out = taken["valid"] | taken["test"]
    return {
        "train": [triple for i, triple in enumerate(distinct) if i not in held_out],
        **{split: [distinct[i] for i in sorted(numbers)] for split, numbers in taken.items()},
    }


def _split_file(folder: Path, split: str) -> Path:
    for ending in ENDINGS:
        if (path := folder / f"{split}{ending}").is_file():
            return path
    raise MitigateError(f"{folder} has no file {split}.tsv; expected train, valid and test ({', '.join(ENDINGS)})")


def triples_by_id(folder: Path, on_bad_line: OnBadLine) -> tuple[dict[str, list[Triple]], list[str]]:
    """The triples of each split by names, and notices. Raises MitigateError for missing files, an id without a name,
    and, unless on_bad_line is "skip", for bad lines."""
    entities, relations = _ids(folder / ENTITIES), _ids(folder / RELATIONS)
    splits: dict[str, list[Triple]] = {}
    notices = [f"{folder} is in OpenKE's layout: lines are read as head, tail, relation"]
    for split in SPLITS:
        path, faults, splits[split] = folder / f"{split}2id.txt", list[str](), []
        for number, line in _counted_lines(path):
            ids = line.split()
            head, tail, relation = ids if len(ids) == 3 else ("", "", "")
            if head in entities and tail in entities and relation in relations:
                splits[split].append((entities[head], relations[relation], entities[tail]))
            else:
                faults.append(f"{path}:{number}: {line[:60]!r}, expected {EXPECTED_OPENKE}")
        notices += report_faults(faults, on_bad_line)
    return splits, notices


def _ids(path: Path) -> dict[str, str]:
    """Id -> name. Raises MitigateError for a bad line, and for an id or a name that stands twice."""
    pairs = [line.rstrip().replace("\t", " ").rpartition(" ")[::2] for _, line in _counted_lines(path)]
    if wrong := [f"{path}: {name} {id_}"[:100] for name, id_ in pairs if not name.strip() or not id_.isdigit()]:
        raise MitigateError(f"expected lines 'name<TAB>id':\n  {first(wrong)}")
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
    archive = folder / "FB15k-237.tar.gz"
    contents = members_of(archive, [f"{split}.txt" for split in SPLITS])
    read = {split: triples_of(archive / f"{split}.txt", content=contents[f"{split}.txt"]) for split in SPLITS}
    names = names_of(folder / "mid2name.tsv", underscores=True)
    return build(*_parts(read, {id_: REGION.sub("", name) for id_, name in names.items()}, {}))


def codex_m(root: str | None = None) -> Graph:
    """CoDEx-M: 185,584 training, 10,310 validation and 10,311 test triples of 17,050 entities and 51 relations.

    Names of entities are those of kg/wikidata_labels.tsv, of relations those of relations.json."""
    folder = find(root, "kg/codex-m", [*_files(), "relations.json"])
    read = {split: triples_of(folder / f"{split}.txt") for split in SPLITS}
    return build(*_parts(read, _wikidata_names(root), labels_of(folder / "relations.json")))


def wd50k(root: str | None = None) -> Graph:
    """WD50K without its qualifiers: 164,631 training triples, 23,860 for validation and 46,023 for testing, of 41,334
    entities and 486 relations. Without qualifiers 676 validation triples are training triples too; they are left out.

    Lines may have qualifiers behind the triple (head,relation,tail,qualifier relation,qualifier entity,...), as in the
    statements of the paper: what is behind the third field is dropped, and counted. Relations have no names."""
    folder = find(root, "kg/wd50k", _files())
    read = {split: _without_qualifiers(folder / f"{split}.txt") for split in SPLITS}
    return build(*_parts(read, _wikidata_names(root), {}))


def find(root: str | None, folder: str, names: Sequence[str]) -> Path:
    """The folder under data.root or MITIGATE_DATA. Raises MitigateError as root_with does."""
    return root_with(root, [f"{folder}/{name}" for name in names], UPSTREAM[folder]) / folder


def _files() -> list[str]:
    return [f"{split}.txt" for split in SPLITS]


def _wikidata_names(root: str | None) -> dict[str, str]:
    """Names are a help to readers: without the file ids are shown, and build says so."""
    folder = find_root(root)
    return names_of(folder / WIKIDATA_LABELS) if folder and (folder / WIKIDATA_LABELS).is_file() else {}


def _without_qualifiers(path: Path) -> tuple[list[Triple], list[str]]:
    lines = path.read_bytes().split(b"\n")
    qualified = sum(line.count(b",") > 2 for line in lines)
    content = b"\n".join(b",".join(line.split(b",")[:3]) for line in lines)
    triples, notices = triples_of(path, content=content, separator=",")
    dropped = [f"{path}: the qualifiers of {counted(qualified, 'line')} were dropped"] if qualified else []
    return triples, [*notices, *dropped]


def _parts(
    read: dict[str, tuple[list[Triple], list[str]]], entity_names: dict[str, str], relation_names: dict[str, str]
) -> tuple[dict[str, list[Triple]], dict[str, str], dict[str, str], list[str]]:
    """The arguments of `build`."""
    triples = {split: part[0] for split, part in read.items()}
    return triples, entity_names, relation_names, [notice for part in read.values() for notice in part[1]]
