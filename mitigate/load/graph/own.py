"""A graph of one's own: a folder with train, valid and test triples, or one file that is split here."""

from pathlib import Path

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.graph import openke
from mitigate.load.graph.read import names_of, triples_of
from mitigate.load.graph.table import SPLITS, Graph, Triple, build
from mitigate.load.layout import layout_of
from mitigate.load.lines import OnBadLine, check, report_faults
from mitigate.load.table import read_table
from mitigate.words.texts import counted

ENDINGS = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
NAMES = ("head", "relation", "tail")
EXPECTED = "head<TAB>relation<TAB>tail"
SHARE = 0.05  # of the triples of one file, for validation and for testing each


def load(path: str | None, names: str | None = None, on_bad_line: OnBadLine = "error", seed: int = 1) -> Graph:
    """The graph of a folder with train, valid and test (.tsv or .txt, perhaps .gz), of a folder in OpenKE's layout, or
    of one file; lines are `head<TAB>relation<TAB>tail`. One file may also be a table with columns head, relation, tail.

    names: a file of lines `id<TAB>name`, of entities and relations alike. One file is split at random by the seed:
    5 % for validation, 5 % for testing, and the rest, with every triple that alone has an entity or a relation, for
    training. Raises MitigateError for a path that is not given, missing files, bad lines, and too few triples."""
    check(on_bad_line)
    if path is None:
        raise MitigateError("data=graph needs triples: give data.path=FILE.tsv or a folder with train, valid and test")
    place = Path(path)
    notices: list[str] = []
    splits: dict[str, list[Triple]] = {}
    if openke.is_openke(place):
        splits, notices = openke.triples_by_id(place, on_bad_line)
    elif place.is_dir():
        for split in SPLITS:
            file = _split_file(place, split)
            splits[split], told = triples_of(None, file, on_bad_line=on_bad_line)
            openke.check_order(file, splits[split])
            notices += told
    elif place.name.endswith("2id.txt"):
        raise MitigateError(f"{place} is a part of a folder of OpenKE: give the folder, data.path={place.parent}")
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
            f"{counted(len(distinct), 'triple')}, too few to split: validation and testing need triples whose head, "
            "relation and tail occur in others too. Give more, or a folder with train, valid and test"
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
        openke.check_order(path, triples)
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
