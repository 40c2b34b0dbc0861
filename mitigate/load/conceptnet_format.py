"""Files of triples in ConceptNet's formats: `relation<TAB>head<TAB>tail`, in training files optionally followed by a
score, in dev and test files by a 0/1 label. Faults are named by file and line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import OnBadLine, check, fields, first, read_lines, report_faults
from mitigate.load.stream import MOST_NAMES, Chunk, Counts, Loaded, bad
from mitigate.triples import SPLITS, TRIPLES
from mitigate.words.events import published_names
from mitigate.words.outside_text import counted
from mitigate.words.relations import Relation, relations, spellings

OTHER_LANGUAGE = "neither end is English"
ONE_END = "one end is not English (another language, or an address)"
NOT_VALID = "labelled 0 (not valid), not used for training"
LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


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
    rows = named.drop_nulls("known").select("row", "split", "head", pl.col("known").alias("relation"), "tail", "valid")
    return Chunk(rows, +counts)


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
