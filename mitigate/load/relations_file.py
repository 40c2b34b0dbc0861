"""Relations of a user's own with their phrases, from a table: `relation`, `phrase` and, where there is a second
wording, `neutral_phrase`."""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.columns import Column
from mitigate.load.file_format import Layout, layout_of
from mitigate.load.table import read_table
from mitigate.settings import LONGEST_NAME, NAME
from mitigate.words.outside_text import counted
from mitigate.words.relations import Relation, spellings, spelt

NEEDED, SECOND = ("relation", "phrase"), "neutral_phrase"
SHOWN = "a table such as\n  relation,phrase,neutral_phrase\n  Mentors,is a mentor of,works with"


def read_relations(path: Path) -> list[Relation]:
    """The relations of a CSV, TSV, JSON lines or Parquet file, in its order. Blanks in a name become underscores, and a
    relation of the project keeps its name; one without a neutral phrase has its phrase twice.

    Raises MitigateError for a file without the columns, for blank fields, names that are not letters, digits, dash,
    underscore or dot, and names that differ only by case, blanks and underscores."""
    layout = layout_of(path)
    present = [name.strip().lower() for name in layout.names]
    if absent := [name for name in NEEDED if name not in present]:
        raise MitigateError(
            f"data.relations={path} has no column {' and no column '.join(absent)} (found: "
            f"{', '.join(present)[:200]}); give {SHOWN}"
        )
    rows = _rows(path, layout)
    if rows.is_empty():
        raise MitigateError(f"data.relations={path} has no rows; give {SHOWN}")
    if faults := list(_faults(path, rows)):
        raise MitigateError("\n  ".join([f"data.relations: {counted(len(faults), 'wrong line')}:", *faults]))
    names = spellings()
    return [Relation(names.get(spelt(name), name), *phrases) for _, name, *phrases in rows.iter_rows()]


def _rows(path: Path, layout: Layout) -> pl.DataFrame:
    """row, relation, phrase, neutral_phrase, with single blanks."""
    wanted = {name: Column((name,), optional=name == SECOND) for name in (*NEEDED, SECOND)}
    found, _ = read_table(path, wanted, layout=layout)
    texts = pl.col(*found.columns[1:])
    plain = found.with_columns(texts.fill_null("").str.replace_all(r"\s+", " ").str.strip_chars())
    second = pl.col(SECOND) if SECOND in plain.columns else pl.lit("")
    return plain.select(
        "row",
        pl.col("relation").str.replace_all(" ", "_", literal=True),
        "phrase",
        pl.when(second == "").then("phrase").otherwise(second).alias(SECOND),
    )


def _faults(path: Path, rows: pl.DataFrame) -> Iterator[str]:
    earlier: dict[str, str] = {}
    for row, name, phrase, _ in rows.iter_rows():
        if not name or not phrase:
            yield f"{path}:{row}: a blank {'phrase' if name else 'relation'}"
        elif len(name) > LONGEST_NAME or not re.fullmatch(r"[\w-][\w.-]*", name):
            yield f"{path}:{row}: invalid name {name!r}; allowed: {NAME}"
        elif spelt(name) in earlier:
            yield (
                f"{path}:{row}: {name!r} after {earlier[spelt(name)]!r}, the same relation: case, blanks and "
                "underscores do not count"
            )
        earlier.setdefault(spelt(name), name)
