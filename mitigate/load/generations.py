"""Tails that another system generated, as JSON lines: {"head": ..., "relation": ..., "generations": [...]}, as
COMET-ATOMIC 2020 (Hwang et al. 2021) publishes its systems' outputs, or with "tails" or "tail" in its place, as kogito
writes them; a JSON array of such objects, or a Parquet file with such columns.

Where a line has generations, its tails are people's references, and are not read. Generations "none", and empty ones,
are left out and counted."""

from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.columns import Column
from mitigate.load.conceptnet_format import triples_chunk
from mitigate.load.lines import OnBadLine, check
from mitigate.load.relations_file import read_relations
from mitigate.load.stream import Chunk, Counts, Streamed, checked, path_of
from mitigate.load.table import open_table
from mitigate.words.events import published_names

IN_FACT = "fact."  # GPT's outputs there have head and relation in it
GENERATED = tuple(f"{place}{name}" for name in ("generations", "tails", "tail") for place in ("", IN_FACT))
COLUMNS = {
    "head": Column(("head", f"{IN_FACT}head")),
    "relation": Column(("relation", f"{IN_FACT}relation")),
    "tail": Column(GENERATED, lists=True),
    "prompt": Column(("prompt",), optional=True),
}
EXPECTED = '{"head": ..., "relation": ..., "generations": [...]}'
EMPTY = "nothing was generated: null or an empty list"
NOTHING = {"none": "the generation is 'none'", "": "the generation is empty"}


def load(
    path: str | None, on_bad_line: OnBadLine = "error", top: int | None = None, relations: str | Path | None = None
) -> Streamed:
    """The generations of a file as triples, the first `top` of each line (None: all), in their order. Those whose
    relation has no phrase are left out and counted. A row is the number of its line.

    relations: a file with phrases for further relations (relations_file). Raises MitigateError for a file that cannot
    be read or has other content, for fewer than one generation, and, unless on_bad_line is "skip", for lines that are
    no such objects."""
    check(on_bad_line)
    if top is not None and top < 1:
        raise MitigateError(f"data.top={top} must be at least 1, or null for all generations of a line")
    place = path_of(path, "generations")
    own = () if relations is None else tuple(read_relations(Path(relations)))
    table = open_table(place, COLUMNS, remedy=f"; expected lines '{EXPECTED}'. Other triples: data=triples")

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
