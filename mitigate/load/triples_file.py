"""One file of triples in ConceptNet's formats: `relation<TAB>head<TAB>tail`, in training files optionally a
score behind, in dev and test files a 0/1 label. Real files have faults; each is named by file and line."""

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import OnBadLine, check, fields, first, read_lines, report_faults
from mitigate.triples import TRIPLES
from mitigate.words.relations import Relation, relations
from mitigate.words.texts import counted


@dataclass(frozen=True)
class Loaded:
    """Triples of one or more splits, schema TRIPLES, and a sentence for each oddity the reader met."""

    triples: pl.DataFrame
    notices: list[str] = field(default_factory=list)
    own_relations: tuple[Relation, ...] = ()  # those that triples may have besides the project's


def read_triples(path: Path, split: str, *, labelled: bool, on_bad_line: OnBadLine = "error") -> Loaded:
    """The triples of one file, `.gz` or plain.

    Windows line ends and a byte order mark are accepted and noted. A repeated triple of a training file is
    left out and noted; in labelled files repeats stay, because test sets have a few and are compared whole.
    Raises MitigateError for a missing, unreadable or empty file, and, unless on_bad_line is "skip", for
    lines with another number of columns, blank fields, bytes that are not UTF-8, unknown relations or
    labels other than 0 and 1."""
    check(on_bad_line)
    lines, notices = read_lines(path, "relation<TAB>head<TAB>tail")
    known = relations()
    rows: list[tuple[int, str, str, str, str, bool]] = []
    faults: list[str] = []
    seen: dict[tuple[str, str, str], int] = {}
    repeats: list[str] = []
    for number, parts in fields(lines, path, "\t", faults):
        if fault := _fault(parts, labelled, known):
            faults.append(f"{path}:{number}: {fault}")
            continue
        relation, head, tail = parts[:3]
        earlier = seen.setdefault((relation, head, tail), number)
        if earlier != number:
            repeats.append(f"{path}:{number} repeats line {earlier}")
            if not labelled:
                continue
        rows.append((number, split, head, relation, tail, parts[3] == "1" if labelled else True))

    notices += report_faults(faults, on_bad_line)
    if repeats:
        outcome = "kept" if labelled else "left out"
        notices.append(f"{counted(len(repeats), 'repeated triple')} {outcome}: {first(repeats, '; ')}")
    if not rows:
        raise MitigateError(f"{path} has no triples; expected lines 'relation<TAB>head<TAB>tail'")
    return Loaded(pl.DataFrame(rows, schema=TRIPLES, orient="row"), notices)


def _fault(parts: list[str], labelled: bool, known: dict) -> str | None:
    allowed = (4,) if labelled else (3, 4)
    if len(parts) not in allowed:
        return f"{counted(len(parts), 'column')}, expected {' or '.join(map(str, allowed))} separated by tabs"
    if not all(part.strip() for part in parts[:3]):
        return "a blank field"
    if parts[0] not in known:
        return f"unknown relation {parts[0]!r}"
    if labelled and parts[3] not in ("0", "1"):
        return f"label {parts[3]!r}, expected 0 or 1"
    return None
