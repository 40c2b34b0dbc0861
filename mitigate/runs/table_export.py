"""Tables in file formats that other programs read."""

import io
from collections.abc import Callable

import polars as pl


def _tsv(frame: pl.DataFrame, file: io.BytesIO) -> None:
    """Write a table without quotes, as ConceptNet's files are. A tab or line end within a text becomes a space."""
    plain = pl.col(pl.String).str.replace_all(r"[\t\r\n]", " ")
    frame.with_columns(plain).write_csv(file, separator="\t", quote_style="never")


FORMATS: dict[str, Callable[[pl.DataFrame, io.BytesIO], None]] = {
    "parquet": lambda frame, file: frame.write_parquet(file),
    "csv": lambda frame, file: frame.write_csv(file),
    "tsv": _tsv,
    "jsonl": lambda frame, file: frame.write_ndjson(file),
}
"""The formats of tables by the ending of the file."""


def table_bytes(frame: pl.DataFrame, format: str) -> bytes:
    """A table as a file's content. Equal tables give equal bytes."""
    content = io.BytesIO()
    FORMATS[format](frame, content)
    return content.getvalue()
