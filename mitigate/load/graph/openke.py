"""OpenKE's folders: entity2id.txt and relation2id.txt (a line with their number, then `name<TAB>id`), and train2id.txt,
valid2id.txt and test2id.txt (a number, then `head tail relation` by ids, entities and relations apart). Older folders
of this family have train.txt and so on with names, also in the order head, tail, relation."""

from collections.abc import Sequence
from pathlib import Path

from mitigate.errors import MitigateError
from mitigate.load.graph.table import SPLITS, Triple
from mitigate.load.lines import OnBadLine, read_lines, report_faults
from mitigate.words.texts import counted

ENTITIES, RELATIONS = "entity2id.txt", "relation2id.txt"
EXPECTED = "head tail relation"


def is_openke(folder: Path) -> bool:
    """Whether a folder has triples by ids in OpenKE's files."""
    return (folder / "train2id.txt").is_file()


def triples_by_id(folder: Path, on_bad_line: OnBadLine) -> tuple[dict[str, list[Triple]], list[str]]:
    """The triples of each split by names, and notices. Raises MitigateError for missing files, an id without a name,
    and, unless on_bad_line is "skip", for bad lines."""
    entities, relations = _names(folder / ENTITIES), _names(folder / RELATIONS)
    splits: dict[str, list[Triple]] = {}
    notices = [f"{folder} is in OpenKE's layout: lines are read as head, tail, relation"]
    for split in SPLITS:
        path = folder / f"{split}2id.txt"
        lines, told = _counted_lines(path, EXPECTED)
        faults: list[str] = []
        splits[split] = []
        for number, line in enumerate(lines, start=2):
            parts = line.split()
            if len(parts) != 3:
                faults.append(f"{path}:{number}: {counted(len(parts), 'id')}, expected 3: {EXPECTED}")
                continue
            head, tail, relation = parts
            if unknown := [f"entity {end}" for end in (head, tail) if end not in entities]:
                faults.append(f"{path}:{number}: {unknown[0]} is not in {ENTITIES}")
            elif relation not in relations:
                faults.append(f"{path}:{number}: relation {relation} is not in {RELATIONS}")
            else:
                splits[split].append((entities[head], relations[relation], entities[tail]))
        notices += told + report_faults(faults, on_bad_line)
    return splits, notices


def check_order(path: Path, triples: Sequence[Triple]) -> None:
    """Raises MitigateError for triples with names whose lines are `head tail relation`, as relation2id.txt beside them
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
        raise MitigateError(f"{path} gives two ids one name; give each a name of its own")
    return names


def _counted_lines(path: Path, expected: str) -> tuple[list[str], list[str]]:
    """The lines behind the first, which says how many there are; of a file without it, all."""
    content, notices = read_lines(path, expected)
    lines = [line.decode("utf-8", errors="replace") for line in content]
    if not lines[0].strip().isdigit():
        if expected == EXPECTED:
            raise MitigateError(f"{path}:1: {lines[0][:60]!r}, expected the number of lines, as OpenKE writes it")
        return lines, notices
    rest = [line for line in lines[1:] if line.strip()]
    if len(rest) != int(lines[0]):
        raise MitigateError(
            f"{path} states {counted(int(lines[0]), 'line')}, and has {len(rest):,}; it was cut short or "
            "changed: fetch it again"
        )
    return rest, notices
