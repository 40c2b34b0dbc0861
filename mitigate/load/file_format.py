"""The layout of a file, by its content and its name: Parquet, JSON lines, JSON as a whole, a table with separators,
or plain lines. It is determined once for each file, from its first block.

Independent of the columns that a loader wants."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import not_opened, parsed, split_fields
from mitigate.load.stream import text_blocks

Form = Literal["Parquet", "JSON lines", "JSON", "table", "lines"]
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
ENDINGS = (*SEPARATORS, ".txt", *JSON_ENDINGS, ".parquet")
TABLES = (*SEPARATORS, *JSON_ENDINGS, ".parquet")
LOOKED_AT = 200  # lines, or records, of the first block
JSON_START = re.compile(rb'\s*(\{\s*(["}]|$)|\[\s*([{"\]]|$))')
USUAL = frozenset(
    [
        *("id", "text", "texts", "sentence", "sentences", "statement", "statements", "generic_sentence"),
        *("sent1", "sent2", "post", "comment", "tweet", "body", "content", "prompt", "generation", "response"),
        *("label", "labels", "target", "targets", "category", "score", "split", "title", "term", "event"),
        *("head", "relation", "tail", "subject", "predicate", "object", "source"),
    ]
)
"""Names of columns by which a first line is recognised, whatever the other lines look like."""


class Layout(NamedTuple):
    """The layout of a file."""

    form: Form
    names: list[str]  # of its columns, as written; of nested ones "knowledge.sentence"; of a table its first line
    separator: str = "\t"  # of a table

    def __str__(self) -> str:
        if self.form != "table":
            return self.form
        return {"\t": "TSV", ",": "CSV"}.get(self.separator, f"a table (separator {self.separator!r})")

    @property
    def shown(self) -> str:
        """The kind of file and its columns, for a message: "JSON lines with the columns prompt, generation"."""
        return f"{self} with the columns {', '.join(self.names)[:200] or '(none)'}"


def layout_of(path: Path, content: bytes | None = None) -> Layout:
    """The layout of a file. content: of standard input, in place of the file's.

    Raises MitigateError for a file that is missing, empty, or can be neither text nor Parquet."""
    if content is None and (_ending(path) == ".parquet" or _starts_with(path, b"PAR1")):
        return Layout("Parquet", list(_paths(schema_of(path))))
    start = next(text_blocks(path, content=content)).content
    text = start.decode("utf-8", errors="replace")
    lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()][:LOOKED_AT]
    if not lines:
        raise MitigateError(f"{path} is empty")
    ending = _ending(path)
    is_json = lines[0].lstrip()[:1] in ("{", "[") and isinstance(_read(lines[0]), dict | list)
    if ending in JSON_ENDINGS or JSON_START.match(start) or is_json:
        return _of_json(start, lines)
    return _of_text(ending, lines)


def schema_of(path: Path) -> dict[str, Any]:
    """The columns of a Parquet file and their types."""
    try:
        return dict(pl.scan_parquet(path, glob=False).collect_schema())
    except (OSError, pl.exceptions.PolarsError) as error:
        damaged = MitigateError(f"{path} is not a readable Parquet file: {error}")
        raise not_opened(path, error) or damaged from error


def elements(text: str) -> Iterator[Any]:
    """Yield the values of a JSON array, or the successive values of a text; last a ValueError where one cannot be
    read."""
    decoder = json.JSONDecoder()
    at = re.compile(r"\s*\[?").match(text).end()  # type: ignore[union-attr]  # matches anything
    while at := re.compile(r"[\s,]*").match(text, at).end():  # type: ignore[union-attr]
        if at >= len(text) or (text[at] == "]" and not text[at + 1 :].strip()):
            return
        try:
            _, end = decoder.raw_decode(text, at)
            yield parsed(text[at:end])
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, at) + 1
            yield ValueError(f"not valid JSON from line {line} on ({error})")
            return
        at = end


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _starts_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error


def _read(line: str) -> Any:
    try:
        return parsed(line)
    except ValueError:
        return None


def _of_json(start: bytes, lines: Sequence[str]) -> Layout:
    first = _read(lines[0])
    is_array = isinstance(first, list) and (len(lines) == 1 or any(isinstance(part, dict) for part in first))
    is_open = first is None and (lines[0].lstrip()[:1] == "[" or lines[0].strip() == "{")
    if is_array or is_open:
        return Layout("JSON", _names(elements(start.decode("utf-8", errors="replace"))))
    return Layout("JSON lines", _names(map(_read, lines)))


def _names(records: Iterator[Any]) -> list[str]:
    """All keys that the first records have."""
    found: dict[str, None] = {}
    for _, record in zip(range(LOOKED_AT), records, strict=False):
        if isinstance(record, dict):
            found.update(dict.fromkeys(_paths(record)))
    return list(found)


def _paths(record: Any, before: str = "") -> Iterator[str]:
    """Yield the keys of an object, or the columns of a schema; for those with parts, the parts' dotted names."""
    for name, value in record.items():
        inner = dict(value) if isinstance(value, pl.Struct) else value
        if isinstance(inner, dict) and inner:
            yield from _paths(inner, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def _of_text(ending: str, lines: Sequence[str]) -> Layout:
    first = lines[0]
    separator = SEPARATORS.get(ending)
    if separator is None:
        separator = next((one for one in "\t,;|" if _is_table(lines, one)), None)
        if separator is None:
            return Layout("lines", [])
    elif separator not in first:
        separator = max(separator + "\t,;|", key=first.count)
    return Layout("table", split_fields(first, separator), separator)


def _is_table(lines: Sequence[str], separator: str) -> bool:
    """Return whether the lines are rows of a table: usual names in the first, or as many fields in each. A blank
    follows the comma of a sentence, but rarely that of a table."""
    rows = [split_fields(line, separator) for line in lines]
    names = {name.strip().lower() for name in rows[0]}
    width = len(rows[0])
    if width < 2 or names <= USUAL:
        return width > 1
    num_as_wide = sum(len(row) == width for row in rows)
    if separator == "\t":
        return num_as_wide > len(rows) / 2
    return num_as_wide == len(rows) and not any(field.startswith(" ") for row in rows for field in row)
