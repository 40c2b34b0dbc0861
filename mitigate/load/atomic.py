"""ATOMIC and ATOMIC 2020 as published: `head<TAB>relation<TAB>tail`, with that first line or without, in one file or in
a folder with train.tsv, dev.tsv and test.tsv.

Tails that say that there is nothing to say ("none") are left out and counted."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.events import Persons, check_persons, published_names, without_persons
from mitigate.load.lines import OnBadLine, check
from mitigate.load.stream import Block, Chunk, Met, Streamed, given, opened, text_blocks
from mitigate.load.table import Table, open_table
from mitigate.load.triples_chunk import triples_chunk
from mitigate.relations import Relation, relations
from mitigate.triples import SPLITS

EXPECTED = "head<TAB>relation<TAB>tail"
ENDINGS = (".tsv", ".tsv.gz", ".txt")
NOTHING = "the tail is 'none'"


class Piece(NamedTuple):
    """A block of one of the files."""

    path: Path
    split: str
    block: Block
    share: float  # of all files read so far, each counting alike


def load(path: str | None, on_bad_line: OnBadLine = "error", persons: Persons = "kept") -> Streamed:
    """The triples of a file, of split train, or of a folder's files by their splits, but for those whose relation has
    no phrase, which are counted.

    persons: "kept", as published, or "verbalised": PersonX is "this person", PersonY "another person" and "___"
    "something", in triples and in phrases. Raises MitigateError for a file that cannot be read or holds something else,
    and for a folder without such files."""
    check(on_bad_line)
    check_persons(persons)
    place = given(path, "atomic")
    splits = _splits(place) if place.is_dir() else {place: "train"}
    tables = {file: _table(file) for file in splits}
    own = _verbalised() if persons == "verbalised" else ()

    def pieces() -> Iterator[Piece]:
        for number, (file, split) in enumerate(splits.items()):
            for block in text_blocks(file):
                yield Piece(file, split, block, (number + block.share) / len(splits))

    def parse(piece: Piece) -> Chunk:
        met = Met()
        frame = tables[piece.path].frame(piece.block, met)
        if piece.block.first == 1:
            frame = frame.filter(~((pl.col("row") == 1) & (pl.col("head").str.to_lowercase() == "head")))
        nothing = pl.col("tail").str.strip_chars().str.to_lowercase() == "none"
        met["left out", NOTHING] += frame.filter(nothing).height
        rows = frame.filter(~nothing).with_columns(split=pl.lit(piece.split))
        chunk = triples_chunk(piece.path, rows, met, published_names(), own, blanks=True)
        if persons == "kept":
            return chunk
        return chunk._replace(rows=chunk.rows.with_columns(without_persons(pl.col(end)) for end in ("head", "tail")))

    files = tuple(splits) if place.is_dir() else ()
    return opened(Streamed(place, "triples", pieces, parse, EXPECTED, on_bad_line, own, files=files))


def _table(path: Path) -> Table:
    return open_table(path, {"head": 1, "relation": 2, "tail": 3}, separator="\t", widths=(3,))


def _splits(folder: Path) -> dict[Path, str]:
    """The files of a folder and their splits, training first: train.tsv, or atomic_train.tsv."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), None)
        split = SPLITS.get(path.name.removesuffix(ending).split("_")[-1].lower()) if ending else None
        if split in found:
            raise MitigateError(f"{folder} has {found[split].name} and {path.name}, both of split {split}; leave one")
        if split is not None:
            found[split] = path
    if "train" not in found:
        names = ", ".join(path.name for path in sorted(folder.iterdir())[:5]) or "nothing"
        raise MitigateError(
            f"data.path={folder} has no train.tsv, but {names}; give a folder with train.tsv and, where you have them, "
            "dev.tsv and test.tsv, or one file"
        )
    return {found[split]: split for split in ("train", "dev", "test") if split in found}


def _verbalised() -> tuple[Relation, ...]:
    """The relations of ATOMIC whose wordings name PersonX, without."""
    known = [relations()[name] for name in dict.fromkeys(published_names().values())]
    wordings = ("phrase", "neutral_phrase", "comet_words")
    frame = pl.DataFrame([[getattr(one, wording) for wording in wordings] for one in known], wordings, orient="row")
    rows = frame.with_columns(without_persons(pl.col(wording)) for wording in wordings).iter_rows(named=True)
    worded = [replace(one, **row) for one, row in zip(known, rows, strict=True)]
    return tuple(new for old, new in zip(known, worded, strict=True) if new != old)
