"""The published graphs: FB15k-237 (Toutanova and Chen 2015), CoDEx-M (Safavi and Koutra 2020) and WD50K (Galkin et al.
2020). They are read from the folder kg/ of data.root or of MITIGATE_DATA, and never downloaded."""

import re
from collections.abc import Sequence
from pathlib import Path

from mitigate.errors import MitigateError
from mitigate.load.files import find_root, root_with
from mitigate.load.graph.graph import SPLITS, Graph, Triple, build, labels_of, members_of, names_of, triples_of
from mitigate.words.outside_text import counted

REGION = re.compile(r"-(GB|US)$")
WIKIDATA_LABELS = "kg/wikidata_labels.tsv"
UPSTREAM = {
    "kg/fb15k-237": "https://www.microsoft.com/en-us/download/details.aspx?id=52312",
    "kg/codex-m": "https://github.com/tsafavi/codex",
    "kg/wd50k": "https://github.com/migalkin/StarE",
}


def fb15k237(root: str | None = None) -> Graph:
    """FB15k-237: 272,115 training, 17,535 validation and 20,466 test triples of 14,541 entities and 237 relations.

    It is read from FB15k-237.tar.gz in place. Names are those of mid2name.tsv, some of which end with the region of a
    spelling ("Animator-GB"): this ending is left out."""
    folder = find(root, "kg/fb15k-237", ("FB15k-237.tar.gz", "mid2name.tsv"))
    archive = folder / "FB15k-237.tar.gz"
    contents = members_of(archive, [f"{split}.txt" for split in SPLITS])
    read = {split: triples_of(contents[f"{split}.txt"], f"{archive}:{split}.txt") for split in SPLITS}
    names = names_of(folder / "mid2name.tsv", underscores=True)
    return build(*_parts(read, {id_: REGION.sub("", name) for id_, name in names.items()}, {}))


def codex_m(root: str | None = None) -> Graph:
    """CoDEx-M: 185,584 training, 10,310 validation and 10,311 test triples of 17,050 entities and 51 relations.

    Names of entities are those of kg/wikidata_labels.tsv, of relations those of relations.json."""
    folder = find(root, "kg/codex-m", [*_files(), "relations.json"])
    read = {split: triples_of(None, folder / f"{split}.txt") for split in SPLITS}
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
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise MitigateError(f"{path} cannot be read: {error}") from error
    qualified = sum(line.count(b",") > 2 for line in lines)
    content = b"\n".join(b",".join(line.split(b",")[:3]) for line in lines)
    triples, notices = triples_of(content, path, separator=",")
    if qualified:
        notices.append(f"{path}: the qualifiers of {counted(qualified, 'line')} were dropped")
    return triples, notices


def _parts(
    read: dict[str, tuple[list[Triple], list[str]]], entity_names: dict[str, str], relation_names: dict[str, str]
) -> tuple[dict[str, list[Triple]], dict[str, str], dict[str, str], list[str]]:
    """The arguments of `build`."""
    triples = {split: part[0] for split, part in read.items()}
    return triples, entity_names, relation_names, [notice for part in read.values() for notice in part[1]]
