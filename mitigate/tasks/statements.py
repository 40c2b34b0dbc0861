"""Labelled statements that lie in parts: all of them as a query, so many as a page can be made from, or as a file; and
a notice about long ones."""

from pathlib import Path

import polars as pl

from mitigate.words.texts import counted

MOST = 200_000  # that examples, word clouds, the export and the record in W&B are chosen from


def about_targets(folder: Path) -> pl.LazyFrame:
    """The statements about a target in a folder of parts, to be worked through without holding them."""
    parts = sorted(folder.glob("*.parquet"))  # by their names: a folder's own may have brackets
    return pl.scan_parquet(parts, glob=False).filter(pl.col("target").is_not_null())


def choice(folder: Path, seed: int) -> tuple[pl.DataFrame, int]:
    """All statements about a target, or, of more than MOST, about that many: of those rows whose hash is small, which
    are the same however the resource is cut into parts. And how many there are."""
    statements = about_targets(folder)
    height = statements.select(pl.len()).collect(engine="streaming").item()
    if height > MOST:
        statements = statements.filter(pl.col("row").hash(seed) < int(MOST / height * 2**64))
    return statements.collect(engine="streaming").sort("row", maintain_order=True), height


def export(statements: pl.DataFrame) -> str:
    """The distinct statements as lines `target<TAB>statement`, under a line of names: what recipe=humans and
    recipe=labels read with data=statements."""
    one_line = pl.col("statement").str.replace_all(r"\s+", " ").str.strip_chars()
    rows = statements.select("target", one_line).unique(maintain_order=True)
    return rows.write_csv(separator="\t", quote_style="never")


LONG = 40  # words; the longest statement that people rated has 19 (harms paper), the longest of train100k about 30


def long_texts(texts: pl.Series) -> list[str]:
    """A notice where texts are longer than what scorers are made for and were measured on."""
    words = texts.str.count_matches(r"\S+").to_list()
    long = [number for number in words if number > LONG]
    if not long:
        return []
    has = "has" if len(long) == 1 else "have"
    return [
        f"{len(long):,} of {counted(len(words), 'text')} {has} more than {LONG} words, up to {max(long):,}. The "
        "scorers are made for single statements: sentiment adds up all words, so that a long text tends to an extreme, "
        "and classifiers read the beginning of a text. Give its sentences one by one."
    ]
