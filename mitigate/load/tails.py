"""A file of tails in place of a generator: read and checked (probe.tails opens it as a generator)."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import Counts, describe, filled, path_of, report
from mitigate.load.table import Column, layout_of, read_table
from mitigate.words.relations import Relation, spellings, spelt, with_own

LISTS = ("generations", "tails")  # columns of lists in place of `tail`


def locate(path: str | None) -> Path:
    """Return the path of the file after checking it. Raises MitigateError as read_tails."""
    place = path_of(path, "tails", "FILE.tsv, a file with columns head, relation, tail", group="model")
    read_tails(place)
    return place


def read_tails(folder: Path) -> pl.DataFrame:
    """Read a file of tails (head, relation, tail, score): CSV, TSV, JSON or Parquet with the columns relation and tail,
    and perhaps head and score; a row may list a prompt's tails as `generations`. Tails of a prompt come by falling
    score, else in the file's order. Rows without a head apply to every head. check_relations checks the relations.

    Raises MitigateError for a file that is missing or cannot be read, lacks a column, or has a row without a tail or
    with a score that is not a number."""
    counts = Counts()
    rows = filled(folder, _rows(folder), ("relation", "tail"), counts)
    given = rows["score"].replace("", None)
    scores = given.cast(pl.Float64, strict=False)
    wrong = rows.filter(scores.is_null() & given.is_not_null()).select("row", "score").rows()
    report(folder, ((row, f"the score {score!r} is not a number") for row, score in wrong), counts)
    describe(counts, None)
    if rows.is_empty():
        raise MitigateError(f"{folder} has no rows; expected head, relation and tail in each")
    found = rows.with_columns(scores.fill_nan(None).alias("score"))
    return found.sort("score", "row", descending=[True, False], nulls_last=True)


def check_relations(path: Path, own: Iterable[Relation] = ()) -> None:
    """Raise MitigateError for a row whose relation is neither the project's nor one of a user's own. Case, blanks and
    underscores do not distinguish relations."""
    further = list(own)
    named = _rows(path).select("row", "relation").unique("relation", keep="first", maintain_order=True)
    allowed = spellings(further)
    for row, name in named.iter_rows():
        if name is not None and spelt(name) in allowed:
            continue
        hint = "" if further else "; for relations of your own triples, set data=triples data.relations=FILE.csv"
        raise MitigateError(f"{path}:{row}: {one_of('relation', str(name), with_own(further))}{hint}")


def _rows(path: Path) -> pl.DataFrame:
    """Read the file: row, head (null where there is none), relation, tail, score (the same), as text."""
    if not path.is_file():
        raise MitigateError(f"model.path={path}: no such file; give one with columns head, relation, tail")
    layout = layout_of(path)
    is_listed = "tail" not in layout.lower
    wanted = {
        "relation": Column(("relation",)),
        "tail": Column(("tail", *LISTS), lists=is_listed),
        "head": Column(("head",), optional=True),
        "score": Column(("score",), optional=True),
    }
    rows, _ = read_table(path, wanted, layout=layout, remedy="; required: relation, tail; optional: head, score")
    rows = rows.explode("tail").drop_nulls("tail") if is_listed else rows
    absent = [pl.lit(None, pl.String).alias(name) for name in wanted if name not in rows.columns]
    plain = rows.with_columns(absent).with_columns(pl.col("head", "relation", "tail", "score").str.strip_chars())
    return plain.select("row", pl.col("head").replace("", None), "relation", "tail", "score")
