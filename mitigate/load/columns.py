"""Wanted columns of a file and readers of its blocks; lines, lists and faults as all layouts of files have them."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.load.lines import LONGEST, TOO_LONG, parsed
from mitigate.load.stream import BLANK, Block, Counts, bad, split

SHOWN = 80  # characters of a line in a message
INVISIBLE = "[\u00ad\u200b\u2060\ufeff]"  # "law\u00adyer" names a lawyer
UNSEEN = "line with invisible characters, such as a zero-width space, which are left out"
NO_TEXT = "a NUL character, which no text has"

Place = str | int
Columns = Mapping[str, Place]
"""The project's name of a column -> its name in the file, or its place, from 1, in a file without a line of names.
"a.b" is the part b of a nested column a."""

Faults = list[tuple[int, str]]
"""Lines, or rows, and the fault of each."""


@dataclass(frozen=True)
class Column:
    """A wanted column."""

    names: tuple[Place, ...]  # its names in files; the first that a file, or a line of JSON, has
    lists: bool = False  # its cells are lists of texts; in CSV and TSV written as JSON
    optional: bool = False
    numbers: bool = False  # its cells are numbers as text; NaN is an unknown one


@dataclass(frozen=True)
class Table:
    """A reader of a file's columns: its blocks, and a frame (row, and the columns wanted, as text) of each. Optional
    columns that the file lacks are not in the frame. row: the line, in Parquet and JSON arrays the row, from 1."""

    blocks: Callable[[], Iterator]
    frame: Callable[..., pl.DataFrame]  # of a block; counts faults and oddities


def lines_of(block: Block, counts: Counts, faults: Faults) -> pl.DataFrame:
    """The block's lines with content: row, text, without characters that nobody sees, such as a zero-width space. Blank
    lines and those with such characters are counted; those that are not UTF-8, too long or no text are faults."""
    texts = _decoded(split(block, counts), block.first, faults)
    frame = pl.DataFrame({"text": texts}, {"text": pl.String}).with_row_index("row", block.first).drop_nulls()
    wrong = frame["text"].str.contains("\0", literal=True)
    faults += [(row, NO_TEXT) for row in frame["row"].filter(wrong)]
    unseen = frame["text"].str.contains(INVISIBLE)
    if unseen.any():
        counts["noted", UNSEEN] += int(unseen.sum())
        frame = frame.with_columns(pl.col("text").str.replace_all(INVISIBLE, ""))
    blank = frame["text"].str.strip_chars() == ""
    counts["noted", BLANK] += int(blank.sum())
    return frame.filter(~blank & ~wrong)


def _decoded(content: list[bytes], first: int, faults: Faults) -> list[str] | list[str | None]:
    """The text of each line, None for a fault. Nearly always the lines are without fault, and decoded at once."""
    if max(map(len, content)) <= LONGEST:
        with suppress(UnicodeDecodeError):
            return b"\n".join(content).decode("utf-8").split("\n")
    texts = list[str | None]()
    for number, line in enumerate(content, start=first):
        try:
            texts.append(line.decode("utf-8") if len(line) <= LONGEST else None)
            faults += [(number, TOO_LONG)] if texts[-1] is None else []
        except UnicodeDecodeError as error:
            texts.append(None)
            faults.append((number, f"not UTF-8 ({error.reason} at byte {error.start})"))
    return texts


def report(path: Path, faults: Faults, counts: Counts) -> None:
    """Count the faults as bad lines, by their line."""
    bad(counts, (f"{path}:{row}: {fault}" for row, fault in sorted(faults, key=lambda one: one[0])))


def with_lists(rows: pl.DataFrame, name: str, faults: Faults) -> pl.DataFrame:
    """The rows with a column of lists in JSON as lists; an empty cell is null."""
    values: list[list[str | None] | None] = []
    wrong: list[int] = []
    for row, cell in zip(rows["row"], rows[name], strict=True):
        try:
            values.append(as_list(parsed(cell)) if cell and cell.strip() else None)
        except ValueError:
            values.append(None)
            wrong.append(row)
            faults.append((row, f'{name} {cell[:SHOWN]!r} is not a list of texts such as ["a", "b"]'))
    lists = rows.with_columns(pl.Series(name, values, pl.List(pl.String)))
    return lists.filter(~pl.col("row").is_in(wrong)) if wrong else lists


def as_list(value: Any) -> list[str | None] | None:
    """A list of texts; one text becomes a list of one."""
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    if not isinstance(value, list) or not all(part is None or isinstance(part, str) for part in value):
        raise ValueError(f"{as_json(value)} is not a text or a list of texts")
    return value


def as_json(value: Any) -> str:
    return "" if isinstance(value, ValueError) else json.dumps(value, ensure_ascii=False)[:SHOWN]
