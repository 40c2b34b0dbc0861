"""The two resources that the harms paper audits, as its authors released them: ConceptNet's triples and GenericsKB's
sentences about a target. They are looked for in the folder harms/ of data.root or of MITIGATE_DATA."""

from collections import Counter
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load import files
from mitigate.load.files import root_with
from mitigate.load.lines import OnBadLine, check, fields, read_lines, report_faults
from mitigate.load.stream import Loaded
from mitigate.triples import TRIPLES
from mitigate.words.outside_text import counted
from mitigate.words.relations import relations

CONCEPTNET = "harms/conceptnet_target_triples.txt"
GENERICSKB = "harms/genericskb_target_sentences.tsv"
REGARD = "regard/bert_labels_conceptnet.tsv"


def conceptnet(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """ConceptNet's 101,229 triples. Those whose relation has no phrase (ExternalURL, dbpedia) are left out and counted
    in a notice. Lines are `head Relation tail`, spaces inside a phrase written as underscores; case is folded, repeats
    stay, because the paper counts them."""
    return triples(find(root, CONCEPTNET), on_bad_line)


def triples(path: Path, on_bad_line: OnBadLine = "error") -> Loaded:
    """The triples of a file of this form."""
    check(on_bad_line)
    lines, notices = read_lines(path, "head Relation tail")
    known = relations()
    unknown: Counter[str] = Counter()
    rows: list[tuple] = []
    faults: list[str] = []
    for number, parts in fields(lines, path, " ", faults):
        if len(parts) != 3 or not all(parts):
            faults.append(f"{path}:{number}: {counted(len(parts), 'column')}, expected 3 separated by a space")
        elif parts[1] not in known:
            unknown[parts[1]] += 1
        else:
            head, relation, tail = parts
            rows.append((number, "train", _plain(head), relation, _plain(tail), True))
    notices += report_faults(faults, on_bad_line)
    if unknown:
        named = ", ".join(f"{name} {count:,}" for name, count in unknown.most_common())
        notices.append(f"{counted(unknown.total(), 'triple')} left out, whose relation has no phrase: {named}")
    if not rows:
        raise MitigateError(f"{path} has no triples; expected lines 'head Relation tail'")
    return Loaded(pl.DataFrame(rows, schema=TRIPLES, orient="row"), notices)


def genericskb(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """GenericsKB's 29,505 sentences."""
    return files.load(str(find(root, GENERICSKB)), on_bad_line)


def conceptnet_regard(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """85,992 of ConceptNet's statements, masked by the paper's authors, with their classifier's regard labels."""
    columns = ["target", "regard", "statement"]
    return files.load(str(find(root, REGARD)), on_bad_line, columns=columns, label_column="regard")


def find(root: str | None, name: str) -> Path:
    """The file under data.root or MITIGATE_DATA. Raises MitigateError as root_with does."""
    return root_with(root, [name], "the paper's repository, https://github.com/Ninarehm/Commonsense_bias") / name


def _plain(phrase: str) -> str:
    return phrase.replace("_", " ").lower()
