"""ATOMIC and ATOMIC 2020 as published, in one file or in a folder with files of train, dev and test: lines
`head<TAB>relation<TAB>tail`, with that first line or without; ATOMIC 2019's own CSV (an event, a column of lists for
each of nine relations, prefix, split); and the same columns in JSON lines and Parquet.

Tails "none" are left out and counted, separately from lists without a tail."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import Chunk, Counts, OnBadLine, Streamed, checked, path_of
from mitigate.load.table import TABLES, Column, Table, layout_of, open_table
from mitigate.load.triples import NAMES, triples_chunk
from mitigate.package_data import rows_of
from mitigate.triples import SPLITS
from mitigate.words.events import Persons, check_persons, published_names, without_persons
from mitigate.words.relations import Relation, relations

EXPECTED = "head<TAB>relation<TAB>tail"
EVENT, SPLIT = "event", Column(("split",), optional=True)
ENDINGS = tuple(f"{ending}{packed}" for packed in (".gz", "") for ending in (*TABLES, ".txt"))
NOTHING = "the tail is 'none'"
EMPTY = "an empty list of tails: no annotator was asked, or none answered"


class Piece(NamedTuple):
    """A block of one of the files."""

    path: Path
    split: str
    block: Any
    share: float  # of all files read so far, each with equal weight


def load(path: str | None, on_bad_line: OnBadLine = "error", persons: Persons = "kept") -> Streamed:
    """The triples of a file (split train unless it has a column of splits), or of a folder's files by their splits.
    Those whose relation has no phrase are left out and counted.

    persons: "kept", as published, or "verbalised": PersonX is "this person", PersonY "another person" and "___"
    "something", in triples and in phrases. Raises MitigateError for a file that cannot be read or has other content,
    and for a folder without such files."""
    check_persons(persons)
    place = path_of(path, "atomic")
    splits = _splits(place) if place.is_dir() else {place: "train"}
    tables = {file: _table(file) for file in splits}
    own = _verbalised() if persons == "verbalised" else ()

    def pieces() -> Iterator[Piece]:
        for number, (file, split) in enumerate(splits.items()):
            for block in tables[file].blocks():
                yield Piece(file, split, block, (number + block.share) / len(splits))

    def parse(piece: Piece) -> Chunk:
        counts = Counts()
        frame = _one_a_row(tables[piece.path].frame(piece.block, counts), counts)
        nothing = (pl.col("tail").str.strip_chars().str.to_lowercase() == "none").fill_null(False)
        counts["left out", NOTHING] += frame.filter(nothing).height
        split = "split" if "split" in frame.columns else pl.lit(piece.split)
        rows = frame.filter(~nothing).with_columns(split=split)
        chunk = triples_chunk(piece.path, rows, counts, published_names(), own, blanks=True)
        if persons == "kept":
            return chunk
        return chunk._replace(rows=chunk.rows.with_columns(without_persons(pl.col(end)) for end in ("head", "tail")))

    files = tuple(splits) if place.is_dir() else ()
    return checked(Streamed(place, "triples", pieces, parse, EXPECTED, on_bad_line, own, files=files))


def _table(path: Path) -> Table:
    layout = layout_of(path)
    names = {name.strip().lower() for name in layout.names}
    lists = {name: Column((name,), lists=True) for name in _listed() if name.lower() in names}
    if EVENT in names and lists:
        return open_table(path, {"head": EVENT, **lists, "split": SPLIT}, layout=layout)
    if names >= set(NAMES) or layout.form not in ("table", "lines"):
        return open_table(
            path, {**dict(zip(NAMES, NAMES, strict=True)), "split": SPLIT}, layout=layout, stray_quotes=True
        )
    places = {"head": 1, "relation": 2, "tail": 3}
    return open_table(path, places, separator="\t", widths=(3,), layout=layout, stray_quotes=True)


def _listed() -> list[str]:
    """The relations of ATOMIC 2019, each a column of lists in its CSV."""
    return [row["atomic"] for row in rows_of("atomic_relations.csv") if row["atomic"]]


def _one_a_row(frame: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """The frame with a row for each tail, from one with a column of lists for each relation."""
    lists = [name for name in frame.columns if name in _listed()]
    if not lists:
        return frame
    index = [name for name in frame.columns if name not in lists]
    long = frame.unpivot(lists, index=index, variable_name="relation", value_name="tail").sort(
        "row", maintain_order=True
    )
    is_empty = (pl.col("tail").list.len() == 0).fill_null(True)
    counts["left out", EMPTY] += long.filter(is_empty).height
    return long.filter(~is_empty).explode("tail")


def _splits(folder: Path) -> dict[Path, str]:
    """The files of a folder and their splits, training first: train.tsv, atomic_train.tsv, v4_atomic_trn.csv,
    train-00000-of-00001.parquet."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        ending = next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)
        name = re.sub(r"-\d+-of-\d+$", "", path.name.lower().removesuffix(ending)) if ending else ""
        split = SPLITS.get(name.split("_")[-1])
        if split in found:
            raise MitigateError(
                f"{folder} has {found[split].name} and {path.name}, both of split {split}; expected one file a split. "
                "Remove one of them"
            )
        if split is not None:
            found[split] = path
    if "train" not in found:
        names = ", ".join(path.name for path in sorted(folder.iterdir())[:5]) or "nothing"
        raise MitigateError(
            f"data.path={folder} has no train.tsv (found: {names}); give a folder with train.tsv and, optionally, "
            "dev.tsv and test.tsv, or a single file"
        )
    return {found[split]: split for split in ("train", "dev", "test") if split in found}


def _verbalised() -> tuple[Relation, ...]:
    """The relations of ATOMIC whose wordings name PersonX, worded without it."""
    published = [relations()[name] for name in dict.fromkeys(published_names().values())]
    wordings = ("phrase", "neutral_phrase", "comet_words")
    frame = pl.DataFrame([[getattr(one, wording) for wording in wordings] for one in published], wordings, orient="row")
    rows = frame.with_columns(without_persons(pl.col(wording)) for wording in wordings).iter_rows(named=True)
    worded = [replace(one, **row) for one, row in zip(published, rows, strict=True)]
    return tuple(new for old, new in zip(published, worded, strict=True) if new != old)
