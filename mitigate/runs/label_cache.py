"""A cache of labels across runs: each scorer scores each distinct text once. A label is used only when its checksum
matches, so that a damaged file costs time and never changes a figure."""

import fcntl
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mitigate.errors import MitigateError
from mitigate.runs.files import write
from mitigate.runs.progress import notice
from mitigate.triples import Labels

PAGES = 256 * 2**20  # bytes: a large write to the label cache changes pages all over it, which stay in memory meanwhile
TABLE = """CREATE TABLE IF NOT EXISTS labels
    (text TEXT PRIMARY KEY, label INTEGER, strength REAL, checksum INTEGER) WITHOUT ROWID"""
SELECT = "SELECT text, label, strength, checksum FROM labels WHERE text IN (SELECT value FROM json_each(?))"
MOST_CHARACTERS = 2**24  # characters of texts looked up at once: in JSON each has up to 12 bytes, and SQLite takes 10^9
SURROUNDINGS = {  # SQLite's codes for faults of the place, not of the file
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL),
}
DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # the latter for bytes that SQLite quotes in a message

_announced: set[Path] = set()  # folders for which this process has shown that it cannot write to them


class Row(NamedTuple):
    """A stored label of a text."""

    text: str
    label: int
    strength: float | None  # SQLite keeps no NaN

    @property
    def checksum(self) -> int:
        """CRC-32 of the row: at 4 bytes, a changed row has it by chance once in 4 billion."""
        return zlib.crc32(repr(tuple(self)).encode())


class _DamagedError(Exception):
    """A file whose content is damaged."""

    def __init__(self, reason: object, inode: int | None) -> None:
        super().__init__(str(reason))
        self.inode = inode


class LabelStore:
    """The label cache (the Protocol `LabelCache`): a SQLite file for each scorer fingerprint, safe to be used
    by several processes at once and open to any SQLite browser.

    Each row has a checksum of its own, compared whenever it is read. SQLite's `PRAGMA quick_check` was not chosen: it
    looks at the structure only, so it does not notice a changed label, and it reads the whole file where the checksums
    cost some 2 microseconds for each label that is used. A damaged file is set aside under another name and a new one
    started; a file without checksums, of an earlier version, as well.

    Where the folder cannot be written to, or is full, the labels that are there are read, and new ones are kept
    in memory, for this object only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unwritten: dict[str, dict[str, Row]] = {}

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        is_cached = np.zeros(len(texts), dtype=bool)
        labels = Labels(np.zeros(len(texts), dtype=np.int8), np.zeros(len(texts), dtype=np.float32))
        place = {text: i for i, text in enumerate(texts)}
        unwritten = self._unwritten.get(fingerprint, {})
        rows = self._read(fingerprint, texts) + [unwritten[text] for text in unwritten.keys() & place.keys()]
        for text, label, strength in rows:
            i = place.get(text)
            if i is None:  # SQLite's JSON ends a text where it has a zero byte, and so finds the one that ends there
                continue
            is_cached[i], labels.label[i], labels.strength[i] = True, label, np.nan if strength is None else strength
        return is_cached, labels

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        strengths = [None if value != value else value + 0.0 for value in labels.strength.tolist()]  # no NaN, no -0.0
        rows = [Row(*row) for row in zip(texts, labels.label.tolist(), strengths, strict=True)]
        try:
            try:
                self._write(fingerprint, rows)
            except _DamagedError as error:
                self._set_aside(fingerprint, error)
                self._write(fingerprint, rows)
        except (OSError, sqlite3.Error, _DamagedError) as error:
            self._announce(error)
            self._unwritten.setdefault(fingerprint, {}).update((row.text, row) for row in rows)

    def opened(self, fingerprint: str) -> list[str]:
        """The paths that `note_opened` stored last; none where they are damaged, so that no label is used."""
        try:
            found = json.loads(self._file(fingerprint, "json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return []
        return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []

    def note_opened(self, fingerprint: str, paths: Sequence[str]) -> None:
        """Store the paths that a scorer opened. Its labels are not used once it opens other files."""
        if sorted(paths) == self.opened(fingerprint):
            return
        try:
            write(self._file(fingerprint, "json"), json.dumps(sorted(paths)))
        except MitigateError as error:
            if isinstance(error.__cause__, OSError):
                self._announce(error.__cause__)

    def _read(self, fingerprint: str, texts: Sequence[str]) -> list[Row]:
        """The stored rows of these texts."""
        file = self._file(fingerprint)
        try:
            if not file.exists():
                return []
            try:
                with self._open(fingerprint) as database:
                    return _rows(database, texts)
            except _DamagedError as error:
                self._set_aside(fingerprint, error)
                return []
        except (OSError, sqlite3.Error) as error:
            self._announce(error)
        for option in ("mode=ro", "immutable=1"):  # where SQLite can lock nothing, only the second opens the file
            try:
                with closing(sqlite3.connect(f"{file.absolute().as_uri()}?{option}", uri=True)) as database:
                    return _rows(database, texts)
            except (*DAMAGE, _DamagedError):
                continue
        return []

    def _write(self, fingerprint: str, rows: Sequence[Row]) -> None:
        with self._open(fingerprint) as database, database:
            values = ((*row, row.checksum) for row in rows)
            database.executemany("INSERT OR IGNORE INTO labels VALUES (?, ?, ?, ?)", values)

    def _file(self, fingerprint: str, ending: str = "sqlite") -> Path:
        return self.folder / f"{fingerprint[:16]}.{ending}"

    @contextmanager
    def _open(self, fingerprint: str) -> Iterator[sqlite3.Connection]:
        """Open the file to read and write. Raises _DamagedError for a damaged file, OSError or sqlite3.Error for a
        fault of its folder or disk."""
        file = self._file(fingerprint)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked(fcntl.LOCK_SH):
            inode = file.stat().st_ino if file.exists() else None
            try:
                with closing(sqlite3.connect(file, timeout=120)) as database:
                    database.execute("PRAGMA journal_mode=WAL")
                    # A kill loses nothing, a power cut the last writes at most.
                    database.execute("PRAGMA synchronous=NORMAL")
                    database.execute(f"PRAGMA cache_size=-{PAGES // 1024}")
                    database.execute(TABLE)
                    yield database
            except DAMAGE as error:
                if isinstance(error, sqlite3.Error) and _is_fault_of_place(error, file):
                    raise
                raise _DamagedError(error, inode) from error
            except _DamagedError as error:
                error.inode = inode
                raise

    def _set_aside(self, fingerprint: str, error: _DamagedError) -> None:
        """Rename the file and SQLite's files beside it, unless another process has done so in the meantime."""
        file = self._file(fingerprint)
        with self._locked(fcntl.LOCK_EX):
            if not file.exists() or file.stat().st_ino != error.inode:
                return
            number = 1
            while (aside := file.with_name(f"{file.name}.damaged-{number}")).exists():
                number += 1
            for suffix in ("", "-wal", "-shm"):
                if (part := file.with_name(file.name + suffix)).exists():
                    part.rename(aside.with_name(aside.name + suffix))
        notice(
            f"the label cache {file} is damaged or of an earlier version ({error}); it was set aside as {aside.name}, "
            "and its texts are labelled again"
        )

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Hold the folder's lock. Files are renamed only while no process has one open: SQLite finds its further files
        by name."""
        with (self.folder / ".lock").open("a") as lock:
            fcntl.flock(lock, how)
            yield

    def _announce(self, error: Exception) -> None:
        if self.folder not in _announced:
            _announced.add(self.folder)
            reason = error.strerror if isinstance(error, OSError) else error
            notice(
                f"labels cannot be stored in {self.folder} ({reason}): stored labels are used, new ones are lost when "
                "this process ends; free some space, or choose another place with paths.cache=DIR"
            )


def _rows(database: sqlite3.Connection, texts: Sequence[str]) -> list[Row]:
    """The rows of these texts. Raises _DamagedError for a wrong checksum."""
    rows = []
    for part in _slices(texts):
        for text, label, strength, checksum in database.execute(SELECT, [json.dumps(list(part))]):
            row = Row(text, label, strength)
            if row.checksum != checksum:
                raise _DamagedError("a label's checksum is not right", None)
            rows.append(row)
    return rows


def _slices(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield slices of the texts with at most MOST_CHARACTERS characters; a longer text is a slice of its own."""
    start = size = 0
    for number, text in enumerate(texts):
        longer = len(text) + len('"", ')
        size += longer
        if size > MOST_CHARACTERS and number > start:
            yield texts[start:number]
            start, size = number, longer
    yield texts[start:]


def _is_fault_of_place(error: sqlite3.Error, file: Path) -> bool:
    """Return whether the folder or disk is at fault and not the file. A file that SQLite calls read-only and the system
    does not has a damaged header."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code == sqlite3.SQLITE_READONLY:
        return not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))
    return code in SURROUNDINGS
