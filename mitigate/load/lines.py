"""Lines of users' text files, gzipped or plain, the fields of a line, and the report of faults in them."""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal

from mitigate.errors import MitigateError
from mitigate.words.outside_text import counted

OnBadLine = Literal["error", "skip"]
SHOWN = 5  # faults quoted in a message; the rest is counted
LONGEST = 100_000  # bytes of a line: a text is a statement, not a book, and VADER's time grows with its square
LARGEST = 2 * 2**30  # bytes, unpacked, of a file that is read whole
UNPACKED = 2**27  # bytes, above which a packed file has to be text, ...
MOST_PACKED = 100  # ... which is packed to no less than a hundredth; real resources to a fifth
TOO_LONG = f"more than {LONGEST:,} bytes, the most that a line may have"
OPEN = "a double quote opens a field and is not closed"
BINARY = {
    b"PAR1": "a Parquet file; unpack it and name it .parquet",
    b"PK\x03\x04": "a zip archive or a spreadsheet (.xlsx); unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet (.xls); save it as CSV",
    b"BZh": "packed with bzip2; unpack it (bunzip2)",
    b"\xfd7zXZ": "packed with xz; unpack it (unxz)",
    b"\x28\xb5\x2f\xfd": "packed with zstd; unpack it (unzstd)",
    b"ARROW1": "an Arrow or Feather file; save it as Parquet or CSV",
    b"SQLite format 3": "an SQLite database; save the table as CSV",
}
"""The beginnings of files that are not text, and their kinds."""


def read_lines(path: Path, expected: str) -> tuple[list[bytes], list[str]]:
    """The file's lines without their ends, and a sentence for each oddity: a byte order mark, Windows line ends. A last
    line without an end counts too.

    expected: what a line should look like, for the message. Raises MitigateError for a missing, unreadable or
    empty file, and for one that is too large, as read_whole does."""
    return split_lines(read_whole(path), str(path), expected)


def read_whole(path: Path) -> bytes:
    """The content of a file, `.gz` unpacked. Raises MitigateError for a missing or unreadable file, one of more than
    LARGEST, or one whose packing ratio excludes text."""
    try:
        with path.open("rb") as raw:
            file = unpacked(path, raw)
            most = LARGEST if file is raw else min(LARGEST, most_unpacked(path.stat().st_size))
            content = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error
    if len(content) > most and most < LARGEST:
        raise packed_as_no_text(path)
    check_size(path, len(content))
    return content


def check_size(path: Path, size: int) -> None:
    """Raise MitigateError for more than LARGEST bytes of text."""
    if size > LARGEST:
        raise MitigateError(
            f"{path} has more than {LARGEST / 2**30:g} GiB of text, the most for a file that is read as a whole; "
            "split it"
        )


def unpacked(path: Path | str, raw: BinaryIO) -> BinaryIO:
    """The file's text, packed or not, whatever its name says. Raises MitigateError for a file that is not a text."""
    is_packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    if str(path).endswith(".gz") and not is_packed:
        raise MitigateError(f"{path} is named .gz and is not a gzip file; rename it, or download it again")
    file: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
    start = file.read(max(map(len, BINARY)))
    file.seek(0)
    if found := next((what for magic, what in BINARY.items() if start.startswith(magic)), None):
        raise MitigateError(f"{path} is {found}")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise MitigateError(f"{path} is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")
    return file


def most_unpacked(packed: int) -> int:
    """The largest unpacked size of a file with so many packed bytes."""
    return max(UNPACKED, MOST_PACKED * packed)


def packed_as_no_text(path: Path) -> MitigateError:
    """The error for a packed file that unpacks to more."""
    return MitigateError(
        f"{path} unpacks to more than {MOST_PACKED} times its size, more than text does; unpack it with gunzip and "
        "check it"
    )


def split_lines(content: bytes, name: str, expected: str) -> tuple[list[bytes], list[str]]:
    """The lines of content in memory, as read_lines; name: its name in messages.

    Raises MitigateError for an empty content."""
    if not content.strip():
        raise MitigateError(f"{name} is empty; expected lines '{expected}'")
    notices = []
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
        notices.append(f"{name}: byte order mark at the start, ignored")
    lines = content.removesuffix(b"\n").split(b"\n")
    if windows := sum(line.endswith(b"\r") for line in lines):
        notices.append(f"{name}: {counted(windows, 'line')} with Windows line ends (CRLF), accepted")
    return [line.removesuffix(b"\r") for line in lines], notices


def fields(
    lines: Iterable[bytes], path: Path | str, separator: str, faults: list[str], start: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number, fields) of each line, counted from start. Appends to faults a sentence for each line that is not
    UTF-8 or too long; they stay in the order of lines if the caller appends its own while it iterates."""
    for number, line in enumerate(lines, start=start):
        if len(line) > LONGEST:
            faults.append(f"{path}:{number}: {TOO_LONG}")
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            faults.append(f"{path}:{number}: not UTF-8 ({error.reason} at byte {error.start})")
            continue
        if len(separator) == 1 and is_open(text, separator):
            faults.append(f"{path}:{number}: {OPEN}")
            continue
        yield number, split_fields(text, separator)


_UNCLOSED = re.compile(r'"(?>(?:[^"]|"")*)\Z')


@cache
def _field(separator: str) -> re.Pattern[str]:
    """A field and what ends it. Its groups: what stands in quotes; else the field as it stands; the end."""
    one = re.escape(separator)
    return re.compile(rf'(?:"((?>(?:[^"]|"")*))"|([^{one}]*))({one}|\Z)')


def split_fields(line: str, separator: str) -> list[str]:
    """The fields of a line, or of a few lines that are one record.

    A field in double quotes, with others inside doubled, is the text between them, which may have separators and line
    ends. Any other double quote is an ordinary character."""
    if '"' not in line or len(separator) > 1 or separator == " ":
        return line.split(separator)
    found: list[str] = []
    end = 0
    while match := _field(separator).match(line, end):
        found.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        end = match.end()
        if not match[3]:
            break
    return found


def is_open(line: str, separator: str) -> bool:
    """Return whether a double quote opens a field that does not end in the line."""
    end = 0
    while line.count('"', end) % 2 and (match := _field(separator).match(line, end)):
        if match[1] is None and _UNCLOSED.match(line, end):
            return True
        if not match[3]:
            break
        end = match.end()
    return False


def parsed(text: str) -> Any:
    """The value of a line of JSON. Raises ValueError with its fault, such as a repeated key."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
        if "\\ud" in text.lower():  # half of a pair that stands for one character: no text in any encoding
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at column {error.colno})") from error
    except (RecursionError, ValueError) as error:  # brackets within brackets, a number of thousands of digits
        raise ValueError(f"not JSON that can be read ({error})") from error
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r} in an object")
    return found


def not_opened(path: Path, error: Exception) -> MitigateError | None:
    """The error for a file that is missing, is a folder, or may not be read; None where the fault is in its content."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        return MitigateError(f"no such file: {path}{where}; correct the path")
    if isinstance(error, IsADirectoryError):
        return MitigateError(f"{path} is a folder; give a file")
    if isinstance(error, PermissionError):
        return MitigateError(f"{path} cannot be read (permission denied); allow it: chmod +r {path}")
    return None


def check(on_bad_line: str) -> None:
    """Raise MitigateError for anything but "error" and "skip"."""
    if on_bad_line not in ("error", "skip"):
        raise MitigateError(f"data.on_bad_line={on_bad_line!r}; allowed: error, skip")


def check_once(path: Path | str, wanted: Iterable[str], names: Sequence[str]) -> None:
    """Raise MitigateError for a wanted column whose name several of a file's columns have."""
    if several := [name for name in wanted if names.count(name) > 1]:
        raise MitigateError(
            f"{path} has {names.count(several[0])} columns named {several[0]}, expected one; rename the others"
        )


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
