"""The lines of a text file as users really have them, gzipped or plain, and how faults in them are reported."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from mitigate.errors import MitigateError
from mitigate.texts import counted

OnBadLine = Literal["error", "skip"]
SHOWN = 5  # faults quoted in a message; the rest is counted
LONGEST = 100_000  # bytes of a line: a text is a statement, not a book, and VADER's time grows with its square
LARGEST = 2 * 2**30  # bytes, unpacked, of a file that is read whole
UNPACKED = 2**27  # bytes, from which on a packed file has to be text, ...
MOST_PACKED = 100  # ... which is packed to no less than a hundredth; real resources to a fifth
TOO_LONG = f"more than {LONGEST:,} bytes, the most that a line may have"


def read_lines(path: Path, expected: str) -> tuple[list[bytes], list[str]]:
    """The file's lines without their ends, and a sentence for each oddity met: a byte order mark, Windows line
    ends. A last line without an end counts too.

    expected: what a line should look like, for the message. Raises MitigateError for a missing, unreadable or
    empty file, and for one that is too large, as read_whole does."""
    return split_lines(read_whole(path), str(path), expected)


def read_whole(path: Path) -> bytes:
    """What a file holds, `.gz` unpacked. Raises MitigateError for a missing or unreadable file, one of more than
    LARGEST, or one that is packed as no text is."""
    is_packed = path.suffix == ".gz"
    try:
        most = min(LARGEST, most_unpacked(path.stat().st_size)) if is_packed else LARGEST
        with gzip.open(path) if is_packed else path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error
    if len(content) > most and most < LARGEST:
        raise packed_as_no_text(path)
    if len(content) > LARGEST:
        raise MitigateError(
            f"{path} has more than {LARGEST / 2**30:g} GiB of text and is read whole; cut it into parts"
        )
    return content


def most_unpacked(packed: int) -> int:
    """How many bytes a file of so many packed bytes may unpack to."""
    return max(UNPACKED, MOST_PACKED * packed)


def packed_as_no_text(path: Path) -> MitigateError:
    """The error for a packed file that unpacks to more."""
    return MitigateError(
        f"{path} unpacks to more than {MOST_PACKED} times its size, as no text of a resource does; unpack it (gunzip) "
        "and look at it"
    )


def split_lines(content: bytes, name: str, expected: str) -> tuple[list[bytes], list[str]]:
    """The same of a content that was read already; name: what messages call it.

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
    """(number, fields) of each line, counted from start; a sentence for each that is not UTF-8 or too long goes to
    faults, which has them in the order of their lines as long as its reader adds its own while it reads."""
    for number, line in enumerate(lines, start=start):
        if len(line) > LONGEST:
            faults.append(f"{path}:{number}: {TOO_LONG}")
            continue
        try:
            yield number, line.decode("utf-8").split(separator)
        except UnicodeDecodeError as error:
            faults.append(f"{path}:{number}: not UTF-8 ({error.reason} at byte {error.start})")


def parsed(text: str) -> Any:
    """What a line of JSON says. Raises ValueError that says what is wrong with it."""
    try:
        found = json.loads(text)
        if "\\ud" in text.lower():  # half of a pair that stands for one character: no text in any encoding
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at column {error.colno})") from error
    except (RecursionError, ValueError) as error:  # brackets within brackets, a number of thousands of digits
        raise ValueError(f"not JSON that can be read ({error})") from error
    return found


def not_opened(path: Path, error: Exception) -> MitigateError | None:
    """The error for a file that is not there, is a folder, or may not be read; None where the fault is in what the file
    holds."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MitigateError(f"there is no file {path}")
    if isinstance(error, IsADirectoryError):
        return MitigateError(f"{path} is a folder; give a file")
    if isinstance(error, PermissionError):
        return MitigateError(
            f"{path} is there and may not be read (permission denied); have its owner allow it: chmod +r {path}"
        )
    return None


def check(on_bad_line: str) -> None:
    """Raises MitigateError for anything but "error" and "skip"."""
    if on_bad_line not in ("error", "skip"):
        raise MitigateError(f"data.on_bad_line={on_bad_line!r}; allowed: error, skip")


def check_once(path: Path | str, wanted: Iterable[str], names: Sequence[str]) -> None:
    """Raises MitigateError for a wanted column that several of a file's columns are called as."""
    if several := [name for name in wanted if names.count(name) > 1]:
        raise MitigateError(
            f"{path} has {names.count(several[0])} columns called {several[0]}, and one is to be read; give the others "
            "another name"
        )


def report_faults(faults: Sequence[str], on_bad_line: OnBadLine, total: int | None = None) -> list[str]:
    """A notice of the lines left out. Raises MitigateError that names them, unless on_bad_line is "skip".

    total: of how many bad lines these faults are, where not all were kept."""
    count = len(faults) if total is None else total
    what = counted(count, "bad line")
    if faults and on_bad_line == "error":
        raise MitigateError(
            f"{what}:\n  {first(faults, total=count)}\nMend the file, or leave such lines out with "
            "data.on_bad_line=skip."
        )
    return [f"{what} left out: {first(faults, '; ', count)}"] if faults else []


def first(messages: Sequence[str], separator: str = "\n  ", total: int | None = None) -> str:
    """A few of the messages, and how many more there are."""
    more = (len(messages) if total is None else total) - min(len(messages), SHOWN)
    return separator.join([*messages[:SHOWN], *([f"and {more:,} more"] if more > 0 else [])])
