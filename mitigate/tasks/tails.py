"""A file of tails in place of a generator: read, checked, and opened as one."""

from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.probe.tails import GivenTails
from mitigate.relations import asked_with

SEPARATORS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
JSON_LINES = (".jsonl", ".ndjson")
NEEDED = ("relation", "tail")


def locate(path: str | None) -> Path:
    """The file, once it has been read and found to be in order. Raises MitigateError, as open_tails."""
    if path is None:
        raise MitigateError("model=tails needs a file: give model.path=FILE.tsv with columns head, relation, tail")
    open_tails(Path(path))
    return Path(path)


def open_tails(folder: Path) -> GivenTails:
    """The generator whose tails stand in a file: CSV, TSV, JSON lines or Parquet with the columns relation and tail,
    and head and score where it has them. Tails of a prompt come by falling score, else in the file's order. Rows
    without a head are said of every head.

    Raises MitigateError for a file that is missing or cannot be read, lacks a column, or has a row without a tail or
    with an unknown relation."""
    path = folder
    table = _read(path)
    if lacking := [name for name in NEEDED if name not in table.columns]:
        found = ", ".join(table.columns)
        raise MitigateError(
            f"{path} has no column {' and no column '.join(lacking)}, but {found}; name them in its first line"
        )
    absent = [pl.lit(None).alias(name) for name in ("head", "score") if name not in table.columns]
    plain = (
        table.with_columns(absent)
        .with_row_index("row", offset=1)
        .select(
            "row",
            pl.col("head", "relation", "tail").cast(pl.String).str.strip_chars(),
            pl.col("score").cast(pl.Float64, strict=False),
        )
    )
    plain = plain.with_columns(pl.when(pl.col("head") != "").then("head"))
    _check(path, plain)
    return GivenTails(plain.sort("score", descending=True, nulls_last=True, maintain_order=True))


def _read(path: Path) -> pl.DataFrame:
    ending = path.suffix.lower()
    if not path.is_file():
        raise MitigateError(f"model.path={path}: there is no such file; give one with columns head, relation, tail")
    try:
        if ending == ".parquet":
            return pl.read_parquet(path)
        if ending in JSON_LINES:
            return pl.read_ndjson(path, infer_schema_length=None)
        if ending in SEPARATORS:
            quote = '"' if ending == ".csv" else None
            return pl.read_csv(path, separator=SEPARATORS[ending], quote_char=quote, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise MitigateError(f"{path} is no table that can be read: {str(error).splitlines()[0]}") from error
    raise one_of("ending of model.path", ending, [*SEPARATORS, *JSON_LINES, ".parquet"])


def _check(path: Path, table: pl.DataFrame) -> None:
    if table.is_empty():
        raise MitigateError(f"{path} has no rows; expected head, relation and tail in each")
    blank = table.filter(pl.col("tail").is_null() | (pl.col("tail") == ""))
    if blank.height:
        raise MitigateError(
            f"{path}: {blank.height:,} rows have no tail, the first is row {blank['row'][0]}; leave them out"
        )
    known = asked_with("token")
    unknown = table.filter(~pl.col("relation").is_in(list(known)).fill_null(False))
    if unknown.height:
        row, name = unknown.row(0, named=True)["row"], unknown["relation"][0]
        raise MitigateError(f"{path}, row {row}: {one_of('relation', str(name), known)}")
