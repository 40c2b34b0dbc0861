"""The checks that all loaders of triples share: a relation has to be in the list of relations, an empty field is a bad
line, underscores are spaces."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.load.stream import MOST_NAMES, Chunk, Met, bad
from mitigate.triples import SPLITS
from mitigate.words.events import published_names
from mitigate.words.relations import Relation, spellings

OTHER_LANGUAGE = "neither end is English"
ONE_END = "one end is not English (another language, or an address)"
NOT_VALID = "labelled 0 (not valid), which nothing is trained on"
LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


def triples_chunk(
    path: Path,
    frame: pl.DataFrame,
    met: Met,
    names: dict[str, str] | None = None,
    own: Sequence[Relation] = (),
    blanks: bool = False,
) -> Chunk:
    """The rows (row, head, relation, tail, perhaps split and valid) as TRIPLES; all valid and of split train where the
    rows do not say. Case is folded, as in the harms paper, and repeats stay. Rows with a relation that has no phrase
    are counted in `met`, as are training triples that are not valid; blank fields and unknown splits and labels are bad
    lines.

    names: what relations of relations.csv are called in this resource, where that is not their name. own: relations
    besides those. blanks: whether underscores stand for something that is left open ("buys ___"), and so stay."""
    text = pl.col("head", "tail")
    plain = frame.with_columns(
        (text if blanks else text.str.replace_all("_", " ", literal=True)).str.strip_chars().str.to_lowercase(),
        pl.col("relation").str.strip_chars(),
    )
    blank = pl.any_horizontal(pl.col("head", "relation", "tail").fill_null("") == "")
    faulty = plain.filter(blank)
    bad(met, (f"{path}:{row}: a blank field" for row in faulty["row"].unique(maintain_order=True)))
    plain = _labelled(path, _split(path, plain.filter(~blank), met), met)
    spelt = pl.col("relation").str.to_lowercase().str.replace_all(r"[ _]", "")
    known = published_names() | spellings(own) | (names or {})
    # behind a name space as ConceptNet and CSKG write it: /r/IsA, at:xReact
    written = [spelt, spelt.str.replace(r"^(?:/r/|[a-z]+:)", "")]
    named = plain.with_columns(
        known=pl.coalesce(name.replace_strict(known, default=None, return_dtype=pl.String) for name in written)
    )
    unknown = named.filter(pl.col("known").is_null())["relation"].value_counts(sort=True)
    for name, count in unknown.head(MOST_NAMES).iter_rows():
        met["relation", name] += count
    if others := sum(unknown["count"][MOST_NAMES:]):
        met["relation", "others"] += others
    rows = named.drop_nulls("known").select("row", "split", "head", pl.col("known").alias("relation"), "tail", "valid")
    return Chunk(rows, +met)


def _split(path: Path, rows: pl.DataFrame, met: Met) -> pl.DataFrame:
    """The rows with their split by its name here."""
    if "split" not in rows.columns:
        return rows.with_columns(split=pl.lit("train"))
    return _renamed(path, rows, "split", SPLITS, "; data.columns={split: null} takes no notice of the column", met)


def _labelled(path: Path, rows: pl.DataFrame, met: Met) -> pl.DataFrame:
    """The rows with their labels, but for training triples that are not valid."""
    if "valid" not in rows.columns:
        return rows.with_columns(valid=pl.lit(True))
    known = _renamed(path, rows, "valid", LABELS, " (1: a valid triple)", met)
    kept = known.filter(pl.col("valid") | (pl.col("split") != "train"))
    met["left out", NOT_VALID] += known.height - kept.height
    return kept


def _renamed(path: Path, rows: pl.DataFrame, column: str, names: dict[str, Any], more: str, met: Met) -> pl.DataFrame:
    """The rows with the column's words renamed; those with another word are bad lines."""
    word = pl.col(column).fill_null("").str.strip_chars().str.to_lowercase()
    dtype = pl.Series(list(names.values())).dtype
    renamed = rows.with_columns(renamed=word.replace_strict(names, default=None, return_dtype=dtype))
    wrong = renamed.filter(pl.col("renamed").is_null()).select("row", column)
    allowed = ", ".join(names)
    bad(met, (f"{path}:{row}: {column} {given!r}; allowed: {allowed}{more}" for row, given in wrong.iter_rows()))
    return renamed.drop_nulls("renamed").drop(column).rename({"renamed": column})
