"""A knowledge graph as numbers, as all loaders of graphs return it, and the readers of triples and names of ids. Each
fault is named by file and line."""

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from mitigate.errors import MitigateError, did_you_mean
from mitigate.load.lines import OnBadLine, fields, not_opened, read_lines, report_faults, split_lines
from mitigate.words.outside_text import counted

SPLITS = ("train", "valid", "test")
Triple = tuple[str, str, str]  # head, relation, tail
LARGEST_ARCHIVE = 2**28  # bytes when unpacked; FB15k-237 has 24 million


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
    content: bytes | None, path: Path | str, separator: str = "\t", on_bad_line: OnBadLine = "error"
) -> tuple[list[Triple], list[str]]:
    """The triples (head, relation, tail) of a file, or of a content that was read already, and notices.

    Raises MitigateError for a file that is missing, unreadable or empty, and, unless on_bad_line is "skip", for lines
    with other than three fields, blank fields, or bytes that are not UTF-8."""
    shown = {"\t": "<TAB>"}.get(separator, separator)
    expected = shown.join(("head", "relation", "tail"))
    rows, notices, faults = _fields(content, path, separator, 3, expected)
    notices += report_faults(faults, on_bad_line)
    if not rows:
        raise MitigateError(f"{path} has no triples; expected lines '{expected}'")
    return [(head, relation, tail) for head, relation, tail in rows], notices


def names_of(path: Path, *, underscores: bool = False) -> dict[str, str]:
    """The name of each id, from lines `id<TAB>name`; the first one where an id is repeated.

    underscores: whether an underscore in a name stands for a space. Raises MitigateError for a file that is missing,
    unreadable or empty, and for bad lines."""
    rows, _, faults = _fields(None, path, "\t", 2, "id<TAB>name")
    report_faults(faults, "error")
    names: dict[str, str] = {}
    for id_, name in rows:
        names.setdefault(id_, name.replace("_", " ") if underscores else name)
    return names


def labels_of(path: Path) -> dict[str, str]:
    """The names in a JSON file of CoDEx's form: {id: {"label": name, ...}, ...}.

    Raises MitigateError for a file that is missing or of another form."""
    try:
        content = json.loads(path.read_bytes())
        return {id_: str(facts["label"]) for id_, facts in content.items()}
    except OSError as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise MitigateError(f'{path} is not of the form {{"P106": {{"label": "occupation"}}, ...}}') from error


def members_of(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The contents of the members of a tar.gz that have these file names, whatever folder they are in.

    Nothing is written to disk, and links are not followed. A sparse member, whose zeros are not in the archive, does
    not count: a few bytes can claim any size. Raises MitigateError for an archive that is missing or damaged, that
    lacks a name or has it twice, or that holds more than LARGEST_ARCHIVE."""
    try:
        with gzip.open(path) as packed:
            unpacked = packed.read(LARGEST_ARCHIVE + 1)
        if len(unpacked) > LARGEST_ARCHIVE:
            raise MitigateError(f"{path} holds more than {LARGEST_ARCHIVE // 2**20} MiB; it is not the published file")
        found = _regular_files(unpacked, path, names)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error
    if missing := [name for name in names if name not in found]:
        raise MitigateError(f"{path} has no file {' and no file '.join(missing)}")
    return found


def _regular_files(unpacked: bytes, path: Path, names: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
        for member in archive:
            name = PurePosixPath(member.name).name
            is_whole = member.isreg() and not member.issparse()
            file = archive.extractfile(member) if name in names and is_whole else None
            if file is None:
                continue
            if name in found:
                raise MitigateError(f"{path} has two files {name}; it is not the published file")
            found[name] = file.read()
    return found


def _fields(
    content: bytes | None, path: Path | str, separator: str, count: int, expected: str
) -> tuple[list[list[str]], list[str], list[str]]:
    """The fields of each good line, notices, and a sentence for each bad line."""
    if content is None:
        lines, notices = read_lines(Path(path), expected)
    else:
        lines, notices = split_lines(content, str(path), expected)
    rows: list[list[str]] = []
    faults: list[str] = []
    for number, written in fields(lines, path, separator, faults):
        parts = [part.strip() for part in written]
        if len(parts) != count:
            faults.append(f"{path}:{number}: {counted(len(parts), 'column')}, expected {count}: {expected}")
        elif not all(parts):
            faults.append(f"{path}:{number}: a blank field")
        else:
            rows.append(parts)
    return rows, notices, faults
