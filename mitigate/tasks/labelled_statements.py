"""Labelled statements in a folder of parts: as a query, as a sample for a page, or as a file; and a notice about long
statements."""

from pathlib import Path

import polars as pl

from mitigate.words.outside_text import counted

MOST = 200_000  # that examples, word clouds, the export and the record in W&B are chosen from


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


def export(statements: pl.DataFrame) -> str:
    """Write the distinct statements as lines `target<TAB>statement` under a line of names, as recipe=humans and
    recipe=labels read them with data=statements."""
    one_line = pl.col("statement").str.replace_all(r"\s+", " ").str.strip_chars()
    rows = statements.select("target", one_line).unique(maintain_order=True)
    return rows.write_csv(separator="\t", quote_style="never")


LONG = 40  # words; the longest statement that people rated has 19 (harms paper), the longest of train100k about 30


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
