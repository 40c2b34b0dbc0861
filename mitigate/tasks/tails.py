"""A file of tails in place of a generator: read, checked, and opened as one."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.probe.tails import GivenTails
from mitigate.relations import Relation, spellings, spelt, with_own

SEPARATORS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
JSON_LINES = (".jsonl", ".ndjson")
NEEDED = ("relation", "tail")
LISTS = ("generations", "tails")  # columns of lists in place of `tail`


def locate(path: str | None) -> Path:
    """The file, once it has been read and found to be in order. Raises MitigateError, as open_tails."""
    if path is None:
        raise MitigateError("model=tails needs a file: give model.path=FILE.tsv with columns head, relation, tail")
    open_tails(Path(path))
    return Path(path)


def open_tails(folder: Path) -> GivenTails:
    """The generator whose tails stand in a file: CSV, TSV, JSON lines or Parquet with the columns relation and tail,
    and head and score where it has them; JSON lines may list a prompt's tails as `generations`. Tails of a prompt come
    by falling score, else in the file's order. Rows without a head are said of every head. Which relations it may name
    is checked by check_relations.

    Raises MitigateError for a file that is missing or cannot be read, lacks a column, or has a row without a tail or
    with a score that is no number."""
    path = folder
    plain = _rows(path)
    _check(path, plain)
    return GivenTails(plain.sort("score", "row", descending=[True, False], nulls_last=True))


def check_relations(path: Path, own: Iterable[Relation] = ()) -> None:
    """Raises MitigateError for a row whose relation is neither the project's nor one of a user's own. Case, blanks and
    underscores do not tell relations apart."""
    further = list(own)
    named = _rows(path).select("row", "relation").unique("relation", keep="first", maintain_order=True)
    known = spellings(further)
    for row, name in named.iter_rows():
        if name is not None and spelt(name) in known:
            continue
        hint = "" if further else "; those of your own triples are known by data=triples data.relations=FILE.csv"
        raise MitigateError(f"{path}, row {row}: {one_of('relation', str(name), with_own(further))}{hint}")


def _rows(path: Path) -> pl.DataFrame:
    """row, head, relation, tail, score."""
    table = _read(path)
    if lacking := [name for name in NEEDED if name not in table.columns]:
        found = ", ".join(table.columns)
        raise MitigateError(
            f"{path} has no column {' and no column '.join(lacking)}, but {found}; name them in its first line"
        )
    absent = [pl.lit(None).alias("head")] if "head" not in table.columns else []
    plain = (
        table.with_columns(absent)
        .with_row_index("row", offset=1)
        .select(
            "row",
            pl.col("head", "relation", "tail").cast(pl.String).str.strip_chars(),
            _numbers(path, table).alias("score")
            if "score" in table.columns
            else pl.lit(None, pl.Float64).alias("score"),
        )
    )
    return plain.with_columns(pl.when(pl.col("head") != "").then("head"))


def _numbers(path: Path, table: pl.DataFrame) -> pl.Series:
    """The scores; null where there is none. Raises MitigateError for one that is no number."""
    given = table["score"]
    if given.dtype == pl.String:
        given = given.str.strip_chars().replace("", None)
    found = given.cast(pl.Float64, strict=False)
    wrong = (found.is_null() & given.is_not_null()).arg_true()
    if len(wrong):
        raise MitigateError(
            f"{path}, row {wrong[0] + 1}: the score {given[wrong[0]]!r} is no number; correct it, or leave it empty"
        )
    return found.fill_nan(None)


def _read(path: Path) -> pl.DataFrame:
    ending = path.suffix.lower()
    if not path.is_file():
        raise MitigateError(f"model.path={path}: there is no such file; give one with columns head, relation, tail")
    try:
        if ending == ".parquet":
            return pl.read_parquet(path, glob=False)
        if ending in JSON_LINES:
            return _one_a_row(pl.read_ndjson(path.read_bytes(), infer_schema_length=None))
        if ending in SEPARATORS:
            quote = '"' if ending == ".csv" else None
            separator = SEPARATORS[ending]
            return pl.read_csv(path, separator=separator, quote_char=quote, infer_schema=False, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise MitigateError(f"{path} is no table that can be read: {str(error).splitlines()[0]}") from error
    raise one_of("ending of model.path", ending, [*SEPARATORS, *JSON_LINES, ".parquet"])


def _one_a_row(table: pl.DataFrame) -> pl.DataFrame:
    """The table with a row for each generation, where a line lists several in the order of their rank: "generations",
    as load.generations reads them, or "tails"."""
    found = next((name for name in LISTS if isinstance(table.schema.get(name), pl.List)), None)
    if found is None or "tail" in table.columns:
        return table
    return table.rename({found: "tail"}).explode("tail").drop_nulls("tail")


def _check(path: Path, table: pl.DataFrame) -> None:
    if table.is_empty():
        raise MitigateError(f"{path} has no rows; expected head, relation and tail in each")
    for name in NEEDED:
        blank = table.filter(pl.col(name).fill_null("") == "")
        if blank.height:
            raise MitigateError(
                f"{path}: {blank.height:,} rows have no {name}, the first is row {blank['row'][0]}; leave them out"
            )
