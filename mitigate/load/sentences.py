"""Sentences of files of any size: one for each line, or a column of a table. The audit finds the targets that they are
about.

GenericsKB is read as published: GenericsKB-Best.tsv and its like, whose first line names SOURCE, TERM, QUANTIFIER,
GENERIC SENTENCE and SCORE; the same under the names of the Hugging Face hub; its JSON lines, of which context is not
read; or the plain form of one sentence a line."""

import sys
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import (
    BLANK,
    Chunk,
    Counts,
    Loaded,
    OnBadLine,
    Streamed,
    checked,
    describe,
    path_of,
)
from mitigate.load.table import Column, Columns, Layout, Place, Table, layout_of, open_lines, open_table, read_all
from mitigate.load.triples import columns_of
from mitigate.words.outside_text import counted

NAMES = ("statement", "text", "sentence")  # of the default column
NAME_IT = "'data.columns={statement: NAME}'"
STANDARD_INPUT = "-"
STATEMENT = ("generic sentence", "generic_sentence", "knowledge.sentence", "sentence")
TERM = ("term", "knowledge.key_concept", "concept_name")
GENERICSKB = {"statement": Column(STATEMENT), "term": Column(TERM, optional=True)}
REMEDY = f"; GenericsKB has {' or '.join(STATEMENT)}. For another table, set data=sentences data.path=FILE {NAME_IT}"


def load(path: str | None, on_bad_line: OnBadLine = "error", columns: Columns | None = None) -> Streamed:
    """The sentences of a file; repeats stay.

    columns: {"statement": the name of its column, or its place, from 1}; without it each line of a plain text is a
    sentence, and a table has a column of NAMES. Raises MitigateError for a file that cannot be read, or without such a
    column."""
    place = path_of(path, "sentences")
    column = columns_of(columns, ("statement",))["statement"] if columns else None
    return streamed(place, open_texts(place, column, NAME_IT), on_bad_line)


def genericskb(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The sentences of a file, with the term of each in lower case where the file has it. Raises MitigateError for a
    file that cannot be read, or is another table."""
    place = path_of(path, "genericskb")
    layout = layout_of(place)
    if layout.form == "lines":
        return streamed(place, open_lines(place), on_bad_line)
    table = open_table(place, GENERICSKB, layout=layout, remedy=REMEDY, stray_quotes=True)
    return streamed(place, table, on_bad_line)


def open_texts(path: Path, column: Place | None, name_it: str, content: bytes | None = None) -> Table:
    """A table with one column, `statement`: the lines of a plain text, or the column of a table; None: the one of
    NAMES, or the only one. A file that looks like a table is never read as lines.

    name_it: the setting that names the column. content: the content in place of the file's. Raises MitigateError for a
    table whose column is not named."""
    layout = layout_of(path, content)
    if layout.form == "lines" and column is None:
        return open_lines(path, content)
    found = _found(path, layout, name_it) if column is None else column
    remedy = f"; name the column of the texts: {name_it}"
    return open_table(path, {"statement": found}, layout=layout, remedy=remedy, content=content)


def _found(path: Path, layout: Layout, name_it: str) -> str:
    """The column of the texts."""
    lower = [name.strip().lower() for name in layout.names]
    only = layout.names[0] if len(lower) == 1 else None
    if only and layout.form == "table" and (only.rstrip().endswith((".", "!", "?")) or len(only.split()) > 2):
        raise MitigateError(
            f"{path}: its first line is a text, not a column name: {only[:60]!r}. Add a first line with the column "
            "name, such as text, or rename the file to .txt: there each line is a text"
        )
    found = next((name for name in NAMES if name in lower), only if layout.names else NAMES[0])
    if found is None:
        raise MitigateError(f"{path} is {layout.shown}; name the column of the texts: {name_it}")
    return found


def streamed(path: Path, table: Table, on_bad_line: OnBadLine) -> Streamed:
    """Sentences from a table with a column `statement`, and perhaps `term`."""

    def parse(block: object) -> Chunk:
        counts = Counts()
        frame = table.frame(block, counts)
        term = pl.col("term") if "term" in frame.columns else pl.lit(None, dtype=pl.String).alias("term")
        rows = frame.select("row", term.str.strip_chars().str.to_lowercase(), pl.col("statement").str.strip_chars())
        blank = pl.col("statement").fill_null("") == ""
        counts["noted", "row without a sentence"] += rows.filter(blank).height
        return Chunk(rows.filter(~blank), +counts)

    return checked(Streamed(path, "sentences", table.blocks, parse, "a sentence", on_bad_line))


def load_texts(path: str, column: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """The texts of a file, or of standard input ("-"): row, statement. Empty ones are left out and counted.

    column: of a table; None: `statement`, `text` or `sentence`, or the only one. Raises MitigateError for a file that
    cannot be read or has no text, for a column that is not there, and, unless on_bad_line is "skip", for bad lines."""
    content = sys.stdin.buffer.read() if path == STANDARD_INPUT else None
    place = Path(path if content is None else "standard input")
    table = open_texts(place, column, "recipe.column=NAME", content)
    rows, counts = read_all(table)
    blank = pl.col("statement").fill_null("").str.strip_chars() == ""
    left_out = rows.filter(blank).height + counts.pop(("noted", BLANK), 0)
    notices = describe(counts, on_bad_line)
    kept = rows.filter(~blank)
    if kept.is_empty():
        raise MitigateError(f"{place} has no text to label")
    notices += [f"{counted(left_out, 'empty text')} left out; `row` counts them too"] if left_out else []
    return Loaded(kept, notices, kind="statements")
