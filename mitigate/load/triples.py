"""Triples of files of any size: a user's own in any table, ATOMIC, those that another system generated; and relations
of a user's own with their phrases. Tables of KGTK, as CSKG is published, are recognised by their columns.

ATOMIC and ATOMIC 2020 are read as published, in one file or in a folder with files of train, dev and test: lines
`head<TAB>relation<TAB>tail`, with that first line or without; ATOMIC 2019's own CSV (an event, a column of lists for
each of nine relations, prefix, split); and the same columns in JSON lines and Parquet.

Generations are JSON lines {"head": ..., "relation": ..., "generations": [...]}, as COMET-ATOMIC 2020 (Hwang et al.
2021) publishes its systems' outputs, or with "tails" or "tail" in its place, as kogito writes them; a JSON array of
such objects, or a Parquet file with such columns. Where a line has generations, its tails are people's references, and
are not read."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import Chunk, Counts, OnBadLine, Streamed, describe, filled, meant, path_of, report
from mitigate.load.table import TABLES, Column, Columns, Table, layout_of, open_table, read_table
from mitigate.package_data import rows_of
from mitigate.settings import LONGEST_NAME, NAME
from mitigate.triples import SPLITS, TRIPLES
from mitigate.words.events import published_names
from mitigate.words.relations import Relation, spellings, spelt
from mitigate.words.targets import targets

NAMES = ("head", "relation", "tail")
KGTK = {"head": "node1;label", "relation": "relation", "tail": "node2;label"}
SPLIT = Column(("split",), optional=True)
SEVERAL = "node with several labels (a|b): a target among them is used, else the first"
REMEDY = (
    ". Name its columns with data.columns={head: ..., relation: ..., tail: ...}; in a file without a header line, by "
    "their numbers from 1"
)
MOST_NAMES = 200  # unknown relations counted by name in one chunk
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
    own, layout = _own(relations), layout_of(place)
    wanted: dict[str, Any] = dict(columns_of(columns, NAMES, ("split", "valid")))
    if columns is None and not set(NAMES) <= set(layout.lower) and set(KGTK.values()) <= set(layout.lower):
        wanted = dict(KGTK)
    elif "split" not in (columns or ()) and not all(isinstance(column, int) for column in wanted.values()):
        wanted["split"] = SPLIT
    table = open_table(place, wanted, layout=layout, remedy=REMEDY)
    labelled = [end for end in ("head", "tail") if str(wanted[end]).endswith(";label")]

    def parse(block: object) -> Chunk:
        counts = Counts()
        frame = table.frame(block, counts)
        for end in labelled:
            counts["noted", SEVERAL] += frame.filter(pl.col(end).str.contains(r"[^\\]\|")).height
            frame = frame.with_columns(_one_label(pl.col(end)))
        return triples_chunk(place, frame, counts, own=own)

    expected = " ".join(str(wanted[name]) for name in NAMES)
    return Streamed(place, "triples", table.blocks, parse, expected, on_bad_line, own, needs_phrases=True)


def _one_label(labels: pl.Expr) -> pl.Expr:
    """The first of a node's labels in KGTK's form ("lawyer|attorney", "'lawyer'@en") that is a target, else the
    first."""
    parts = labels.str.replace_all(r"\|", "\0", literal=True).str.split("|")  # an escaped bar is no separator
    one = pl.element()
    plain = parts.list.eval(
        one.str.replace("\0", "|", literal=True).str.replace(r"^'(.*)'@[\w-]+$", "$1").str.strip_chars()
    )
    spoken = one.str.to_lowercase().str.replace_all("_", " ", literal=True)
    about = plain.list.eval(one.filter(spoken.is_in(list(targets()))))
    return pl.coalesce(about.list.first(), plain.list.first()).alias(labels.meta.output_name())


def columns_of(
    given_names: Columns | None, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, str | int]:
    """The source of each of the project's columns, and of the optional ones that are named."""
    found = dict(given_names) if isinstance(given_names, Mapping) else {}
    if (given_names and not found) or set(found) - {*names, *optional}:
        raise MitigateError(
            f"data.columns={given_names} must be {{{', '.join(f'{name}: ...' for name in names)}}}, the names of the "
            f"file's columns or their numbers from 1{'; optional: ' if optional else ''}{', '.join(optional)}"
        )
    wanted = {name: found.get(name) or name for name in names}
    return wanted | {name: place for name in optional if (place := found.get(name)) is not None}


class Piece(NamedTuple):
    """A block of one of the files of ATOMIC."""

    path: Path
    split: str
    block: Any
    share: float  # of all files read so far, each with equal weight


def atomic(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The triples of ATOMIC's file (split train unless it has a column of splits), or of a folder's files by their
    splits. Tails "none" are left out and counted, and so are lists without a tail and relations without a phrase."""
    place = path_of(path, "atomic")
    splits = _splits(place) if place.is_dir() else {place: "train"}
    listed = [row["atomic"] for row in rows_of("atomic_relations.csv") if row["atomic"]]
    tables = {file: _atomic_table(file, listed) for file in splits}

    def pieces() -> Iterator[Piece]:
        for number, (file, split) in enumerate(splits.items()):
            for block in tables[file].blocks():
                yield Piece(file, split, block, (number + block.share) / len(splits))

    def parse(piece: Piece) -> Chunk:
        counts = Counts()
        frame = tables[piece.path].frame(piece.block, counts)
        if lists := [name for name in frame.columns if name in listed]:
            index = [name for name in frame.columns if name not in lists]
            long = frame.unpivot(lists, index=index, variable_name="relation", value_name="tail")
            frame = _exploded(long.sort("row", maintain_order=True), NO_TAILS, counts)
        frame = _without(frame, "none", "the tail is 'none'", counts)
        if "split" not in frame.columns:
            frame = frame.with_columns(split=pl.lit(piece.split))
        return triples_chunk(piece.path, frame, counts, published_names(), blanks=True)

    files = tuple(splits) if place.is_dir() else ()
    return Streamed(place, "triples", pieces, parse, "head<TAB>relation<TAB>tail", on_bad_line, files=files)


def _atomic_table(path: Path, listed: Sequence[str]) -> Table:
    layout = layout_of(path)
    lists = {name: Column((name,), lists=True) for name in listed if name.lower() in layout.lower}
    if "event" in layout.lower and lists:
        return open_table(path, {"head": "event", **lists, "split": SPLIT}, layout=layout)
    if set(layout.lower) >= set(NAMES) or layout.form not in ("table", "lines"):
        return open_table(path, {**dict(zip(NAMES, NAMES, strict=True)), "split": SPLIT}, layout=layout)
    return open_table(path, {"head": 1, "relation": 2, "tail": 3}, separator="\t", widths=(3,), layout=layout)


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


def _splits(folder: Path) -> dict[Path, str]:
    """The files of a folder and their splits, training first: train.tsv, atomic_train.tsv, v4_atomic_trn.csv,
    train-00000-of-00001.parquet."""
    found: dict[str, Path] = {}
    files = [path for path in sorted(folder.iterdir()) if path.name.lower().endswith(ENDINGS)]
    for path in files:
        name = re.sub(r"(?:-\d+-of-\d+)?(?:\.\w+)(?:\.gz)?$", "", path.name.lower())
        split = SPLITS.get(name.split("_")[-1])
        if split in found:
            raise MitigateError(
                f"{folder} has {found[split].name} and {path.name}, both of split {split}; expected one file a split. "
                "Remove one of them"
            )
        if split is not None:
            found[split] = path
    if "train" not in found:
        raise MitigateError(
            f"data.path={folder} has no train.tsv (found: {', '.join(path.name for path in files[:5]) or 'nothing'}); "
            "give a folder with train.tsv and, optionally, dev.tsv and test.tsv, or a single file"
        )
    return {found[split]: split for split in ("train", "dev", "test") if split in found}


def generations(
    path: str | None, on_bad_line: OnBadLine = "error", top: int | None = None, relations: str | Path | None = None
) -> Streamed:
    """The generations of a file as triples, the first `top` of each line (None: all), in their order. A row is the
    number of its line. Generations "none", empty ones and those whose relation has no phrase are left out and counted.

    relations: a file with phrases for further relations (read_relations)."""
    if top is not None and top < 1:
        raise MitigateError(f"data.top={top} must be at least 1, or null for all generations of a line")
    place = path_of(path, "generations")
    own = _own(relations)
    table = open_table(place, GENERATIONS, remedy=f"; expected lines '{EXPECTED}'. Other triples: data=triples")

    def parse(block: object) -> Chunk:
        counts, tails = Counts(), pl.col("tail")
        frame = table.frame(block, counts).with_columns(tails.list.head(top or tails.list.len()))
        rows = _exploded(frame, NOTHING, counts)
        prompt = pl.col("prompt").fill_null("") if "prompt" in rows.columns else pl.lit("")
        text = tails.fill_null("").str.strip_prefix(prompt).str.replace_all(r"\s+", " ").str.strip_chars()
        rows = _without(rows.with_columns(text.alias("tail")), "none", "the generation is 'none'", counts)
        rows = _without(rows, "", "the generation is empty", counts)
        return triples_chunk(place, rows, counts, published_names(), own, blanks=True)

    return Streamed(place, "triples", table.blocks, parse, EXPECTED, on_bad_line, own)


def triples_chunk(
    path: Path,
    frame: pl.DataFrame,
    counts: Counts,
    names: dict[str, str] | None = None,
    own: Sequence[Relation] = (),
    blanks: bool = False,
) -> Chunk:
    """The rows (row, head, relation, tail, perhaps split and valid) as TRIPLES; by default all valid and of split
    train. Case is folded, as in the harms paper, and repeats stay. Rows with a relation that has no phrase are counted
    in `counts`, as are training triples that are not valid; blank fields and unknown splits and labels are bad lines.

    names: names of relations in this resource that differ from those of relations.csv. own: further relations. blanks:
    whether underscores stand for something left open ("buys ___"), and so stay."""
    ends = pl.col("head", "tail")
    absent = {"split": "train", "valid": "1"}
    plain = frame.with_columns(
        (ends if blanks else ends.str.replace_all("_", " ", literal=True)).str.to_lowercase(),
        *(pl.lit(value).alias(name) for name, value in absent.items() if name not in frame.columns),
    )
    plain = filled(path, plain, NAMES, counts)
    plain = meant(path, plain, "split", SPLITS, counts, "; to ignore the column, set data.columns={split: null}")
    plain = meant(path, plain, "valid", LABELS, counts, " (1: a valid triple)")
    kept = plain.filter(pl.col("valid") | (pl.col("split") != "train"))
    counts["left out", NOT_VALID] += plain.height - kept.height
    written = pl.col("relation").str.to_lowercase().str.replace_all(r"[ _]", "")
    known = published_names() | spellings(own) | (names or {})
    # behind a name space as ConceptNet and CSKG write it: /r/IsA, at:xReact
    either = [written, written.str.replace(r"^(?:/r/|[a-z]+:)", "")]
    named = kept.with_columns(
        known=pl.coalesce(name.replace_strict(known, default=None, return_dtype=pl.String) for name in either)
    )
    unknown = named.filter(pl.col("known").is_null())["relation"].value_counts(sort=True)
    for name, count in unknown.head(MOST_NAMES).iter_rows():
        counts["relation", name] += count
    counts["relation", "others"] += int(unknown["count"][MOST_NAMES:].sum())
    found = named.drop_nulls("known").with_columns(relation="known")
    return Chunk(
        found.select(name for name in (*TRIPLES, "head_sense", "tail_sense") if name in found.columns), +counts
    )


def _own(path: str | Path | None) -> tuple[Relation, ...]:
    return () if path is None else tuple(read_relations(Path(path)))


def read_relations(path: Path) -> list[Relation]:
    """The relations of a table with columns relation, phrase and perhaps neutral_phrase, in its order. Blanks in a name
    become underscores, and a relation of the project keeps its name; one without a neutral phrase has its phrase
    twice."""
    wanted = {name: Column((name,), optional=name == SECOND) for name in ("relation", "phrase", SECOND)}
    rows, _ = read_table(path, wanted, remedy=f"; give {PHRASES}")
    if rows.is_empty():
        raise MitigateError(f"data.relations={path} has no rows; give {PHRASES}")
    faults, found, names = Counts(), dict[str, Relation](), spellings()
    for row in rows.iter_rows(named=True):
        name, phrase, other = (" ".join((row.get(column) or "").split()) for column in wanted)
        name = name.replace(" ", "_")
        if not name or not phrase:
            report(path, [(row["row"], f"a blank {'phrase' if name else 'relation'}")], faults)
        elif len(name) > LONGEST_NAME or not re.fullmatch(r"[\w-][\w.-]*", name):
            report(path, [(row["row"], f"invalid name {name!r}; allowed: {NAME}")], faults)
        elif earlier := found.get(spelt(name)):
            same = "the same relation: case, blanks and underscores do not count"
            report(path, [(row["row"], f"{name!r} after {earlier.name!r}, {same}")], faults)
        found.setdefault(spelt(name), Relation(names.get(spelt(name), name), phrase, other or phrase))
    describe(faults, None)
    return list(found.values())
