"""ATOMIC and ATOMIC-2020 as published: `head<TAB>relation<TAB>tail`, with that first line or without.

Tails that say that there is nothing to say ("none") are left out and counted."""

import polars as pl

from mitigate.load.lines import OnBadLine, check
from mitigate.load.stream import Block, Chunk, Met, Streamed, given, opened, text_blocks
from mitigate.load.table import open_table
from mitigate.load.triples_chunk import triples_chunk

EXPECTED = "head<TAB>relation<TAB>tail"
NAMES = {"objectuse": "UsedFor", "madeupof": "MadeOf", "hassubevent": "HasSubevent", "notdesires": "NotDesires"}
NOTHING = "the tail is 'none'"


def load(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The triples of a file, but for those whose relation has no phrase, which are counted. Raises MitigateError for
    a file that cannot be read or holds something else."""
    check(on_bad_line)
    place = given(path, "atomic")
    table = open_table(place, {"head": 1, "relation": 2, "tail": 3}, separator="\t", widths=(3,))

    def parse(block: Block) -> Chunk:
        met = Met()
        frame = table.frame(block, met)
        if block.first == 1:
            frame = frame.filter(~((pl.col("row") == 1) & (pl.col("head").str.to_lowercase() == "head")))
        nothing = pl.col("tail").str.strip_chars().str.to_lowercase() == "none"
        met["left out", NOTHING] += frame.filter(nothing).height
        return triples_chunk(place, frame.filter(~nothing), met, NAMES)

    return opened(Streamed(place, "triples", lambda: text_blocks(place), parse, EXPECTED, on_bad_line))
