"""Labelled statements: counts of labels, a folder of parts as a query or a sample, and files that other programs
read."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.measure.agreement import CLASSES
from mitigate.measure.harms import label_names
from mitigate.measure.results import measured, of_study
from mitigate.triples import fold_other
from mitigate.words.outside_text import counted

MOST = 200_000  # that examples, the export and the record in W&B are chosen from
LONG = 40  # words; the longest statement that people rated has 19 (harms paper), the longest of train100k about 30


def count_labels(table: pl.DataFrame) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): numbers of rows, of distinct masked texts, and of each label by column:
    {column}/{prejudice|neutral|favouritism}; other counts as neutral."""
    counts = {
        f"{column}/{name}": int((fold_other(table[column].to_numpy()) == label).sum())
        for column in label_names(table)
        for label, name in CLASSES.items()
    }
    sizes = measured("numbers", {"rows": table.height, "distinct": table["masked"].n_unique()})
    return pl.concat([sizes, of_study(counts)])


def about_targets(folder: Path) -> pl.LazyFrame:
    """Query the statements about a target in a folder of parts, without reading them into memory."""
    parts = sorted(folder.glob("*.parquet"))  # by their names: a folder's own may have brackets
    return pl.scan_parquet(parts, glob=False).filter(pl.col("target").is_not_null())


def choice(folder: Path, seed: int) -> tuple[pl.DataFrame, int]:
    """Sample the statements about a target, and count all of them. Of more than MOST about that many are taken: those
    of rows whose hash is small, which are the same however the resource is cut into parts."""
    statements = about_targets(folder)
    height = statements.select(pl.len()).collect(engine="streaming").item()
    if height > MOST:
        statements = statements.filter(pl.col("row").hash(seed) < int(MOST / height * 2**64))
    return statements.collect(engine="streaming").sort("row", maintain_order=True), height


def export(statements: pl.DataFrame) -> bytes:
    """The distinct statements as lines `target<TAB>statement` under a line of names, as recipe=humans and recipe=labels
    read them with data=statements."""
    return table_bytes(statements.select("target", "statement").unique(maintain_order=True), "tsv")


def long_texts(texts: pl.Series) -> list[str]:
    """A notice where texts are longer than those that scorers are made for and were measured on."""
    words = texts.str.count_matches(r"\S+")
    long = words.filter(words > LONG).to_list()
    if not long:
        return []
    has = "has" if len(long) == 1 else "have"
    return [
        f"{len(long):,} of {counted(len(words), 'text')} {has} more than {LONG} words, up to {max(long):,}. The "
        "scorers are made for single statements: sentiment adds up all words, so that a long text tends to an extreme, "
        "and classifiers read the beginning of a text. Give its sentences one by one."
    ]


def _tsv(frame: pl.DataFrame, file: io.BytesIO) -> None:
    """Write a table without quotes, as ConceptNet's files are. A tab or line end within a text becomes a space."""
    plain = pl.col(pl.String).str.replace_all(r"[\t\r\n]", " ")
    frame.with_columns(plain).write_csv(file, separator="\t", quote_style="never")


FORMATS: dict[str, Callable[[pl.DataFrame, io.BytesIO], Any]] = {
    **{"parquet": pl.DataFrame.write_parquet, "csv": pl.DataFrame.write_csv},
    **{"tsv": _tsv, "jsonl": pl.DataFrame.write_ndjson},
}
"""The formats of tables by the ending of the file."""


def table_bytes(frame: pl.DataFrame, format: str) -> bytes:
    """A table as a file's content. Equal tables give equal bytes."""
    content = io.BytesIO()
    FORMATS[format](frame, content)
    return content.getvalue()
