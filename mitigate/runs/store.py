"""Run folders: each stage's result is a file with the hash of its inputs, and writes are atomic. A killed run resumes,
and nothing is computed twice. Nothing is moved: the parts of a result are written where they stay, and temporary
folders are removed after the result is recorded. Every step may be repeated, wherever a kill stopped it."""

import fcntl
import json
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.runs import stage_records as records
from mitigate.runs.files import PART, as_json, read_json, refuse_link, remove_parts, write, writing
from mitigate.runs.fingerprints import (
    as_parquet,
    codes_of,
    digest_of,
    digest_of_stage,
    digest_of_values,
    is_intact,
    read_by_own_code,
    sealed,
)
from mitigate.runs.user_code import say_not_reused

__all__ = ["as_parquet", "digest_of"]

SETTINGS = "config.yaml"  # of the run
NOT_RESULTS = {"manifest.json", "status.json", "wandb", ".lock"}  # in a run folder
Value = pl.DataFrame | dict[str, Any]  # that a stage's function returns: a table, or numbers
MARKER = ".of"  # in a folder of parts: the fingerprint of their unfinished stage


@dataclass(frozen=True)
class Result:
    """A finished stage: its name, its file, the hash of all its files, and its time and memory. In a rehearsal also a
    stage that is to be run, `pending`: its digest is not a hash, so that all stages that depend on it are pending
    too."""

    stage: str
    path: Path
    digest: str
    seconds: float
    peak_memory: int  # bytes, of the whole process up to the end of the stage
    from_cache: bool
    kept: bool = False  # whether its code has changed since, and the user chose to keep the result
    pending: bool = False
    origin: str | None = None  # the run that computed it, where it was copied from another one

    def table(self) -> pl.DataFrame:
        """The stage's table. Raises NotComputedError for a pending stage."""
        self._check()
        return pl.read_parquet(self.path, glob=False)

    def facts(self) -> dict[str, Any]:
        """The stage's numbers. Raises NotComputedError for a pending stage."""
        self._check()
        return json.loads(self.path.read_text(encoding="utf-8"))

    def value(self) -> Value:
        """The value that the stage's function returned."""
        return self.table() if self.path.suffix == ".parquet" else self.facts()

    def _check(self) -> None:
        if self.pending:
            raise NotComputedError(self.stage)


@dataclass(frozen=True)
class Work:
    """The run folder and the fingerprint of a stage, which its function may need and its result does not depend on."""

    folder: Path  # the run folder
    fingerprint: str  # of the stage

    def parts(self, name: str) -> "PartFolder":
        """Numbered parts of this result in the folder of that name; parts of another result are removed."""
        return PartFolder(self.folder / name, self.fingerprint)


class NotComputedError(Exception):
    """A result that is read in a rehearsal and is not there; its argument is the stage's name."""


class BusyError(MitigateError):
    """A run folder that another process is working on."""


def wait_for(folder: Path) -> None:
    """Wait until no process is working on the run folder."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def tidy(folder: Path) -> None:
    """Remove unfinished files of killed processes from a run's folder, unless a process is working on it or it cannot
    be written to."""
    if any(folder.rglob(".*.part")):  # else nothing of a finished run is touched
        with suppress(MitigateError):
            Run(folder).close()


class Run:
    """The folder of one run, which one process at a time holds. A dry run writes nothing; its stages without a result
    are pending. keep_code: keep results whose code has changed, where a stage allows that."""

    def __init__(self, folder: Path, dry: bool = False, keep_code: bool = False) -> None:
        self.folder = folder
        self.dry = dry
        self.keep_code = keep_code
        self.results: list[Result] = []
        self._stages_files: set[str] = set()  # of the stages so far, written or found intact
        if not dry:
            self._lock_folder()

    def _lock_folder(self) -> None:
        folder = self.folder
        try:
            (folder / records.FOLDER).mkdir(parents=True, exist_ok=True)
            for path in sorted(folder.iterdir()):
                if path.name not in NOT_RESULTS and not path.is_file():
                    refuse_link(path)
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
                f"another process is working on {folder}; wait for it to finish, or stop it and run this command again"
            ) from error
        remove_parts(folder)

    def stage(
        self,
        stage: str,
        function: Callable[..., Value],
        *values: Any,
        using: Mapping[str, Any] | Callable[[Work], Mapping[str, Any]] | None = None,
        after: Sequence[Result] = (),
        leaves: Sequence[str] = (),
        scratch: Sequence[str] = (),
        may_be_kept: bool = False,
        **named: Any,
    ) -> Result:
        """The result of function(*values, **named, **using), read from the folder if it is recorded, else computed and
        recorded.

        A recorded result is used if it has the same code that the function reaches, the same values and the same
        results `after` which it comes, if the files that a user's own code opened are unchanged, and if its own files
        are intact. Where this folder has no such result and a run beside it does, that one is copied. The function
        receives the table or the numbers of a Result among the values. `using` (a dict, or a function of Work that
        returns one) has arguments that do not affect the result, such as places. The function returns a table
        ({stage}.parquet) or a dict of numbers ({stage}.json).

        leaves: files and folders that it writes in the run folder itself. scratch: folders that are removed once the
        result is recorded. may_be_kept: whether `code=keep` applies, as to a long training. In a dry run a stage
        without a recorded result is pending."""
        if isinstance(function, partial):
            bound: partial[Any] = function
            function, values, named = bound.func, (*bound.args, *values), {**bound.keywords, **named}
        inputs = digest_of_values(stage, values, named, [result.digest for result in after])
        code = digest_of_stage(function, [values, named])
        result = self._known(stage, inputs, code, self.keep_code and may_be_kept)
        result = result or self._copied(stage, inputs, code, leaves)
        if result is None and self.dry:
            result = Result(stage, self.folder / stage, f"{stage} is pending", 0.0, 0, False, pending=True)
        elif result is None:
            fingerprint = digest_of(inputs + code)
            more = using(Work(self.folder, fingerprint)) if callable(using) else using or {}
            if say_not_reused(f"the result of stage {stage}", codes_of(function, [values, named])):
                self._remove(scratch)  # another process's code made these parts and checkpoints
            (self.folder / "manifest.json").unlink(missing_ok=True)  # the run is unfinished from here on
            started = time.perf_counter()
            with writing(self.folder):
                found = function(*map(_value, values), **{k: _value(v) for k, v in named.items()}, **more)
            read = read_by_own_code(function, [values, named])
            depends = {"code": code, "inputs": inputs, **({"read": read} if read else {})}
            result = self._save(stage, found, depends, leaves, started)
        if not self.dry:
            self._remove(scratch)
            for name in leaves:  # complete now, and read by others from here on
                if (marker := self.folder / name / MARKER).is_file():
                    marker.unlink()
        self.results.append(result)
        return result

    def _known(self, stage: str, inputs: str, code: str, keep_code: bool) -> Result | None:
        """The recorded result, if it has these inputs and this code and is intact."""
        record = records.read(self.folder, stage)
        if record is None or record["inputs"] != inputs or not (record["code"] == code or keep_code):
            return None
        if not records.holds(self.folder, record):
            return None
        return self._recorded(stage, record, self.folder, kept=record["code"] != code)

    def _recorded(
        self, stage: str, record: dict[str, Any], place: Path, new: bool = False, kept: bool = False
    ) -> Result:
        """The result of a record whose files are in `place`. new: it was not in this folder."""
        files = record["files"]
        self._stages_files.update(files)
        path, digest = place / next(iter(files)), digest_of(as_json(files))
        used = record["seconds"], record["peak_memory"]
        return Result(stage, path, digest, *used, not new, kept, origin=record.get("origin"))

    def _copied(self, stage: str, inputs: str, code: str, leaves: Sequence[str]) -> Result | None:
        """The result of a run beside this one with these inputs and this code, copied here; in a dry run as it lies
        there."""
        for source, record in records.beside(self.folder, stage, inputs, code):
            if self.dry:
                return self._recorded(stage, record, source, new=True)
            self._remove(leaves)  # of an unfinished stage
            (self.folder / "manifest.json").unlink(missing_ok=True)  # the run is unfinished from here on
            if records.copy(source, self.folder, record):
                write(self.folder / records.FOLDER / f"{stage}.json", as_json(sealed(record)))
                return self._recorded(stage, record, self.folder, new=True)
        return None

    def _save(self, stage: str, found: Value, depends: dict[str, Any], leaves: Sequence[str], start: float) -> Result:
        """Write what a stage's function returned, and its record."""
        is_table = isinstance(found, pl.DataFrame)
        path = self.folder / f"{stage}.{'parquet' if is_table else 'json'}"
        write(path, as_parquet(found) if isinstance(found, pl.DataFrame) else as_json(found))
        seconds = round(time.perf_counter() - start, 3)
        files = {path.name: records.digest(self.folder / path.name)} | self._digests(leaves)
        self._stages_files.update(files)
        result = Result(stage, path, digest_of(as_json(files)), seconds, peak_memory(), False)
        record = {**depends, "files": files, "seconds": seconds, "peak_memory": result.peak_memory}
        write(self.folder / records.FOLDER / f"{stage}.json", as_json(sealed(record)))
        return result

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def finished(self) -> bool:
        """Return whether all results are in this folder, and the manifest (written last) and the files that a recipe
        writes besides those of its stages, such as tables and cards, are intact. The settings, which every job can
        write again, and the records of stages, which were checked with the stages, are not checked."""
        manifest = read_json(self.folder / "manifest.json") or {}
        files = manifest.get("files")
        if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
            return False
        known = {*self._stages_files, SETTINGS}
        others = [name for name in files if name not in known and not name.startswith(f"{records.FOLDER}/")]
        has_all = is_intact(manifest) and not any(
            result.pending or result.path.parent != self.folder for result in self.results
        )
        return has_all and all(records.digest(self.folder / name) == files[name] for name in others)

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the manifest: the facts and the hashes of the run folder's files."""
        mine = [path.name for path in sorted(self.folder.iterdir()) if path.name not in NOT_RESULTS]
        write(self.folder / "manifest.json", as_json(sealed({**facts, "files": self._digests(mine)})))

    def _digests(self, names: Sequence[str]) -> dict[str, str | None]:
        """The hash of each file of these names, or in folders of these names, except unfinished files, such as a status
        that a thread is writing."""
        places = [self.folder / name for name in names]
        files = [f for place in places for f in (sorted(place.rglob("*")) if place.is_dir() else [place])]
        whole = [file for file in files if file.name != MARKER and not PART.fullmatch(file.name) and file.is_file()]
        relative = [str(file.relative_to(self.folder)) for file in whole]
        return {name: records.digest(self.folder / name) for name in relative}

    def close(self) -> None:
        """Release the folder."""
        if not self.dry:
            self._lock.close()


class PartFolder:
    """Numbered partial results of one stage (the Protocol `Parts`), a parquet file each, named by number and hash.

    of: the fingerprint of the whole result. Parts of another result and damaged parts are removed when the folder is
    opened."""

    def __init__(self, folder: Path, of: str | None = None) -> None:
        self.folder = folder
        if of is not None:
            self._open(of)
        folder.mkdir(parents=True, exist_ok=True)

    def _open(self, of: str) -> None:
        refuse_link(self.folder)
        marker = self.folder / MARKER
        known = marker.read_text(encoding="utf-8", errors="replace") if marker.is_file() else None
        if known != of:
            marker.unlink(missing_ok=True)  # first, so that a kill leaves no folder that looks complete
            shutil.rmtree(self.folder, ignore_errors=True)
            write(marker, of)
        for path in self._files():
            if digest_of(path.read_bytes())[:8] != path.stem[7:]:
                path.unlink()

    def __contains__(self, number: int) -> bool:
        return any(self.folder.glob(f"{number:06}-*.parquet"))

    def save(self, number: int, frame: pl.DataFrame) -> None:
        """Save a part atomically."""
        content = as_parquet(frame)
        for other in self.folder.glob(f"{number:06}-*.parquet"):
            other.unlink()
        write(self.folder / f"{number:06}-{digest_of(content)[:8]}.parquet", content)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return (pl.read_parquet(path, glob=False) for path in self._files())

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def remove(self) -> None:
        """Delete the parts, once the whole is saved."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _value(value: Any) -> Any:
    """The value that a stage's function receives: of a Result its table or numbers."""
    if isinstance(value, Result):
        return value.value()
    if isinstance(value, list | tuple) and any(isinstance(part, Result) for part in value):
        return type(value)(map(_value, value))
    if isinstance(value, dict) and any(isinstance(part, Result) for part in value.values()):
        return {name: _value(part) for name, part in value.items()}
    return value


def peak_memory() -> int:
    """The peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
