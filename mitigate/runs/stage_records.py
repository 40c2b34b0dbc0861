"""Records of finished stages: what each result depends on and the hashes of its files, in a run's folder and in those
beside it. Runs with a stage in common, as sweeps of a policy or a measure have, compute it once."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mitigate.runs.file_tracking import is_changed
from mitigate.runs.files import read_json, replacing
from mitigate.runs.fingerprints import is_intact

FOLDER = "stages"  # of a run folder, with a record of each stage
ENTRIES = {"code": str, "inputs": str, "files": dict, "seconds": float | int, "peak_memory": int}


def read(run: Path, stage: str) -> dict[str, Any] | None:
    """The record of a stage; None where it is missing or damaged."""
    record = read_json(run / FOLDER / f"{stage}.json")
    if record is None or any(not isinstance(record.get(name), kind) for name, kind in ENTRIES.items()):
        return None
    return record if record["files"] and is_intact(record) else None


def holds(run: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the files of the record, and those that a user's own code opened, are unchanged."""
    whole = all(digest(run / name) == expected for name, expected in record["files"].items())
    return whole and not is_changed(record.get("read", {}))


def beside(run: Path, stage: str, inputs: str, code: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Other runs in the same folder that have this result, each with its record, which names the run that computed
    it (`origin`)."""
    for path in sorted(run.parent.glob(f"*/{FOLDER}/{stage}.json")):
        other = path.parents[1]
        with suppress(OSError):  # another process may remove it meanwhile
            if other.name == run.name or inputs not in path.read_text(encoding="utf-8", errors="replace"):
                continue
            record = read(other, stage)
            if record and (record["inputs"], record["code"]) == (inputs, code) and holds(other, record):
                yield other, {"origin": other.name, **record}


def copy(source: Path, run: Path, record: Mapping[str, Any]) -> bool:
    """Copy the files of a result into the run. Returns False where one of them changed meanwhile.

    Raises MitigateError when the disk is full or the folder cannot be written to."""
    for name, expected in record["files"].items():
        try:
            original = (source / name).open("rb")
        except OSError:
            return False
        with original, replacing(run / name) as copied:
            shutil.copyfileobj(original, copied)
        if digest(run / name) != expected:
            return False
    return True


def digest(path: Path) -> str | None:
    """The SHA-256 of a file; None where it is missing."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
