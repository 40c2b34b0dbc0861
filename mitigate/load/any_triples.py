"""A user's file of triples of any size: CSV, TSV, JSON or Parquet, with any names of columns. Tables of KGTK, as CSKG
is published, are recognised by their columns."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.columns import Column, Columns
from mitigate.load.conceptnet_format import triples_chunk
from mitigate.load.file_format import Layout, layout_of
from mitigate.load.lines import OnBadLine, check
from mitigate.load.relations_file import read_relations
from mitigate.load.stream import Chunk, Counts, Streamed, checked, path_of
from mitigate.load.table import open_table
from mitigate.words.targets import targets

NAMES = ("head", "relation", "tail")
KGTK = {"head": "node1;label", "relation": "relation", "tail": "node2;label"}
SPLIT, VALID = "split", "valid"
SEVERAL = "node with several labels (a|b): a target among them is used, else the first"
REMEDY = (
    ". Name its columns with data.columns={head: ..., relation: ..., tail: ...}; in a file without a header line, by "
    "their numbers from 1"
)


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
    check(on_bad_line)
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
