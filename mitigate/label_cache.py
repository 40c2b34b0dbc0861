"""Labels that are kept across runs: each distinct text is scored once by each scorer."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mitigate.errors import MitigateError
from mitigate.triples import Labels

PAGES = 256 * 2**20  # bytes: a large write to the label cache changes pages all over it, which stay in memory meanwhile


class LabelStore:
    """The label cache (the Protocol `LabelCache`): a SQLite file for each scorer fingerprint, safe to be used
    by several processes at once and open to any SQLite browser."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        known = np.zeros(len(texts), dtype=bool)
        labels = Labels(np.zeros(len(texts), dtype=np.int8), np.zeros(len(texts), dtype=np.float32))
        place = {text: i for i, text in enumerate(texts)}
        if not self._file(fingerprint).is_file():
            return known, labels
        with self._open(fingerprint) as database:
            query = "SELECT text, label, strength FROM labels WHERE text IN (SELECT value FROM json_each(?))"
            for text, label, strength in database.execute(query, [json.dumps(list(texts))]):
                i = place[text]
                known[i], labels.label[i], labels.strength[i] = True, label, strength
        return known, labels

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        rows = zip(texts, labels.label.tolist(), labels.strength.tolist(), strict=True)
        with self._open(fingerprint) as database, database:
            database.executemany("INSERT OR IGNORE INTO labels VALUES (?, ?, ?)", rows)

    def _file(self, fingerprint: str) -> Path:
        return self.folder / f"{fingerprint[:16]}.sqlite"

    @contextmanager
    def _open(self, fingerprint: str) -> Iterator[sqlite3.Connection]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self._file(fingerprint), timeout=120)
        except (OSError, sqlite3.Error) as error:
            raise MitigateError(
                f"cannot keep labels in {self.folder} ({error}); choose another place with paths.cache=DIR"
            ) from error
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")  # a kill loses nothing, a power cut the last writes at most
            database.execute(f"PRAGMA cache_size=-{PAGES // 1024}")
            database.execute(
                "CREATE TABLE IF NOT EXISTS labels (text TEXT PRIMARY KEY, label INTEGER, strength REAL) WITHOUT ROWID"
            )
            yield database
        finally:
            database.close()
