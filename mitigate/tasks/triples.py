"""Triples of a file, and the sample corpus, as tables: load."""

from pathlib import Path

import polars as pl

from mitigate.load import any_triples, sample
from mitigate.load.columns import Columns
from mitigate.load.lines import OnBadLine
from mitigate.runs.progress import notice

__all__ = ["read_triples", "sample_triples"]


def read_triples(
    path: str | Path,
    columns: Columns | None = None,
    on_bad_line: OnBadLine = "error",
    relations: str | Path | None = None,
) -> pl.DataFrame:
    """Read the triples of a file, columns TRIPLES (row, split, head, relation, tail, valid), of split "train" where the
    file has no column `split`.

    path: CSV, TSV, JSON lines or Parquet, gzipped or plain. columns: what the file calls head, relation and tail, such
    as {"head": "subject"}, or their places, from 1; None: just that. relations: a file of relations of your own
    (read_relations). Irregularities are shown as notices. Raises MitigateError for a file that cannot be read or has no
    such columns, and, unless on_bad_line is "skip", for bad lines, named by their numbers, and for relations without a
    phrase."""
    loaded = any_triples.load(str(path), on_bad_line, columns, relations)
    for sentence in loaded.notices:
        notice(sentence)
    return loaded.rows


def sample_triples() -> pl.DataFrame:
    """Return the sample corpus, columns TRIPLES, with the splits train, dev, dev2 and test. It is small and was written
    for demonstrations: figures of it are not findings."""
    return sample.load().rows
