"""Atomic writes of files and folders: a reader, or a kill, never finds half of one. And the package's version and its
tables in data/, whose lines that begin with # are comments."""

import csv
import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mitigate.errors import MitigateError

if TYPE_CHECKING:
    import polars as pl

OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}  # reading never causes them
SEAL = "sha256"  # in a manifest and in a record of a stage: the hash of all other entries
RUST = re.compile(r"\(os error (\d+)\)")  # how safetensors and polars quote the system
TORCH = re.compile("iostream error|PytorchStreamWriter failed")  # torch does not say why
REMEDY = (
    "free some space, or choose another place with paths.outputs=DIR and paths.cache=DIR. Finished stages are saved; "
    "run the same command to resume."
)


@contextmanager
def replacing(path: Path, remedy: str = REMEDY) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` once it is on disk. Folders are made. remedy: the end of an error's
    message.

    Raises MitigateError when the disk is full or the folder cannot be written to; `path` is then as it was. Other
    errors inside are passed on."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with system_errors(path, remedy):
            path.parent.mkdir(parents=True, exist_ok=True)
            opened = part.open("wb")
        with writing(path, remedy), opened as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with system_errors(path, remedy):
            part.replace(path)
    finally:
        with suppress(OSError):  # the error of the `try` is the one to show
            part.unlink(missing_ok=True)


@contextmanager
def system_errors(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Raise MitigateError for any OSError inside: the system refuses a file or folder at `path`."""
    try:
        yield
    except OSError as error:
        raise MitigateError(f"cannot write {path} ({error.strerror}); {remedy}") from error


@contextmanager
def writing(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Raise MitigateError when code inside cannot write to `path`, a file or folder, because the disk is full or
    read-only, whatever words the writing library uses. remedy: as in `replacing`.

    An error that a library raises because Ctrl-C came in the middle of its work becomes KeyboardInterrupt."""
    try:
        yield
    except Exception as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        if not isinstance(error, MitigateError) and (reason := disk_fault(error)):
            raise MitigateError(f"cannot write {path} ({reason}); {remedy}") from error
        raise


def interrupted(error: BaseException) -> bool:
    """Return whether Ctrl-C is behind the error: torch.save, for example, ends with a RuntimeError when its file is
    cut."""
    return any(isinstance(seen, KeyboardInterrupt) for seen in _chain(error))


def disk_fault(error: BaseException) -> str | None:
    """Return the system's message about a full or read-only disk that caused the error; None for any other error."""
    for seen in _chain(error):
        if isinstance(seen, OSError) and seen.errno in OF_THE_DISK:
            return os.strerror(seen.errno)
        if (quoted := RUST.search(str(seen))) and int(quoted[1]) in OF_THE_DISK:
            return os.strerror(int(quoted[1]))
        if isinstance(seen, RuntimeError) and TORCH.search(str(seen)) and not seen.__context__:
            return "PyTorch could not write it, most often because the disk is full"
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """The error and its causes, each once: an error that another carried and that was raised again causes itself."""
    seen = [error]
    for one in seen:
        behind = (one.__context__, one.__cause__)
        seen += [cause for cause in behind if cause is not None and not any(cause is known for known in seen)]
    return seen


def write(path: Path, content: bytes | str, remedy: str = REMEDY) -> Path:
    """Replace `path` by the content, text as UTF-8. remedy, and errors: as in `replacing`."""
    with replacing(path, remedy) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Open an empty folder that replaces `folder` once it is complete. A kill leaves the old one or the new one, never
    a partial one. A kill between the two renames leaves neither; the next call puts the old one back.

    Raises MitigateError when the disk is full or the folder cannot be written to."""
    part, old = (folder.with_name(f".{folder.name}.{ending}") for ending in ("part", "old"))
    with writing(folder):
        if old.exists() and not folder.exists():
            old.rename(folder)
        for left in (old, part):
            shutil.rmtree(left, ignore_errors=True)
        with system_errors(folder):
            part.mkdir(parents=True)
        yield part
        if folder.exists():
            folder.rename(old)
        part.rename(folder)
        shutil.rmtree(old, ignore_errors=True)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def as_json(content: object) -> bytes:
    """The bytes of a JSON file."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def digest_of(content: bytes | str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the hash of all its entries added, by which `is_intact` finds damage."""
    rest = {name: value for name, value in content.items() if name != SEAL}
    return {**rest, SEAL: digest_of(json.dumps(rest, sort_keys=True, ensure_ascii=False))}


def read_sealed(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where it cannot be read or is not as it was sealed."""
    content = read_json(path) or {}
    return content if is_intact(content) else {}


def is_intact(content: Mapping[str, Any]) -> bool:
    """Return whether the object is as it was sealed, or without a hash, as early versions wrote it."""
    return SEAL not in content or sealed(content)[SEAL] == content[SEAL]


def digest_of_file(path: Path) -> str | None:
    """The SHA-256 of a file; None where it is missing."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The package's own data


VERSION = "1.0.0"
DATA = files("mitigate").joinpath("data")


@cache
def rows_of(name: str) -> tuple[dict[str, str], ...]:
    """The rows of data/`name`, by column."""
    with DATA.joinpath(name).open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(line for line in lines if not line.startswith("#")))


def frame_of(name: str, **how: Any) -> "pl.DataFrame":
    """The table data/`name` as a data frame. how: as polars.read_csv has it."""
    import polars as pl  # a third of a second to load, which settings and headlines do without

    return pl.read_csv(DATA.joinpath(name).read_bytes(), comment_prefix="#", **how)
