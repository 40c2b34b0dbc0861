"""A cache of labels across runs: each scorer scores each distinct text once. A label is used only when its checksum
matches, so that a damaged file costs time and never changes a figure."""

import json
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import numpy as np

from mitigate.progress import notice
from mitigate.stages import PROCESS
from mitigate.triples import Labels

PAGES = 256 * 2**20  # bytes: a large write changes pages all over the file, which stay in memory meanwhile
TABLE = """CREATE TABLE IF NOT EXISTS labels
    (text TEXT PRIMARY KEY, label INTEGER, strength REAL, checksum INTEGER) WITHOUT ROWID"""
SELECT = "SELECT text, label, strength, checksum FROM labels WHERE text IN (SELECT value FROM json_each(?))"
AT_ONCE = 2**12  # texts looked up at once, as JSON, of which SQLite takes 10^9 bytes
FAULTS = (OSError, sqlite3.Error, UnicodeDecodeError)  # the last for bytes that SQLite quotes in a message
Row = tuple[str, int, float | None]  # text, label, strength; SQLite keeps no NaN

_announced: set[Path] = set()  # folders of which this process has shown a fault


class LabelStore:
    """The label cache (the Protocol `LabelCache`): a SQLite file for each scorer fingerprint, safe to be used by
    several processes at once and open to any SQLite browser.

    Each row has a checksum of its own, compared whenever it is read: SQLite's `PRAGMA quick_check` does not notice a
    changed label. Where the file is damaged or the folder cannot be written to, one line says so, and new labels stay
    in memory, for this object only; so do those of a user's own scorer without a version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._memory: dict[str, dict[str, Row]] = {}

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        """The mask of texts with labels, and their labels."""
        is_cached = np.zeros(len(texts), dtype=bool)
        labels = Labels(np.zeros(len(texts), dtype=np.int8), np.zeros(len(texts), dtype=np.float32))
        place = {text: i for i, text in enumerate(texts)}
        memory = self._memory.get(fingerprint, {})
        rows = self._read(fingerprint, texts) + [memory[text] for text in memory.keys() & place.keys()]
        for text, label, strength in rows:
            i = place.get(text)
            if i is not None:  # SQLite's JSON ends a text where it has a zero byte, and finds the one that ends there
                is_cached[i], labels.label[i] = True, label
                labels.strength[i] = np.nan if strength is None else strength
        return is_cached, labels

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        """Store the labels."""
        strengths = [None if value != value else value + 0.0 for value in labels.strength.tolist()]  # no NaN, no -0.0
        rows = list(zip(texts, labels.label.tolist(), strengths, strict=True))
        if fingerprint.startswith(PROCESS) or not self._write(self._file(fingerprint), rows):
            self._memory.setdefault(fingerprint, {}).update((row[0], row) for row in rows)

    def _write(self, file: Path, rows: Sequence[Row]) -> bool:
        """Return whether the rows could be written."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(file, timeout=120)) as database, database:
                with suppress(sqlite3.OperationalError):  # another process is at it, and SQLite does not wait here
                    database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=NORMAL")  # a kill loses nothing, a power cut the last writes
                database.execute(f"PRAGMA cache_size=-{PAGES // 1024}")
                database.execute(TABLE)
                values = ((*row, _sum(row)) for row in rows)
                database.executemany("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?)", values)
        except FAULTS as error:
            _announce(file, error)
            return False
        return True

    def _read(self, fingerprint: str, texts: Sequence[str]) -> list[Row]:
        """The stored rows of these texts with the right checksum."""
        file = self._file(fingerprint)
        try:
            if not file.exists():
                return []
            with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=120)) as database:
                parts = (json.dumps([*texts[start : start + AT_ONCE]]) for start in range(0, len(texts), AT_ONCE))
                found = [row for part in parts for row in database.execute(SELECT, [part])]
            return [row[:3] for row in found if _sum(row[:3]) == row[3]]
        except FAULTS as error:
            _announce(file, error)
            return []

    def _file(self, fingerprint: str) -> Path:
        return self.folder / f"{fingerprint[:16]}.sqlite"


def _announce(file: Path, error: Exception | None) -> None:
    """Say once in a process and for a folder that labels cannot be stored or read."""
    if file.parent not in _announced:
        _announced.add(file.parent)
        reason = error.strerror if isinstance(error, OSError) else error
        notice(
            f"the label cache {file} cannot be used ({reason}): texts are labelled again, and their labels are lost "
            "when this process ends; free some space, delete the file if it is damaged, or choose another place with "
            "paths.cache=DIR"
        )


def _sum(row: Row) -> int:
    """CRC-32 of the row: at 4 bytes, a changed row has it by chance once in 4 billion."""
    return zlib.crc32(repr(row).encode())
