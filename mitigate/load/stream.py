"""Resources as loaders return them. `Loaded` is in memory. `Streamed` is larger: its file is read a block at a time,
each block becomes a chunk of rows, and rows that are left out are counted. Both are read by `chunks()` or `rows`.

Here are also the blocks of text files and the report of bad lines. Independent of formats, which `table` and the
loaders know."""

import gzip
import hashlib
import io
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.stages import as_parquet
from mitigate.triples import TRIPLES
from mitigate.words.outside_text import counted
from mitigate.words.relations import Relation, with_own
from models.digests import sha256_of

OnBadLine = Literal["error", "skip"]
SHOWN = 5  # faults quoted in a message; the rest is counted
CHUNK = 50_000  # rows in memory that one chunk is made of
BLOCK = 32 * 2**20  # bytes of text, unpacked, that one chunk is made of
PEEKED = 2**16  # bytes that show whether a file has the expected format
LINES_OF_A_FIELD = 1000  # that a field in quotes may have
INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))  # "law\u00adyer" names a lawyer
MOST_NAMES = 200  # unknown relations counted by name in one chunk

SENTENCES = {
    "row": pl.UInt32,  # line in the source file, from 1
    "term": pl.String,  # the subject of the sentence by the source; null without one
    "statement": pl.String,
}

BLANK = "blank line"
Kind = Literal["triples", "sentences", "statements", "stories", "prompts"]
Counts = Counter[tuple[str, str]]
"""Counts of a file's lines other than plain rows, by (kind, what): ("left out", the reason), ("relation", an unknown
name), ("noted", an accepted oddity), ("bad line", one of the first, with file and line) and ("bad line", "") for all
others."""

Faults = list[tuple[int, str]]
"""Lines, or rows, and the fault of each."""


class Block(NamedTuple):
    """A piece of a file, in whole lines."""

    first: int  # its first line's number, from 1
    content: bytes
    share: float  # of the file read so far, 0 to 1


class Chunk(NamedTuple):
    """The rows read from a block."""

    rows: pl.DataFrame  # schema TRIPLES or SENTENCES
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
        return digest_of(as_parquet(self.rows))

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
    blocks: Callable[[], Iterator]  # anything with a `share`
    parse: Callable[..., Chunk]  # of one block
    expected: str  # the expected form of a line
    on_bad_line: OnBadLine = "error"
    own_relations: tuple[Relation, ...] = ()  # those that triples may have besides the project's
    needs_phrases: bool = False  # read whole, an unknown relation counts as a bad line
    files: tuple[Path, ...] = ()  # of a folder, those that are read

    @property
    def size(self) -> str:
        """The size of its files, in words."""
        size = sum(file.stat().st_size for file in self.files or (self.path,))
        return f"{size / 2**20:,.1f} MiB of {self.kind}"

    @cached_property
    def digest(self) -> str:
        """The hash of the file, or of the folder's files."""
        if not self.files:
            return sha256_of(self.path)
        return hashlib.sha256("".join(f"{file.name} {sha256_of(file)}\n" for file in self.files).encode()).hexdigest()

    def chunks(self, finished: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, float, Chunk | None]]:
        """Yield each chunk's number, the share of the file read with it, and the chunk; None in place of a finished
        one, which is not parsed."""
        for number, block in enumerate(self.blocks()):
            yield number, block.share, None if finished(number) else self.parse(block)

    def describe(self, counts: Counts) -> list[str]:
        """The counts in sentences. Raises MitigateError that names the bad lines, unless on_bad_line is "skip"."""
        return describe(counts, self.on_bad_line)

    @property
    def rows(self) -> pl.DataFrame:
        """All triples in memory, as other recipes than audits take them. Raises MitigateError for sentences."""
        return self._whole[0]

    @property
    def notices(self) -> list[str]:
        """The counts over all triples, in sentences."""
        return self._whole[1]

    @cached_property
    def _whole(self) -> tuple[pl.DataFrame, list[str]]:
        if self.kind != "triples":
            raise MitigateError(
                f"{self.path} has sentences, and this recipe needs triples; for sentences, set recipe=audit"
            )
        chunks = [chunk for _, _, chunk in self.chunks() if chunk is not None]
        counts = sum((chunk.counts for chunk in chunks), Counts())
        notices = self.describe(counts)
        if self.needs_phrases and self.on_bad_line == "error":
            check_relations(self.path, counts, self.own_relations)
        return pl.concat([chunk.rows.select(list(TRIPLES)) for chunk in chunks]), notices


def check_relations(path: Path, counts: Counts, own: Sequence[Relation] = ()) -> None:
    """Raise MitigateError for relations without a phrase, with their counts and the file that would give them one."""
    unknown = {name: count for (kind, name), count in counts.most_common() if kind == "relation"}
    if unknown:
        phrased, total = list(with_own(own)), sum(unknown.values())
        has = "has" if total == 1 else "have"
        near = {name: get_close_matches(name, phrased, n=1, cutoff=0.8) for name in unknown}
        meant = {name: f" (did you mean {names[0]}?)" if names else "" for name, names in near.items()}
        named = ", ".join(f"{name} {count:,}{meant[name]}" for name, count in unknown.items())
        lines = "".join(f"\n  {name},...,..." for name in unknown)
        raise MitigateError(
            f"{path}: {counted(total, 'triple')} {has} a relation without a phrase: {named}. Write a file such "
            f"as\n  relation,phrase,neutral_phrase{lines}\nwith the words that stand between head and tail (a second "
            "wording, without a sentiment of its own, may stay empty), and give it with data.relations=FILE.csv; or "
            "leave such triples out with data.on_bad_line=skip. Relations with a phrase: "
            f"{', '.join(phrased)}"
        )


def path_of(path: str | None, name: str, form: str = "FILE", group: str = "data") -> Path:
    """The file that data.path names, or model.path. form: that of the path, for the message. Raises MitigateError when
    it names none."""
    if path is None:
        raise MitigateError(f"{group}={name} needs {group}.path, which is not set; set {group}.path={form}")
    return Path(path)


def checked(resource: Streamed) -> Streamed:
    """The resource, after a check of its first lines.

    Raises MitigateError when none of them can be read."""
    chunk = resource.parse(next(resource.blocks()))
    if chunk.rows.is_empty() and {kind for kind, _ in chunk.counts} <= {"bad line", "noted"}:
        faults = [what for kind, what in chunk.counts if kind == "bad line" and what]
        raise MitigateError(
            f"{resource.path} has no readable line; expected lines '{resource.expected}'"
            + (f". The first: {faults[0]}" if faults else "")
        )
    return resource


def text_blocks(path: Path, quoted: bool = False, content: bytes | None = None) -> Iterator[Block]:
    """Yield the blocks of a text file, gzipped or plain, cut at line ends, without a byte order mark.

    quoted: whether line ends inside double quotes do not count. content: the content in place of the file's.
    Raises MitigateError for a file that is missing, empty, damaged, cut short or not text."""
    first, is_empty = 1, True
    try:
        with path.open("rb") if content is None else io.BytesIO(content) as raw:
            size = path.stat().st_size if content is None else len(content)
            file = unpacked(path, raw)
            while piece := file.read(BLOCK if first > 1 else PEEKED):
                piece = b"".join([piece, *_rest_of_record(file, piece, quoted)])
                _check_encoding(path, first, piece)
                yield Block(first, piece.removeprefix(b"\xef\xbb\xbf") if first == 1 else piece, raw.tell() / size)
                first, is_empty = first + piece.count(b"\n"), False
    except (EOFError, zlib.error, OSError) as error:
        raise not_opened(path, error) or MitigateError(
            f"{path} is damaged or was cut short after line {first - 1:,} ({error}); download it again (`gzip -t` "
            "checks a packed file)"
        ) from error
    if is_empty:
        raise MitigateError(f"{path} is empty")


def _check_encoding(path: Path, first: int, piece: bytes) -> None:
    """Raise MitigateError for text that is not UTF-8, with its probable encoding and the command that converts it."""
    try:
        piece.decode("utf-8")
        return
    except UnicodeDecodeError as error:
        line, around = first + piece.count(b"\n", 0, error.start), max(0, error.start - PEEKED)
    from charset_normalizer import from_bytes  # comes with requests; half a second, for a fault only

    found = from_bytes(piece[around : around + 2 * PEEKED])
    names = [name for match in found for name in (match.encoding, *match.could_be_from_charset)]
    if not names:
        raise MitigateError(
            f"{path}:{line}: neither a text in UTF-8 nor in another known encoding; unpack it, or save it as CSV, TSV "
            "or JSON lines in UTF-8, or as Parquet"
        )
    name = ("cp1252" if "cp1252" in names else names[0]).upper().replace("_", "-")
    plain = Path(path.name.removesuffix(".gz"))
    place, new = shlex.quote(str(path)), shlex.quote(f"{plain.stem}-utf8{plain.suffix}")
    command = f"iconv -f {name} -t UTF-8 {place} > {new}"
    if path.suffix == ".gz":
        command = f"gzip -dc {place} | iconv -f {name} -t UTF-8 > {new}"
    raise MitigateError(
        f"{path}:{line}: not UTF-8; the file seems to be in {name}. Convert it: {command}, look at a few lines, and "
        "give the new file"
    )


def unpacked(path: Path | str, raw: BinaryIO) -> BinaryIO:
    """The file's text, packed with gzip or not. Raises MitigateError for one that is only named so."""
    is_packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    if str(path).endswith(".gz") and not is_packed:
        raise MitigateError(f"{path} is named .gz and is not a gzip file; rename it, or download it again")
    file: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
    return file


def not_opened(path: Path, error: Exception) -> MitigateError | None:
    """The error for a file that is missing, is a folder, or may not be read; None where the fault is in its content."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        return MitigateError(f"no such file: {path}{where}; correct the path")
    if isinstance(error, IsADirectoryError):
        return MitigateError(f"{path} is a folder; give a file")
    return None


def _rest_of_record(file: BinaryIO, piece: bytes, quoted: bool) -> Iterator[bytes]:
    """Yield the rest of the last line, and with `quoted` the lines up to the quote that closes its field."""
    rest = file.readline()
    yield rest
    is_within = quoted and (piece.count(b'"') + rest.count(b'"')) % 2
    for rest in islice(file, LINES_OF_A_FIELD if is_within else 0):
        yield rest
        if rest.count(b'"') % 2:
            break


def lines_of(block: Block) -> pl.DataFrame:
    """The block's lines (row, text), without Windows line ends and characters that nobody sees."""
    text = block.content.decode().replace("\r\n", "\n").translate(INVISIBLE).removesuffix("\n")
    return pl.DataFrame({"text": text.split("\n")}, {"text": pl.String}).with_row_index("row", block.first)


def without_blanks(lines: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """The lines with content; others are counted."""
    blank = lines["text"].str.strip_chars() == ""
    counts["noted", BLANK] += int(blank.sum())
    return lines.filter(~blank)


def bad(counts: Counts, places: Iterable[str]) -> None:
    """Count bad lines: the first few by their fault, with file and line, the others by their number."""
    shown = sum(1 for kind, what in counts if kind == "bad line" and what)
    for place in places:
        shown += 1
        counts["bad line", place if shown <= SHOWN else ""] += 1


def _line(fault: str) -> tuple[str, int]:
    """File and line of a fault "FILE:12: a blank field", to sort by."""
    place = re.match(r"(.*?):(\d+): ", fault)
    return (place[1], int(place[2])) if place else (fault, 0)


def report(path: Path, faults: Faults, counts: Counts) -> None:
    """Count faults as bad lines, by their line."""
    bad(counts, (f"{path}:{row}: {fault}" for row, fault in sorted(faults, key=lambda one: one[0])))


def describe(counts: Counts, on_bad_line: OnBadLine | None) -> list[str]:
    """The counts in sentences. Raises MitigateError that names the bad lines, unless on_bad_line is "skip"."""

    def of(kind: str) -> list[tuple[str, int]]:
        return [(what, count) for (of_kind, what), count in counts.items() if of_kind == kind]

    faults = sorted((what for what, _ in of("bad line") if what), key=_line)
    found = report_faults(faults, on_bad_line, sum(count for _, count in of("bad line")))
    found += [counted(count, what) for what, count in sorted(of("noted"))]
    found += [f"{counted(count, 'row')} left out: {what}" for what, count in sorted(of("left out"))]
    if unknown := sorted(of("relation"), key=lambda pair: (-pair[1], pair[0])):
        named = ", ".join(f"{name} {count:,}" for name, count in unknown[:20])
        rest = sum(count for _, count in unknown[20:])
        total = sum(count for _, count in unknown)
        found.append(
            f"{counted(total, 'triple')} left out, whose relation has no phrase: {named}"
            + (f", others {rest:,}" if rest else "")
        )
    return found


def report_faults(faults: Sequence[str], on_bad_line: OnBadLine | None, total: int | None = None) -> list[str]:
    """A notice of the lines left out. Raises MitigateError that names them, unless on_bad_line is "skip"; None for a
    file whose lines are never left out.

    total: the number of bad lines, where faults has only some."""
    count = len(faults) if total is None else total
    what = counted(count, "bad line")
    if faults and on_bad_line != "skip":
        skip = ", or leave such lines out with data.on_bad_line=skip" if on_bad_line else ""
        raise MitigateError(f"{what}:\n  {first(faults, total=count)}\nCorrect the file{skip}.")
    return [f"{what} left out: {first(faults, '; ', count)}"] if faults else []


def first(messages: Sequence[str], separator: str = "\n  ", total: int | None = None) -> str:
    """A few of the messages, and the number of others."""
    more = (len(messages) if total is None else total) - min(len(messages), SHOWN)
    return separator.join([*messages[:SHOWN], *([f"and {more:,} more"] if more > 0 else [])])
