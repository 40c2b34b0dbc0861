"""Files and folders that watched sources open, recorded with their hashes by an audit hook (PEP 578).

The hook sees what Python opens: a watched source itself, or a library that it calls. It does not see files that
compiled code or other processes open. Only reads are recorded."""

import hashlib
import os
import sys
import uuid
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from mitigate.runs.import_tracing import is_ours

EVENTS = frozenset({"open", "os.listdir", "os.scandir"})
MISSING = "missing"

_watched: dict[str, dict[str, str]] = {}  # source -> what it has opened -> its digest
_marks: dict[str, tuple[int, ...]] = {}  # of a file that was read: what the system changes when it is written


def watch(sources: Iterable[Path]) -> None:
    """Record the files that these sources open from now on."""
    for source in sources:
        _watched.setdefault(str(source), {})
    if _watched:
        _install()


@cache
def _install() -> None:
    sys.addaudithook(_hook)  # for the rest of the process: a hook cannot be removed


def _hook(event: str, arguments: tuple[Any, ...], events: frozenset[str] = EVENTS) -> None:
    if event not in events or EVENTS is None:  # when the process ends, names of modules are taken away
        return
    path = arguments[0] if arguments[0] is not None else "."
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE == os.O_WRONLY
    if isinstance(path, str | bytes) and not writes and (source := _opener(sys._getframe(1))):
        note(source, os.fsdecode(path))


def _opener(frame: FrameType | None) -> str | None:
    """The nearest watched source among the callers that the project has called or imported; None where the project, or
    an import, is nearer."""
    source = None
    while frame is not None:
        name = frame.f_code.co_filename
        if is_ours(name):
            return source
        if source is None and name.startswith("<frozen importlib"):
            return None
        if source is None and name in _watched:
            source = name
        frame = frame.f_back
    return None


def note(source: str, path: str) -> None:
    """Record that the source depends on the file or folder. The path stays as given: a relative path is another file in
    another working directory."""
    table, mark = _watched.setdefault(source, {}), _mark(path)
    if path in table and mark is not None and _marks.get(path) == mark:
        return
    found = digest_of_path(path)
    table[path] = found if table.get(path, found) == found else f"changed in the meantime, {uuid.uuid4().hex}"
    if mark is not None:
        _marks[path] = mark


def _mark(path: str) -> tuple[int, ...] | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def digest_of_path(path: str) -> str:
    """The hash of a file's content, or of the names in a folder; a word for what cannot be read."""
    try:
        place = Path(path)
        if place.is_dir():
            names = "\0".join(sorted(inside.name for inside in place.iterdir()))
            return hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()
        if place.exists() and not place.is_file():
            return "neither a file nor a folder"
        with place.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except (OSError, ValueError) as error:
        return type(error).__name__


def opened(sources: Iterable[Path]) -> dict[str, str]:
    """The files and folders that these sources have opened so far, each with its hash when it was opened first."""
    return {path: digest for source in sources for path, digest in _watched.get(str(source), {}).items()}


def is_changed(files: Mapping[str, str]) -> bool:
    """Return whether one of the files and folders has another hash now."""
    return any(digest_of_path(path) != digest for path, digest in files.items())


def forget() -> None:
    """Forget all records, as in a new process."""
    _watched.clear()
    _marks.clear()
