"""Resources as loaders return them. `Loaded` is in memory. `Streamed` is larger: its file is read a block at a time,
each block becomes a chunk of rows. Both are read by `chunks()` or `rows`; the rows left out are counted in `Counts`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from mitigate.errors import MitigateError, counted
from mitigate.models.stored_tensors import sha256_of
from mitigate.stages import digest_of_table
from mitigate.triples import TRIPLES
from mitigate.words.relations import Relation, with_own

OnBadLine = Literal["error", "skip"]
Kind = Literal["triples", "sentences", "statements", "stories"]
SHOWN = 5  # faults quoted in a message; the rest is counted
NAMED = 20  # relations named in a message
CHUNK = 50_000  # rows in memory that one chunk is made of
Counts = Counter[tuple[str, str]]
"""Counts of a file's lines other than plain rows, by (kind, what): ("left out", the reason), ("relation", an unknown
name), ("noted", an accepted oddity), ("bad line", one of the first, with file and line) and ("bad line", "") for all
others."""


class Block(NamedTuple):
    """A piece of a file: whole lines of text."""

    first: int  # its first line's, or row's, number, from 1
    share: float  # of the file read so far, 0 to 1
    content: bytes


@dataclass(frozen=True)
class Table:
    """A reader of a file's columns: its blocks, and a frame (row, and the columns wanted, as text) of each. Optional
    columns that the file lacks are not in the frame. row: the line, in Parquet and JSON arrays the row, from 1."""

    blocks: Callable[[], Iterator[Block]]
    frame: Callable[[Block, Counts], pl.DataFrame]  # of a block; counts faults and oddities

    def read(self) -> tuple[pl.DataFrame, Counts]:
        """All rows in memory, and the counts of faults and oddities."""
        counts = Counts()
        return pl.concat([self.frame(block, counts) for block in self.blocks()]), counts


class Chunk(NamedTuple):
    """The rows read from a block."""

    rows: pl.DataFrame  # of sentences: row, term (null without one), statement; of triples schema TRIPLES
    counts: Counts

    @property
    def height(self) -> int:
        """The number of rows it was made from, those left out included."""
        return self.rows.height + sum(count for (kind, _), count in self.counts.items() if kind != "noted")


@dataclass(frozen=True)
class Loaded:
    """A resource in memory, and a sentence for each oddity of its file."""

    rows: pl.DataFrame  # triples have schema TRIPLES; statements and stories the columns that their loaders document
    notices: list[str] = field(default_factory=list)
    own_relations: tuple[Relation, ...] = ()  # those that triples may have besides the project's
    kind: Kind = "triples"

    @property
    def size(self) -> str:
        """The number of rows, in words."""
        return counted(self.rows.height, self.kind.removesuffix("s"))

    @cached_property
    def digest(self) -> str:
        """The hash of the rows."""
        return digest_of_table(self.rows)

    def chunks(self, finished: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, float, Chunk | None]]:
        """Yield chunks as Streamed.chunks."""
        for number, rows in enumerate(self.rows.iter_slices(CHUNK)):
            share = min(1.0, (number + 1) * CHUNK / self.rows.height)
            yield number, share, None if finished(number) else Chunk(rows, Counts())

    def describe(self, counts: Counts) -> list[str]:
        """The notices, and the counts in sentences."""
        return [*self.notices, *describe(counts, "skip")]


@dataclass(frozen=True)
class Streamed:
    """A resource in a file. Each use reads its rows again, a chunk at a time, in the same order."""

    path: Path
    kind: Kind
    table: Table
    parse: Callable[[pl.DataFrame, Counts], pl.DataFrame]  # the rows of a frame of the table; counts the others
    on_bad_line: OnBadLine = "error"
    own_relations: tuple[Relation, ...] = ()  # those that triples may have besides the project's
    needs_phrases: bool = False  # read whole, an unknown relation counts as a bad line

    @property
    def size(self) -> str:
        """The size of its file, in words."""
        return f"{self.path.stat().st_size / 2**20:,.1f} MiB of {self.kind}"

    @cached_property
    def digest(self) -> str:
        """The hash of the file."""
        return sha256_of(self.path)

    def chunks(self, finished: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, float, Chunk | None]]:
        """Yield each chunk's number, the share of the file read with it, and the chunk; None in place of a finished
        one, which is not parsed."""
        for number, block in enumerate(self.table.blocks()):
            counts, is_new = Counts(), not finished(number)
            rows = self.parse(self.table.frame(block, counts), counts) if is_new else None
            yield number, block.share, None if rows is None else Chunk(rows, +counts)

    def describe(self, counts: Counts) -> list[str]:
        """The counts in sentences."""
        return describe(counts, self.on_bad_line)

    @property
    def rows(self) -> pl.DataFrame:
        """All triples in memory, as other recipes than audits take them."""
        return self._whole.rows

    @property
    def notices(self) -> list[str]:
        """The counts over all triples, in sentences."""
        return self._whole.notices

    @cached_property
    def _whole(self) -> Loaded:
        if self.kind != "triples":
            raise MitigateError(f"{self.path} has sentences, and this recipe needs triples; set recipe=audit")
        chunks = [chunk for _, _, chunk in self.chunks() if chunk is not None]
        counts = sum((chunk.counts for chunk in chunks), Counts())
        notices = self.describe(counts)
        unknown = Counter({name: count for (kind, name), count in counts.items() if kind == "relation"})
        if unknown and self.needs_phrases and self.on_bad_line == "error":
            lines = "".join(f"\n  {name},...,..." for name, _ in unknown.most_common(NAMED))
            raise MitigateError(
                f"{self.path}: {notices[-1]}. Write a file such as\n  relation,phrase,neutral_phrase{lines}\nwith the "
                "words that stand between head and tail (a second wording, without a sentiment of its own, may stay "
                "empty), and give it with data.relations=FILE.csv; or leave such triples out with "
                f"data.on_bad_line=skip. Relations with a phrase: {', '.join(with_own(self.own_relations))}"
            )
        return Loaded(pl.concat([chunk.rows.select(list(TRIPLES)) for chunk in chunks]), notices)


def joined(parts: Sequence[Loaded | Streamed]) -> Loaded:
    """The rows and notices of several files."""
    return Loaded(pl.concat([part.rows for part in parts]), [notice for part in parts for notice in part.notices])


def path_of(path: str | None, name: str, form: str = "FILE", group: str = "data") -> Path:
    """The file that data.path names, or model.path. form: that of the path, for the message."""
    if path is None:
        raise MitigateError(f"{group}={name} needs {group}.path, which is not set; set {group}.path={form}")
    return Path(path)


def report(path: Path, faults: Iterable[tuple[int, str]], counts: Counts) -> None:
    """Count bad lines by their number and fault: the first few with the file and the line, the others together."""
    shown = sum(1 for kind, what in counts if kind == "bad line" and what)
    for number, (row, fault) in enumerate(faults, start=shown + 1):
        counts["bad line", f"{path}:{row}: {fault}" if number <= SHOWN else ""] += 1


def filled(path: Path, rows: pl.DataFrame, names: Sequence[str], counts: Counts) -> pl.DataFrame:
    """The rows without blanks around their fields; those with a blank field are bad lines."""
    plain = rows.with_columns(pl.col(names).fill_null("").str.strip_chars())
    is_blank = pl.any_horizontal(pl.col(names) == "")
    report(path, ((row, "a blank field") for row in plain.filter(is_blank)["row"].unique(maintain_order=True)), counts)
    return plain.filter(~is_blank)


def decoded(
    path: Path, rows: pl.DataFrame, column: str, words: Mapping[str, Any], counts: Counts, more: str = ""
) -> pl.DataFrame:
    """The rows with a column's words, in any case, replaced by their meanings; those with another word are bad lines.

    words: word, in lower case -> its meaning. more: the end of a bad line's message."""
    word = pl.col(column).fill_null("").str.strip_chars().str.to_lowercase()
    dtype = pl.Series(list(words.values())).dtype
    meaning = rows.select(word.replace_strict(words, default=None, return_dtype=dtype)).to_series()
    wrong = rows.filter(meaning.is_null()).select("row", column).rows()
    allowed = f"allowed: {', '.join(words)}{more}"
    report(path, ((row, f"{column} {given!r}; {allowed}") for row, given in wrong), counts)
    return rows.with_columns(meaning).filter(meaning.is_not_null())


def describe(counts: Counts, on_bad_line: OnBadLine | None) -> list[str]:
    """The counts in sentences. Raises MitigateError that names the bad lines, unless on_bad_line is "skip"; None: there
    is no such setting."""
    kinds = defaultdict[str, Counter[str]](Counter)
    for (kind, what), count in sorted((+counts).items()):
        kinds[kind][what] = count
    sentences: list[str] = []
    if total := kinds["bad line"].total():
        faults, bad = [what for kind, what in counts if kind == "bad line" and what], counted(total, "bad line")
        if on_bad_line != "skip":
            skip = ", or leave such lines out with data.on_bad_line=skip" if on_bad_line else ""
            raise MitigateError(f"{bad}:\n  {first(faults, total=total)}\nCorrect the file{skip}.")
        sentences.append(f"{bad} left out: {first(faults, '; ', total)}")
    sentences += [counted(count, what) for what, count in kinds["noted"].items()]
    sentences += [f"{counted(count, 'row')} left out: {what}" for what, count in kinds["left out"].items()]
    if unknown := kinds["relation"]:
        shown = first([f"{name} {count:,}" for name, count in unknown.most_common()], ", ")
        sentences.append(f"{counted(unknown.total(), 'triple')} left out, whose relation has no phrase: {shown}")
    return sentences


def first(messages: Sequence[str], separator: str = "\n  ", total: int | None = None) -> str:
    """A few of the messages, and the number of others."""
    more = (total or len(messages)) - min(len(messages), SHOWN)
    return separator.join([*messages[:SHOWN], *([f"and {more:,} more"] if more > 0 else [])])
