"""Triples of files of any size: a user's own in any table, those that another system generated, and relations of a
user's own with their phrases. Tables of KGTK, as CSKG is published, are recognised by their columns.

Generations are JSON lines {"head": ..., "relation": ..., "generations": [...]}, as COMET-ATOMIC 2020 (Hwang et al.
2021) publishes its systems' outputs, or with "tails" or "tail" in its place, as kogito writes them; a JSON array of
such objects, or a Parquet file with such columns. Where a line has generations, its tails are people's references, and
are not read. Generations "none", and empty ones, are left out and counted."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import MOST_NAMES, Chunk, Counts, OnBadLine, Streamed, bad, checked, path_of
from mitigate.load.table import Column, Columns, Layout, layout_of, open_table, read_table
from mitigate.settings import LONGEST_NAME, NAME
from mitigate.triples import SPLITS, TRIPLES
from mitigate.words.events import published_names
from mitigate.words.outside_text import counted
from mitigate.words.relations import Relation, spellings, spelt
from mitigate.words.targets import targets

NAMES = ("head", "relation", "tail")
KGTK = {"head": "node1;label", "relation": "relation", "tail": "node2;label"}
SPLIT, VALID = "split", "valid"
SEVERAL = "node with several labels (a|b): a target among them is used, else the first"
REMEDY = (
    ". Name its columns with data.columns={head: ..., relation: ..., tail: ...}; in a file without a header line, by "
    "their numbers from 1"
)
NOT_VALID = "labelled 0 (not valid), not used for training"
LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
NEEDED, SECOND = ("relation", "phrase"), "neutral_phrase"
SHOWN = "a table such as\n  relation,phrase,neutral_phrase\n  Mentors,is a mentor of,works with"
IN_FACT = "fact."  # GPT's outputs there have head and relation in it
GENERATED = tuple(f"{place}{name}" for name in ("generations", "tails", "tail") for place in ("", IN_FACT))
GENERATIONS = {
    "head": Column(("head", f"{IN_FACT}head")),
    "relation": Column(("relation", f"{IN_FACT}relation")),
    "tail": Column(GENERATED, lists=True),
    "prompt": Column(("prompt",), optional=True),
}
EXPECTED = '{"head": ..., "relation": ..., "generations": [...]}'
EMPTY = "nothing was generated: null or an empty list"
NOTHING = {"none": "the generation is 'none'", "": "the generation is empty"}


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
    for further relations (relations_file).

    Raises MitigateError for a file that cannot be read, lacks such columns, or has other content."""
    place = path_of(path, "triples")
    own = () if relations is None else tuple(read_relations(Path(relations)))
    layout = layout_of(place)
    wanted = _wanted(layout, columns)
    table = open_table(place, wanted, layout=layout, remedy=REMEDY)
    labelled = [end for end in ("head", "tail") if str(wanted[end]).endswith(";label")]

    def parse(block: object) -> Chunk:
        counts = Counts()
        frame = table.frame(block, counts).with_columns(_one_label(pl.col(end)) for end in labelled)
        for end in labelled:
            counts["noted", SEVERAL] += int(frame[end].struct.field("several").sum())
        frame = frame.with_columns(pl.col(end).struct.field("label").alias(end) for end in labelled)
        return triples_chunk(place, frame, counts, own=own)

    expected = " ".join(str(wanted[name]) for name in NAMES)
    resource = Streamed(place, "triples", table.blocks, parse, expected, on_bad_line, own, needs_phrases=True)
    return checked(resource)


def _wanted(layout: Layout, columns: Columns | None) -> dict[str, str | int | Column]:
    """The source of each column, optional ones included. Raises MitigateError for another column."""
    there = {name.strip().lower() for name in layout.names}
    if columns is None and not there >= set(NAMES) and set(KGTK.values()) <= there:
        return dict(KGTK)
    found: dict[str, str | int | Column] = dict(columns_of(columns, NAMES, (SPLIT, VALID)))
    by_number = all(isinstance(place, int) for place in found.values())
    if SPLIT not in (columns or ()) and not by_number:
        found[SPLIT] = Column((SPLIT,), optional=True)
    return found


def _one_label(labels: pl.Expr) -> pl.Expr:
    """The first of a node's labels in KGTK's form ("lawyer|attorney", "'lawyer'@en") that is a target, else the first;
    and whether there are several."""
    parts = labels.str.replace_all(r"\|", "\0", literal=True).str.split("|")  # an escaped bar is no separator
    plain = parts.list.eval(
        pl.element().str.replace("\0", "|", literal=True).str.replace(r"^'(.*)'@[\w-]+$", "$1").str.strip_chars()
    )
    spoken = plain.list.eval(pl.element().str.to_lowercase().str.replace_all("_", " ", literal=True))
    about = spoken.list.eval(pl.element().filter(pl.element().is_in(list(targets()))))
    label = pl.coalesce(about.list.first(), plain.list.first())
    return pl.struct(label=label, several=(parts.list.len() > 1).fill_null(False)).alias(labels.meta.output_name())


def columns_of(
    given_names: Columns | None, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, str | int]:
    """The source of each of the project's columns, and of the optional ones that are named. Raises MitigateError for an
    unknown column."""
    found = dict(given_names) if isinstance(given_names, Mapping) else {}
    if (given_names and not found) or set(found) - {*names, *optional}:
        perhaps = f"; optional: {', '.join(optional)}" if optional else ""
        raise MitigateError(
            f"data.columns={given_names} must be {{{', '.join(f'{name}: ...' for name in names)}}}, the names of the "
            f"file's columns or their numbers from 1{perhaps}"
        )
    wanted = {name: found.get(name) or name for name in names}
    return wanted | {name: place for name in optional if (place := found.get(name)) is not None}


def generations(
    path: str | None, on_bad_line: OnBadLine = "error", top: int | None = None, relations: str | Path | None = None
) -> Streamed:
    """The generations of a file as triples, the first `top` of each line (None: all), in their order. Those whose
    relation has no phrase are left out and counted. A row is the number of its line.

    relations: a file with phrases for further relations (relations_file). Raises MitigateError for a file that cannot
    be read or has other content, for fewer than one generation, and, unless on_bad_line is "skip", for lines that are
    no such objects."""
    if top is not None and top < 1:
        raise MitigateError(f"data.top={top} must be at least 1, or null for all generations of a line")
    place = path_of(path, "generations")
    own = () if relations is None else tuple(read_relations(Path(relations)))
    table = open_table(place, GENERATIONS, remedy=f"; expected lines '{EXPECTED}'. Other triples: data=triples")

    def parse(block: object) -> Chunk:
        counts = Counts()
        rows = _generations(table.frame(block, counts), top, counts)
        return triples_chunk(place, rows, counts, published_names(), own, blanks=True)

    return checked(Streamed(place, "triples", table.blocks, parse, EXPECTED, on_bad_line, own))


def _generations(frame: pl.DataFrame, top: int | None, counts: Counts) -> pl.DataFrame:
    """A row for each generation with content, in one line; the others are counted."""
    is_empty = (pl.col("tail").list.len() == 0).fill_null(True)
    counts["left out", EMPTY] += frame.filter(is_empty).height
    tails = (
        frame.filter(~is_empty).with_columns(pl.col("tail").list.head(top or pl.col("tail").list.len())).explode("tail")
    )
    prompt = pl.col("prompt").fill_null("") if "prompt" in frame.columns else pl.lit("")
    text = pl.col("tail").fill_null("").str.strip_prefix(prompt).str.replace_all(r"\s+", " ").str.strip_chars()
    one_line = tails.with_columns(text.alias("tail"))
    nothing = pl.col("tail").str.to_lowercase()
    for word, what in NOTHING.items():
        counts["left out", what] += one_line.filter(nothing == word).height
    return one_line.filter(~nothing.is_in(list(NOTHING)))


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
    text = pl.col("head", "tail")
    plain = frame.with_columns(
        (text if blanks else text.str.replace_all("_", " ", literal=True)).str.strip_chars().str.to_lowercase(),
        pl.col("relation").str.strip_chars(),
    )
    blank = pl.any_horizontal(pl.col("head", "relation", "tail").fill_null("") == "")
    faulty = plain.filter(blank)
    bad(counts, (f"{path}:{row}: a blank field" for row in faulty["row"].unique(maintain_order=True)))
    plain = _labelled(path, _split(path, plain.filter(~blank), counts), counts)
    spelt = pl.col("relation").str.to_lowercase().str.replace_all(r"[ _]", "")
    known = published_names() | spellings(own) | (names or {})
    # behind a name space as ConceptNet and CSKG write it: /r/IsA, at:xReact
    written = [spelt, spelt.str.replace(r"^(?:/r/|[a-z]+:)", "")]
    named = plain.with_columns(
        known=pl.coalesce(name.replace_strict(known, default=None, return_dtype=pl.String) for name in written)
    )
    unknown = named.filter(pl.col("known").is_null())["relation"].value_counts(sort=True)
    for name, count in unknown.head(MOST_NAMES).iter_rows():
        counts["relation", name] += count
    if others := sum(unknown["count"][MOST_NAMES:]):
        counts["relation", "others"] += others
    rows = named.drop_nulls("known").with_columns(relation="known")
    return Chunk(rows.select(name for name in (*TRIPLES, "head_sense", "tail_sense") if name in rows.columns), +counts)


def _split(path: Path, rows: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """The rows with the project's names of splits."""
    if "split" not in rows.columns:
        return rows.with_columns(split=pl.lit("train"))
    return _renamed(path, rows, "split", SPLITS, "; to ignore the column, set data.columns={split: null}", counts)


def _labelled(path: Path, rows: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """The rows with their labels, without training triples that are not valid."""
    if "valid" not in rows.columns:
        return rows.with_columns(valid=pl.lit(True))
    known = _renamed(path, rows, "valid", LABELS, " (1: a valid triple)", counts)
    kept = known.filter(pl.col("valid") | (pl.col("split") != "train"))
    counts["left out", NOT_VALID] += known.height - kept.height
    return kept


def _renamed(
    path: Path, rows: pl.DataFrame, column: str, names: dict[str, Any], more: str, counts: Counts
) -> pl.DataFrame:
    """The rows with the column's words renamed; those with another word are bad lines."""
    word = pl.col(column).fill_null("").str.strip_chars().str.to_lowercase()
    dtype = pl.Series(list(names.values())).dtype
    renamed = rows.with_columns(renamed=word.replace_strict(names, default=None, return_dtype=dtype))
    wrong = renamed.filter(pl.col("renamed").is_null()).select("row", column)
    allowed = ", ".join(names)
    bad(counts, (f"{path}:{row}: {column} {given!r}; allowed: {allowed}{more}" for row, given in wrong.iter_rows()))
    return renamed.drop_nulls("renamed").drop(column).rename({"renamed": column})


def read_relations(path: Path) -> list[Relation]:
    """The relations of a CSV, TSV, JSON lines or Parquet file, in its order. Blanks in a name become underscores, and a
    relation of the project keeps its name; one without a neutral phrase has its phrase twice.

    Raises MitigateError for a file without the columns, for blank fields, names that are not letters, digits, dash,
    underscore or dot, and names that differ only by case, blanks and underscores."""
    wanted = {name: Column((name,), optional=name == SECOND) for name in (*NEEDED, SECOND)}
    rows, _ = read_table(path, wanted, remedy=f"; give {SHOWN}")
    texts = rows.select(pl.exclude("row").fill_null("").str.replace_all(r"\s+", " ").str.strip_chars())
    second = texts[SECOND] if SECOND in texts.columns else pl.repeat("", texts.height, eager=True)
    found = list(zip(rows["row"], texts["relation"].str.replace_all(" ", "_"), texts["phrase"], second, strict=True))
    if not found:
        raise MitigateError(f"data.relations={path} has no rows; give {SHOWN}")
    if faults := list(_faults(path, found)):
        raise MitigateError("\n  ".join([f"data.relations: {counted(len(faults), 'wrong line')}:", *faults]))
    names = spellings()
    return [Relation(names.get(spelt(name), name), phrase, other or phrase) for _, name, phrase, other in found]


def _faults(path: Path, rows: Iterable[tuple[int, str, str, str]]) -> Iterator[str]:
    earlier: dict[str, str] = {}
    for row, name, phrase, _ in rows:
        if not name or not phrase:
            yield f"{path}:{row}: a blank {'phrase' if name else 'relation'}"
        elif len(name) > LONGEST_NAME or not re.fullmatch(r"[\w-][\w.-]*", name):
            yield f"{path}:{row}: invalid name {name!r}; allowed: {NAME}"
        elif spelt(name) in earlier:
            yield (
                f"{path}:{row}: {name!r} after {earlier[spelt(name)]!r}, the same relation: case, blanks and "
                "underscores do not count"
            )
        earlier.setdefault(spelt(name), name)
