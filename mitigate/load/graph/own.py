"""A user's graph: a folder with train, valid and test triples, or one file that is split here."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.file_format import layout_of
from mitigate.load.graph.graph import SPLITS, Graph, Triple, build, names_of, triples_of
from mitigate.load.lines import OnBadLine, check, read_lines, report_faults
from mitigate.load.stream import path_of
from mitigate.load.table import read_table
from mitigate.words.outside_text import counted

ENDINGS = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
NAMES = ("head", "relation", "tail")
EXPECTED = "head<TAB>relation<TAB>tail"
SHARE = 0.05  # of the triples of one file, for validation and for testing each
ENTITIES, RELATIONS = "entity2id.txt", "relation2id.txt"
EXPECTED_OPENKE = "head tail relation"


def load(path: str | None, names: str | None = None, on_bad_line: OnBadLine = "error", seed: int = 1) -> Graph:
    """The graph of a folder with train, valid and test (.tsv or .txt, perhaps .gz), of a folder in OpenKE's layout, or
    of one file; lines are `head<TAB>relation<TAB>tail`. One file may also be a table with columns head, relation, tail.

    names: a file of lines `id<TAB>name`, of entities and relations alike. One file is split at random by the seed:
    5 % for validation, 5 % for testing, and the rest, with every triple that alone has an entity or a relation, for
    training. Raises MitigateError for a path that is not given, missing files, bad lines, and too few triples."""
    check(on_bad_line)
    place = path_of(path, "graph", "FILE.tsv, or a folder with train, valid and test")
    notices: list[str] = []
    splits: dict[str, list[Triple]] = {}
    if is_openke(place):
        splits, notices = triples_by_id(place, on_bad_line)
    elif place.is_dir():
        for split in SPLITS:
            file = _split_file(place, split)
            splits[split], of_file = triples_of(None, file, on_bad_line=on_bad_line)
            check_order(file, splits[split])
            notices += of_file
    elif place.name.endswith("2id.txt"):
        raise MitigateError(f"{place} is one file of an OpenKE folder; set data.path={place.parent}")
    else:
        triples, notices = _of_file(place, on_bad_line)
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


def _of_file(path: Path, on_bad_line: OnBadLine) -> tuple[list[Triple], list[str]]:
    """The triples of one file: lines, or a table with the columns NAMES."""
    layout = layout_of(path)
    if not {name.strip().lower() for name in layout.names} >= set(NAMES):
        if layout.form not in ("table", "lines"):
            raise MitigateError(f"{path} is {layout.shown}; expected {', '.join(NAMES)}, or lines '{EXPECTED}'")
        triples, notices = triples_of(None, path, on_bad_line=on_bad_line)
        check_order(path, triples)
        return triples, notices
    rows, notices = read_table(path, {name: name for name in NAMES}, on_bad_line, layout=layout)
    plain = rows.with_columns(pl.col(NAMES).fill_null("").str.strip_chars())
    blank = plain.filter(pl.any_horizontal(pl.col(NAMES) == ""))["row"]
    notices += report_faults([f"{path}:{row}: a blank field" for row in blank], on_bad_line)
    return plain.filter(~pl.col("row").is_in(blank.implode())).select(NAMES).rows(), notices


def _split_file(folder: Path, split: str) -> Path:
    for ending in ENDINGS:
        if (path := folder / f"{split}{ending}").is_file():
            return path
    raise MitigateError(f"{folder} has no file {split}.tsv; expected train, valid and test ({', '.join(ENDINGS)})")


def is_openke(folder: Path) -> bool:
    """Return whether a folder has triples by ids in OpenKE's files."""
    return (folder / "train2id.txt").is_file()


def triples_by_id(folder: Path, on_bad_line: OnBadLine) -> tuple[dict[str, list[Triple]], list[str]]:
    """The triples of each split by names, and notices. Raises MitigateError for missing files, an id without a name,
    and, unless on_bad_line is "skip", for bad lines."""
    entities, relations = _names(folder / ENTITIES), _names(folder / RELATIONS)
    splits: dict[str, list[Triple]] = {}
    notices = [f"{folder} is in OpenKE's layout: lines are read as head, tail, relation"]
    for split in SPLITS:
        path = folder / f"{split}2id.txt"
        lines, of_file = _counted_lines(path, EXPECTED_OPENKE)
        faults: list[str] = []
        splits[split] = []
        for number, line in enumerate(lines, start=2):
            parts = line.split()
            if len(parts) != 3:
                faults.append(f"{path}:{number}: {counted(len(parts), 'id')}, expected 3: {EXPECTED_OPENKE}")
                continue
            head, tail, relation = parts
            if unknown := [f"entity {end}" for end in (head, tail) if end not in entities]:
                faults.append(f"{path}:{number}: {unknown[0]} is not in {ENTITIES}")
            elif relation not in relations:
                faults.append(f"{path}:{number}: relation {relation} is not in {RELATIONS}")
            else:
                splits[split].append((entities[head], relations[relation], entities[tail]))
        notices += of_file + report_faults(faults, on_bad_line)
    return splits, notices


def check_order(path: Path, triples: Sequence[Triple]) -> None:
    """Raise MitigateError for triples with names whose lines are `head tail relation`, as relation2id.txt beside them
    tells."""
    if not (beside := path.parent / RELATIONS).is_file():
        return
    relations = set(_names(beside).values())
    if not all(triple[1] in relations for triple in triples) and all(triple[2] in relations for triple in triples):
        raise MitigateError(
            f"{path} has lines 'head<TAB>tail<TAB>relation', as {beside.name} shows; expected "
            "'head<TAB>relation<TAB>tail'. Change their order: awk -F'\\t' -v OFS='\\t' '{print $1, $3, $2}' FILE"
        )


def _names(path: Path) -> dict[str, str]:
    """Id -> name. Raises MitigateError for a bad line, and for an id or a name that stands twice."""
    lines, _ = _counted_lines(path, "name<TAB>id")
    names: dict[str, str] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, start=2):
        name, _, id_ = line.rstrip().replace("\t", " ").rpartition(" ")
        if not name.strip() or not id_.isdigit():
            faults.append(f"{path}:{number}: {line[:60]!r}, expected 'name<TAB>id'")
        elif id_ in names:
            faults.append(f"{path}:{number}: id {id_} stands twice")
        names[id_] = name.strip()
    report_faults(faults, None)
    if len(set(names.values())) < len(names):
        raise MitigateError(f"{path} gives two ids the same name; each id needs its own")
    return names


def _counted_lines(path: Path, expected: str) -> tuple[list[str], list[str]]:
    """The lines behind the first, which says how many there are; of a file without it, all."""
    content, notices = read_lines(path, expected)
    lines = [line.decode("utf-8", errors="replace") for line in content]
    if not lines[0].strip().isdigit():
        if expected == EXPECTED_OPENKE:
            raise MitigateError(f"{path}:1: {lines[0][:60]!r}, expected the number of lines, as OpenKE writes it")
        return lines, notices
    rest = [line for line in lines[1:] if line.strip()]
    if len(rest) != int(lines[0]):
        raise MitigateError(
            f"{path} states {counted(int(lines[0]), 'line')}, but has {len(rest):,}; the file is truncated or was "
            "changed. Download it again"
        )
    return rest, notices
