"""A file of one's own sentences of any size: one a line, or a column of a CSV, TSV, JSON-lines or Parquet file. Which
targets they are about is for the audit to find."""

from pathlib import Path

import polars as pl

from mitigate.load.any_triples import columns_of
from mitigate.load.lines import OnBadLine, check
from mitigate.load.stream import Chunk, Met, Streamed, given, opened
from mitigate.load.table import Columns, Table, open_lines, open_table


def load(path: str | None, on_bad_line: OnBadLine = "error", columns: Columns | None = None) -> Streamed:
    """The sentences of a file, case folded; repeats stay.

    columns: {"statement": what its column is called, or its place, from 1}; without it each line of the file is a
    sentence. Raises MitigateError for a file that cannot be read, or without such a column."""
    check(on_bad_line)
    place = given(path, "sentences")
    table = open_table(place, columns_of(columns, ("statement",))) if columns else open_lines(place, "statement")
    return streamed(place, table, on_bad_line)


def streamed(path: Path, table: Table, on_bad_line: OnBadLine) -> Streamed:
    """Sentences from a table with a column `statement`, and perhaps `term`."""

    def parse(block: object) -> Chunk:
        met = Met()
        frame = table.frame(block, met)
        term = pl.col("term") if "term" in frame.columns else pl.lit(None, dtype=pl.String)
        said = frame.select("row", _plain(term).alias("term"), _plain(pl.col("statement")).alias("statement"))
        blank = pl.col("statement").fill_null("") == ""
        met["noted", "rows without a sentence"] += said.filter(blank).height
        return Chunk(said.filter(~blank), +met)

    return opened(Streamed(path, "sentences", table.blocks, parse, "a sentence", on_bad_line))


def _plain(text: pl.Expr) -> pl.Expr:
    return text.str.strip_chars().str.to_lowercase()
