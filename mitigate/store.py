"""Run folders: what a stage found is kept as a file, known by the hash of what it was made from, and written
whole or not at all. So a killed run goes on where it stopped, and nothing is computed twice."""

import fcntl
import hashlib
import inspect
import json
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import write

NOT_RESULTS = {"manifest.json", "wandb", ".lock"}  # of a run folder


@dataclass(frozen=True)
class Result:
    """A finished stage: its name, the file it left, that file's hash, and what it took."""

    stage: str
    path: Path
    digest: str
    seconds: float
    peak_memory: int  # bytes, of the whole process up to the end of the stage
    from_cache: bool

    def table(self) -> pl.DataFrame:
        """The stage's table."""
        return pl.read_parquet(self.path)

    def facts(self) -> dict[str, Any]:
        """The stage's numbers."""
        return json.loads(self.path.read_text(encoding="utf-8"))


class NotComputedError(Exception):
    """A stage that a dry run would have to compute; its argument is the stage's name."""


class BusyError(MitigateError):
    """A run folder that another process is working on."""


def wait_for(folder: Path) -> None:
    """Return when no process is working on the run folder."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


class Run:
    """One run's folder. Two processes cannot hold the same one.

    A dry run only looks: it writes nothing, and raises NotComputedError for the first stage that is not there."""

    def __init__(self, folder: Path, dry: bool = False) -> None:
        self.folder = folder
        self.dry = dry
        self.results: list[Result] = []
        if not dry:
            self._lock_folder()

    def _lock_folder(self) -> None:
        folder = self.folder
        try:
            (folder / "stages").mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("w")
        except OSError as error:
            raise MitigateError(
                f"cannot write to {folder} ({error.strerror}); choose another place with paths.outputs=DIR"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise BusyError(
                f"another process is working on {folder}; wait for it, or stop it and start this again"
            ) from error

    def fingerprint(self, stage: str, needs: Sequence[str], settings: object, code: Sequence[ModuleType]) -> str:
        """What a stage's result depends on: the hashes of its inputs, its settings and its source, of a package all
        files."""
        sources = [_source(module) for module in code]
        return digest_of(json.dumps([stage, list(needs), settings, sources], sort_keys=True, default=str))

    def known(self, stage: str, fingerprint: str) -> Result | None:
        """The stage's result if this folder has it from the same inputs, settings and source, intact."""
        record = read_json(self.folder / "stages" / f"{stage}.json")
        if not record or record["fingerprint"] != fingerprint:
            return None
        files = record["files"]
        if any(self._digest(name) != digest for name, digest in files.items()):
            return None
        path, digest = self.folder / next(iter(files)), digest_of(as_json(files))
        return Result(stage, path, digest, record["seconds"], record["peak_memory"], True)

    def stage(
        self,
        stage: str,
        compute: Callable[[str], pl.DataFrame | dict[str, Any]],
        *,
        needs: Sequence[str] = (),
        settings: object = None,
        code: Sequence[ModuleType] = (),
        leaves: Sequence[str] = (),
    ) -> Result:
        """The result of a stage, read when it is known, else computed and kept.

        compute is given the stage's fingerprint and returns a table (kept as {stage}.parquet) or a dict of
        numbers (kept as {stage}.json). needs are the hashes of its inputs, code the modules it runs, leaves
        the files and folders that compute itself writes in the run folder."""
        fingerprint = self.fingerprint(stage, needs, settings, code)
        result = self.known(stage, fingerprint)
        if result is None and self.dry:
            raise NotComputedError(stage)
        if result is None:
            self.reopen()
            started = time.perf_counter()
            found = compute(fingerprint)
            suffix = "parquet" if isinstance(found, pl.DataFrame) else "json"
            path = self.folder / f"{stage}.{suffix}"
            write(path, as_parquet(found) if isinstance(found, pl.DataFrame) else as_json(found))
            seconds = round(time.perf_counter() - started, 3)
            files = {path.name: self._digest(path.name)} | self._digests(leaves)
            result = Result(stage, path, digest_of(as_json(files)), seconds, peak_memory(), False)
            record = {
                "fingerprint": fingerprint,
                "files": files,
                "seconds": seconds,
                "peak_memory": result.peak_memory,
            }
            write(self.folder / "stages" / f"{stage}.json", as_json(record))
        self.results.append(result)
        return result

    def finished(self) -> bool:
        """Whether the manifest, written last, is there."""
        return (self.folder / "manifest.json").is_file()

    def reopen(self) -> None:
        """Take the manifest away, since something is about to be computed anew."""
        (self.folder / "manifest.json").unlink(missing_ok=True)

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the manifest: the facts, and the run folder's files with their hashes."""
        mine = [path.name for path in sorted(self.folder.iterdir()) if path.name not in NOT_RESULTS]
        write(self.folder / "manifest.json", as_json({**facts, "files": self._digests(mine)}))

    def _digests(self, names: Sequence[str]) -> dict[str, str | None]:
        """The hash of each file of that name, or in a folder of that name."""
        places = [self.folder / name for name in names]
        files = [f for place in places for f in (sorted(place.rglob("*")) if place.is_dir() else [place])]
        relative = [str(file.relative_to(self.folder)) for file in files if file.is_file()]
        return {name: self._digest(name) for name in relative}

    def _digest(self, name: str) -> str | None:
        path = self.folder / name
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def close(self) -> None:
        """Let others have the folder."""
        if not self.dry:
            self._lock.close()


class PartFolder:
    """Numbered partial results of one stage (the Protocol `Parts`), a parquet file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, number: int) -> bool:
        return self._path(number).is_file()

    def save(self, number: int, frame: pl.DataFrame) -> None:
        write(self._path(number), as_parquet(frame))

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return map(pl.read_parquet, sorted(self.folder.glob("*.parquet")))

    def remove(self) -> None:
        """Delete the parts, once their whole is kept."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.parquet"


def _source(module: ModuleType) -> str:
    file = Path(inspect.getfile(module))
    files = [file] if file.name != "__init__.py" else sorted(p for p in file.parent.iterdir() if p.is_file())
    return "".join(path.read_text(encoding="utf-8") for path in files)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON file's object, or None when there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def as_json(content: object) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def as_parquet(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def digest_of(content: bytes | str) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def peak_memory() -> int:
    """The most memory this process has held so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
