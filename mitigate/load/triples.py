"""Triples of files of any size: a user's own in any table (those of KGTK, as CSKG is published, are recognised by their
columns); ATOMIC and ATOMIC 2020 as published, in one file or in a folder of train, dev and test, ATOMIC 2019's own CSV
too; those that another system generated; and relations of a user's own with their phrases.

Generations are JSON lines {"head": ..., "relation": ..., "generations": [...]}, as COMET-ATOMIC 2020 (Hwang et al.
2021) publishes its systems' outputs, or with "tails" or "tail" in its place, as kogito writes them. Where a line has
generations, its tails are people's references, and are not read."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import rows_of
from mitigate.load.stream import Counts, Loaded, OnBadLine, Streamed, decoded, describe, filled, joined, path_of, report
from mitigate.load.table import TABLES, Column, Columns, layout_of, open_table, read_table
from mitigate.settings import LONGEST_NAME, NAME
from mitigate.triples import SPLITS, TRIPLES
from mitigate.words.relations import Relation, name_key, names_by_key, published_names
from mitigate.words.targets import targets

NAMES = ("head", "relation", "tail")
KGTK = {"head": "node1;label", "relation": "relation", "tail": "node2;label"}
SPLIT = Column(("split",), optional=True)
SEVERAL = "node with several labels (a|b): a target among them is used, else the first"
REMEDY = (
    ". Name its columns with data.columns={head: ..., relation: ..., tail: ...}; in a file without a header line, by "
    "their numbers from 1"
)
NOT_VALID = "labelled 0 (not valid), not used for training"
LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
SECOND = "neutral_phrase"
PHRASES = "a table such as\n  relation,phrase,neutral_phrase\n  Mentors,is a mentor of,works with"
ENDINGS = tuple(f"{ending}{packed}" for packed in (".gz", "") for ending in (*TABLES, ".txt"))
NO_TAILS = "an empty list of tails: no annotator was asked, or none answered"
IN_FACT = "fact."  # GPT's outputs there have head and relation in it
GENERATIONS = {
    "head": Column(("head", f"{IN_FACT}head")),
    "relation": Column(("relation", f"{IN_FACT}relation")),
    "tail": Column(
        tuple(f"{place}{name}" for name in ("generations", "tails", "tail") for place in ("", IN_FACT)), lists=True
    ),
    "prompt": Column(("prompt",), optional=True),
}
EXPECTED = '{"head": ..., "relation": ..., "generations": [...]}'
NOTHING = "nothing was generated: null or an empty list"


def load(
    path: str | None,
    on_bad_line: OnBadLine = "error",
    columns: Columns | None = None,
    relations: str | Path | None = None,
) -> Streamed:
    """The triples of a file.

    columns: the names of its columns, {"head": "subject", ...}, or their places, from 1; by default head, relation and
    tail. A column `split` (train, dev or validation, test) is read where there is one, unless it is named None; a
    column of labels, 1 for a valid triple and 0 for another, where it is named `valid`. relations: a file with phrases
    for further relations (read_relations)."""
    place = path_of(path, "triples")
    own, layout = tuple(read_relations(Path(relations))) if relations else (), layout_of(place)
    wanted: dict[str, Any] = dict(columns_of(columns, NAMES, ("split", "valid")))
    if columns is None and not set(NAMES) <= set(layout.lower) and set(KGTK.values()) <= set(layout.lower):
        wanted = dict(KGTK)
    elif "split" not in (columns or ()) and not all(isinstance(column, int) for column in wanted.values()):
        wanted["split"] = SPLIT
    table = open_table(place, wanted, layout=layout, remedy=REMEDY)
    labelled = [end for end in ("head", "tail") if str(wanted[end]).endswith(";label")]

    def parse(frame: pl.DataFrame, counts: Counts) -> pl.DataFrame:
        for end in labelled:
            counts["noted", SEVERAL] += frame.filter(pl.col(end).str.contains("|", literal=True)).height
            labels, one = pl.col(end).str.split("|"), pl.element()
            named = one.filter(one.str.to_lowercase().str.replace_all("_", " ", literal=True).is_in(list(targets())))
            frame = frame.with_columns(pl.coalesce(labels.list.eval(named).list.first(), labels.list.first()))
        return as_triples(place, frame, counts, own)

    return Streamed(place, "triples", table, parse, on_bad_line, own, needs_phrases=True)


def columns_of(
    given_names: Columns | None, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, str | int]:
    """The source of each of the project's columns, and of the optional ones that are named."""
    given = dict(given_names) if isinstance(given_names, Mapping) else {}
    if (given_names and not given) or set(given) - {*names, *optional}:
        raise MitigateError(
            f"data.columns={given_names} must be {{{', '.join(f'{name}: ...' for name in names)}}}, the names of the "
            f"file's columns or their numbers from 1{'; optional: ' if optional else ''}{', '.join(optional)}"
        )
    wanted = {name: given.get(name) or name for name in names}
    return wanted | {name: place for name in optional if (place := given.get(name)) is not None}


def atomic(path: str | None, on_bad_line: OnBadLine = "error") -> Loaded | Streamed:
    """The triples of ATOMIC's file (split train unless it has a column of splits), or of a folder's files by their
    splits. Tails "none" are left out and counted, and so are lists without a tail and relations without a phrase."""
    place = path_of(path, "atomic")
    if not place.is_dir():
        return _atomic_file(place, "train", on_bad_line)
    files: dict[str, Streamed] = {}
    for file in sorted(place.iterdir()):
        split = SPLITS.get(re.sub(r"(?:-\d+-of-\d+)?\.\w+(?:\.gz)?$", "", file.name.lower()).split("_")[-1])
        if split in files:
            raise MitigateError(f"{place} has two files of split {split}, one of them {file.name}; remove one of them")
        if split:
            files[split] = _atomic_file(file, split, on_bad_line)
    if "train" not in files:
        raise MitigateError(
            f"data.path={place} has no train.tsv; give a folder with train.tsv and, optionally, dev.tsv and test.tsv, "
            "or a single file"
        )
    return joined([files[split] for split in ("train", "dev", "test") if split in files])


def _atomic_file(path: Path, split: str, on_bad_line: OnBadLine) -> Streamed:
    layout = layout_of(path)
    listed = [name for row in rows_of("atomic_relations.csv") if (name := row["atomic"]).lower() in layout.lower]
    columns: dict[str, Any] = {name: name for name in NAMES} | {"split": SPLIT}
    if is_wide := "event" in layout.lower:
        columns = {"head": "event", "split": SPLIT, **{name: Column((name,), lists=True) for name in listed}}
    elif "head" not in layout.lower and layout.form != "objects":
        columns = {name: place for place, name in enumerate(NAMES, 1)}
    table = open_table(path, columns, widths=(3,), layout=layout)

    def parse(frame: pl.DataFrame, counts: Counts) -> pl.DataFrame:
        if is_wide:
            index = [name for name in frame.columns if name not in listed]
            long = frame.unpivot(listed, index=index, variable_name="relation", value_name="tail")
            frame = _exploded(long.sort("row", maintain_order=True), NO_TAILS, counts)
        frame = _without(frame, "none", "the tail is 'none'", counts)
        return as_triples(path, frame, counts, blanks=True, split=split)

    return Streamed(path, "triples", table, parse, on_bad_line)


def _exploded(frame: pl.DataFrame, reason: str, counts: Counts) -> pl.DataFrame:
    """A row for each tail of a list; empty lists are counted."""
    is_empty = (pl.col("tail").list.len() == 0).fill_null(True)
    counts["left out", reason] += frame.filter(is_empty).height
    return frame.filter(~is_empty).explode("tail")


def _without(frame: pl.DataFrame, word: str, reason: str, counts: Counts) -> pl.DataFrame:
    """The rows whose tail is not this word; the others are counted."""
    kept = frame.filter((pl.col("tail").str.strip_chars().str.to_lowercase() != word).fill_null(True))
    counts["left out", reason] += frame.height - kept.height
    return kept


def generations(
    path: str | None, on_bad_line: OnBadLine = "error", top: int | None = None, relations: str | Path | None = None
) -> Streamed:
    """The generations of a file as triples, the first `top` of each line (None: all), in their order. A row is the
    number of its line. Generations "none", empty ones and those whose relation has no phrase are left out and counted.

    relations: a file with phrases for further relations (read_relations)."""
    if top is not None and top < 1:
        raise MitigateError(f"data.top={top} must be at least 1, or null for all generations of a line")
    place = path_of(path, "generations")
    own = tuple(read_relations(Path(relations))) if relations else ()
    table = open_table(place, GENERATIONS, remedy=f"; expected lines '{EXPECTED}'. Other triples: data=triples")

    def parse(frame: pl.DataFrame, counts: Counts) -> pl.DataFrame:
        tails = pl.col("tail")
        rows = _exploded(frame.with_columns(tails.list.head(top or tails.list.len())), NOTHING, counts)
        prompt = pl.col("prompt").fill_null("") if "prompt" in rows.columns else pl.lit("")
        text = tails.fill_null("").str.strip_prefix(prompt).str.replace_all(r"\s+", " ").str.strip_chars()
        rows = _without(rows.with_columns(text.alias("tail")), "none", "the generation is 'none'", counts)
        rows = _without(rows, "", "the generation is empty", counts)
        return as_triples(place, rows, counts, own, blanks=True)

    return Streamed(place, "triples", table, parse, on_bad_line, own)


def as_triples(
    path: Path,
    frame: pl.DataFrame,
    counts: Counts,
    own: Sequence[Relation] = (),
    blanks: bool = False,
    split: str = "train",
) -> pl.DataFrame:
    """The rows (row, head, relation, tail, perhaps split and valid) as TRIPLES; by default all valid and of this split.
    Case is folded, as in the harms paper, and repeats stay. Rows with a relation that has no phrase are counted in
    `counts`, as are training triples that are not valid; blank fields and unknown splits and labels are bad lines.

    own: further relations. blanks: whether underscores stand for something left open ("buys ___"), and so stay."""
    ends, absent = pl.col("head", "tail"), {"split": split, "valid": "1"}
    plain = frame.with_columns(
        (ends if blanks else ends.str.replace_all("_", " ", literal=True)).str.to_lowercase(),
        *(pl.lit(value).alias(name) for name, value in absent.items() if name not in frame.columns),
    )
    plain = filled(path, plain, NAMES, counts)
    plain = decoded(path, plain, "split", SPLITS, counts, "; to ignore the column, set data.columns={split: null}")
    plain = decoded(path, plain, "valid", LABELS, counts, " (1: a valid triple)")
    kept = plain.filter(pl.col("valid") | (pl.col("split") != "train"))
    counts["left out", NOT_VALID] += plain.height - kept.height
    written = pl.col("relation").str.to_lowercase().str.replace_all(r"[ _]", "")
    names = published_names() | names_by_key(own)
    # as it is, or behind a name space as ConceptNet and CSKG write it: /r/IsA, at:xReact
    forms = [written, written.str.replace(r"^(?:/r/|[a-z]+:)", "")]
    known = pl.coalesce(form.replace_strict(names, default=None, return_dtype=pl.String) for form in forms)
    relation = kept.select(relation=known)["relation"]
    unknown = kept.filter(relation.is_null())["relation"].value_counts(sort=True)
    counts.update({("relation", name): count for name, count in unknown.iter_rows()})
    triples = kept.with_columns(relation).filter(relation.is_not_null())
    return triples.select(name for name in (*TRIPLES, "head_sense", "tail_sense") if name in triples.columns)


def read_relations(path: Path) -> list[Relation]:
    """The relations of a table with columns relation, phrase and perhaps neutral_phrase, in its order. Blanks in a name
    become underscores, and a relation of the project keeps its name; one without a neutral phrase has its phrase
    twice."""
    wanted = {name: Column((name,), optional=name == SECOND) for name in ("relation", "phrase", SECOND)}
    rows, _ = read_table(path, wanted, remedy=f"; give {PHRASES}")
    faults, relations, names = Counts(), dict[str, Relation](), names_by_key()
    for row in rows.iter_rows(named=True):
        name, phrase, other = (" ".join((row.get(column) or "").split()) for column in wanted)
        name = name.replace(" ", "_")
        key = name_key(name)
        if not phrase or len(name) > LONGEST_NAME or not re.fullmatch(r"[\w-][\w.-]*", name):
            report(path, [(row["row"], f"invalid name {name!r} (allowed: {NAME}) or a blank phrase")], faults)
        if key in relations:
            report(path, [(row["row"], f"{name!r} again: case, blanks and underscores do not count")], faults)
        relations[key] = Relation(names.get(key, name), phrase, other or phrase)
    describe(faults, None)
    if not relations:
        raise MitigateError(f"data.relations={path} has no rows; give {PHRASES}")
    return list(relations.values())
