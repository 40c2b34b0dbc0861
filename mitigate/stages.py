"""Run folders and their stages: each result is stored once by a key and linked into the run folders that have it.

The key is a hash of the stage's name, its function and arguments by content, all files of this package, and the
versions of the libraries that compute. A killed command resumes: finished stages are read, and an unfinished one finds
its checkpoints and parts. Any edit of the package computes again; a user's own code counts by its `version`."""

import fcntl
import hashlib
import inspect
import json
import os
import resource
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from importlib import metadata
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import polars as pl

from mitigate.files import as_json, digest_of, digest_of_file, read_sealed, sealed, system_errors, write, writing
from mitigate.progress import notice

STORE = ".stages"  # beside the run folders
OWN = ".own"  # in a run folder: results of a user's own code without a version
RECORD = "record.json"  # of an entry of the store, written last: hashes of its files, time and memory
SCRATCH = ("checkpoints", "parts")  # folders of an entry, removed when it is complete
SETTINGS, MANIFEST = "config.yaml", "manifest.json"  # of a run
NOT_RESULTS = {MANIFEST, "status.json", "wandb"}  # in a run folder
LIBRARIES = ("torch", "transformers", "tokenizers", "vaderSentiment", "numpy", "polars")  # that compute results
PROCESS = f"process-{uuid.uuid4().hex}"  # in the fingerprint of own code without a version, and in hashes of it
_SAID: set[str] = set()  # modules of own code without a version that one line named
Value = pl.DataFrame | dict[str, Any]  # that a stage's function returns: a table, or numbers
FORMATS = ("parquet", "csv", "tsv", "jsonl")
"""The formats of tables by the ending of the file."""


class MissingError(Exception):
    """A result that a dry run reads and that is still to be computed; its argument is the stage's name."""


@dataclass(frozen=True)
class Result:
    """A stage's result: its file, the hash of all its files, and its time and memory. In a dry run also a stage that is
    to be run: what depends on it is to be run too, since no key has such a digest."""

    stage: str
    path: Path  # in the run folder
    folder: Path  # of the store, with all files that the stage wrote
    digest: str
    seconds: float = 0.0
    peak_memory: int = 0  # bytes, of the whole process up to the end of the stage
    from_cache: bool = False
    missing: bool = False

    def value(self) -> Value:
        """The value that the stage's function returned. Raises MissingError in a dry run without it."""
        if self.missing:
            raise MissingError(self.stage)
        if self.path.suffix == ".parquet":
            return pl.read_parquet(self.path, glob=False)
        return json.loads(self.path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    def table(self) -> pl.DataFrame:
        """The stage's table."""
        return cast("pl.DataFrame", self.value())

    def facts(self) -> dict[str, Any]:
        """The stage's numbers."""
        return cast("dict[str, Any]", self.value())


@dataclass(frozen=True)
class Work:
    """The place where a stage's function leaves files, and the stage's key. Folders named checkpoints and parts are
    removed when the stage is complete; all else belongs to its result and is linked into the run folder."""

    folder: Path
    key: str

    def parts(self, name: str = "parts") -> "PartFolder":
        """Numbered parts in the folder of that name."""
        return PartFolder(self.folder / name)


Using = Mapping[str, Any] | Callable[[Work], Mapping[str, Any]] | None


def in_folder(**more: Any) -> Using:
    """The `using` of a stage's function that takes the Work's folder, and more."""
    return lambda work: {"folder": work.folder, **more}


class Run:
    """The folder of one run. begin: called before the first stage that is computed. A dry run writes nothing."""

    def __init__(self, folder: Path, dry: bool = False, begin: Callable[[], None] = lambda: None) -> None:
        self.folder, self.dry, self.begun = folder, dry, False
        self.results: list[Result] = []
        self._begin, self._files, self._lock, self._is_locked = begin, dict[str, str](), ExitStack(), False

    def stage(
        self,
        name: str,
        function: Callable[..., Value],
        *values: Any,
        using: Using = None,
        after: Sequence[object] = (),
        **named: Any,
    ) -> Result:
        """The result of function(*values, **named, **using), read from the store if it is there, else computed.

        The function receives the table or the numbers of a Result among the values. `using` has what does not affect
        the result, such as places, devices and caches; as a function it is given the stage's Work. after: what
        else the result depends on; files of results among it lie in the Work's folder too. The function returns a table
        ({name}.parquet) or a dict of numbers ({name}.json), and may leave files in the Work's folder."""
        key = digest_of_values(name, function, values, named, after, package_digest())
        place = self.folder / OWN / PROCESS if key.startswith(PROCESS) else self.folder.parent / STORE
        entry = place / f"{name}-{key[-32:]}"
        result = self._read(name, entry)
        if result is None and self.dry:
            result = Result(name, entry / name, entry, f"{name} is missing", missing=True)
        elif result is None:
            self.lock()
            with _locked(entry / ".lock", f"stage {name}"):
                result = self._read(name, entry)  # that another process has just computed
                if result is None:
                    self.begin()
                    work = Work(entry, key)
                    more = {name: _value(value) for name, value in named.items()}
                    more |= (using(work) if callable(using) else using) or {}
                    result = self._compute(name, work, lambda: function(*map(_value, values), **more), after)
        if not self.dry:
            self._link(entry)
            result = replace(result, path=self.folder / result.path.name)
        self.results.append(result)
        return result

    def lock(self) -> None:
        """Wait until no other process is working on this run."""
        if not self._is_locked:
            self._lock.enter_context(_locked(self.folder / ".lock", "this run"))
            self._is_locked = True

    def begin(self) -> None:
        """Lock the folder, and remove what an earlier run left: it is unfinished from here on."""
        if self.begun:
            return
        self.lock()
        listed = read_sealed(self.folder / MANIFEST).get("files", {})
        with system_errors(self.folder):
            (self.folder / MANIFEST).unlink(missing_ok=True)
            for name in listed.keys() - self._files.keys():
                if ".." not in Path(name).parts and not Path(name).is_absolute():
                    (self.folder / name).unlink(missing_ok=True)
            _remove_parts(self.folder)
            for path in {*(self.folder / OWN).glob("process-*")} - {self.folder / OWN / PROCESS}:
                shutil.rmtree(path, ignore_errors=True)
        self.begun = True
        self._begin()

    def _read(self, name: str, entry: Path) -> Result | None:
        """The stored result, if all its files are as they were written."""
        record = read_sealed(entry / RECORD)
        files = record.get("files")
        if not files or any(digest_of_file(entry / each) != files[each] for each in files):
            return None
        path, digest = entry / next(iter(files)), digest_of(as_json(files))
        return Result(name, path, entry, digest, record["seconds"], record["peak_memory"], from_cache=True)

    def _compute(self, name: str, work: Work, call: Callable[[], Value], after: Sequence[object]) -> Result:
        """Call the function and store what it returns and leaves."""
        entry = work.folder
        if (entry / RECORD).exists():  # of a damaged result
            for path in entry.iterdir():
                if path.name != ".lock":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        _remove_parts(entry)
        for one in (each for each in after if isinstance(each, Result)):
            for each in read_sealed(one.folder / RECORD).get("files", ()):
                (entry / each).parent.mkdir(parents=True, exist_ok=True)
                if not (entry / each).exists():
                    (entry / each).unlink(missing_ok=True)  # a link to an entry that was deleted
                    (entry / each).symlink_to((one.folder / each).resolve())
        started = time.perf_counter()
        with writing(entry):
            value = call()
        kind, content = ("parquet", as_parquet(value)) if isinstance(value, pl.DataFrame) else ("json", as_json(value))
        path = write(entry / f"{name}.{kind}", content)
        seconds = round(time.perf_counter() - started, 3)
        left = [
            each.relative_to(entry) for each in sorted(entry.rglob("*")) if each.is_file() and not each.is_symlink()
        ]
        kept = [str(each) for each in left if not each.name.startswith(".") and each.parts[0] not in SCRATCH]
        files = {each: digest_of_file(entry / each) for each in dict.fromkeys((path.name, *kept))}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # of the process so far
        write(entry / RECORD, as_json(sealed({"files": files, "seconds": seconds, "peak_memory": peak})))
        return Result(name, path, entry, digest_of(as_json(files)), seconds, peak)

    def _link(self, entry: Path) -> None:
        """Link a complete entry's files into the run folder, or copy them where the disk has no links."""
        for name in SCRATCH:
            shutil.rmtree(entry / name, ignore_errors=True)
        for name, digest in read_sealed(entry / RECORD)["files"].items():
            source, target = entry / name, self.folder / name
            self._files[name] = digest
            if target.exists() and (target.samefile(source) or digest_of_file(target) == digest):
                continue
            part = target.with_name(f".{target.name}.{os.getpid()}.part")
            with system_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                part.unlink(missing_ok=True)
                try:
                    part.hardlink_to(source)
                except OSError:
                    shutil.copyfile(source, part)
                part.replace(target)

    def is_complete(self) -> bool:
        """Return whether all stages were in the store, and the manifest and the files that a recipe writes besides
        those of its stages are intact."""
        listed = read_sealed(self.folder / MANIFEST).get("files", {})
        others = listed.keys() - self._files.keys()
        is_listed = not self.begun and bool(listed) and self._files.items() <= listed.items()
        return is_listed and all(digest_of_file(self.folder / name) == listed[name] for name in others)

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the manifest: the facts and the hashes of the run folder's files."""
        paths = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        names = [path.relative_to(self.folder) for path in paths]
        shown = [
            str(name)
            for name in names
            if name.parts[0] not in NOT_RESULTS and not any(part.startswith(".") for part in name.parts)
        ]
        digests = {name: self._files.get(name) or digest_of_file(self.folder / name) for name in shown}
        write(self.folder / MANIFEST, as_json(sealed({**facts, "files": digests})))

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()


class PartFolder:
    """Numbered partial results of one stage (the Protocol `Parts`), a parquet file each, named by number and hash.
    Damaged parts are removed when the folder is opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for path in self._files():
            if digest_of(path.read_bytes())[:8] != path.stem[7:]:
                path.unlink()
        folder.mkdir(parents=True, exist_ok=True)

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


@cache
def package_digest() -> str:
    """One hash of all sources and data files of the installed package, and of the versions of the libraries."""
    found = hashlib.sha256(json.dumps([metadata.version(name) for name in LIBRARIES]).encode())
    package = Path(__file__).parent
    parts = (package, package / "models")  # in a checkout the second is a link, which rglob does not follow
    for path in sorted({path for part in parts for path in part.rglob("*") if path.is_file()}):
        if path.suffix != ".pyc":
            found.update(f"{path.relative_to(package)} {digest_of_file(path)}\n".encode())
    return found.hexdigest()


def digest_of_values(*values: object) -> str:
    """One hash of values that `plain` accepts; it begins with PROCESS where own code without a version is among
    them."""
    text = json.dumps(plain(values), sort_keys=True, ensure_ascii=False)
    return f"{PROCESS}-{digest_of(text)}" if PROCESS in text else digest_of(text)


def fingerprint(made: object, *facts: object) -> str:
    """The fingerprint of an object such as a scorer: its class, the package, and facts such as hashes of weights and
    settings."""
    return digest_of_values(type(made), package_digest(), *facts)


def plain(value: object) -> Any:
    """A value as JSON, with hashes in place of tables, arrays and code: equal for equal values only. An object with a
    `digest` or a `fingerprint` is represented by it; a dataclass by its fields without those that its `surroundings`
    names, which say how or where. Raises TypeError for a path, which does not determine the file's content, and for any
    other type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, pl.DataFrame | pl.Series):
        frame = value if isinstance(value, pl.DataFrame) else value.to_frame()
        return {"table": digest_of_table(frame)}
    if isinstance(value, np.ndarray):
        return {"array": digest_of(np.ascontiguousarray(value).tobytes()), "as": [str(value.dtype), *value.shape]}
    if isinstance(value, np.generic):
        return value.item()
    for known in ("digest", "fingerprint"):
        if isinstance(found := getattr(value, known, None), str) and not isinstance(value, type):
            called = getattr(value, "name", None)  # a scorer's columns are called by its name
            return {known: found, "name": called if isinstance(called, str) else None}
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value) if one.name not in getattr(value, "surroundings", ())]
        return {"object": plain(type(value)), **{name: plain(getattr(value, name)) for name in names}}
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key), plain(part)] for key, part in value.items()]}
    if isinstance(value, Set):
        return {"set": sorted(json.dumps(plain(part), sort_keys=True) for part in value)}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return {"bytes": digest_of(value)}
    if isinstance(value, partial):
        return {"partial": plain(value.func), "args": plain(value.args), "with": plain(value.keywords)}
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    if isinstance(value, type) or inspect.isroutine(value):
        bound = getattr(value, "__self__", None)
        of = None if isinstance(bound, ModuleType) else plain(bound)
        return {"code": name_of(value), "of": of, "version": identity_of(value)}
    raise TypeError(
        f"a result cannot depend on {value!r} ({type(value).__name__}): give plain values, tables, dataclasses or "
        "objects with a `fingerprint`; paths and what only says where or how goes into `using`"
    )


def is_own(of: object) -> bool:
    """Return whether a class, a function or an object is a user's own: neither of the project nor of Python."""
    top = (_code_of(of).__module__ or "").partition(".")[0]
    return top != "mitigate" and (top not in sys.stdlib_module_names or top == "__main__")


def identity_of(of: object) -> str | None:
    """The version of a user's own code; without one the name of this process, and one line says so. None for the
    project's code, which package_digest covers."""
    if not is_own(of):
        return None
    version = version_of(of)
    return _unversioned(_code_of(of)) if version is None else version


def version_of(of: object) -> str | None:
    """The attribute `version` of a user's own class, function or object."""
    of = of.__self__ if inspect.ismethod(of) else of
    held = [vars(one) for one in (of, _code_of(of)) if hasattr(one, "__dict__")]
    found = next((each["version"] for each in held if "version" in each), None)
    return None if found is None else str(found)


def name_of(of: object) -> str:
    """The name of a class or function with its module; in a script, with its file."""
    code = _code_of(of)
    script = Path(getattr(sys.modules.get(code.__module__), "__file__", None) or "").stem
    return f"{script if code.__module__ == '__main__' else code.__module__}.{code.__qualname__}"


def _code_of(of: Any) -> Any:
    of = of.func if isinstance(of, partial) else of
    return of if isinstance(of, type) or inspect.isroutine(of) else type(of)


@cache
def _unversioned(code: object) -> str:
    """Another identity for each class and function, of which a notebook may define several of one name; one line for
    each module."""
    name = name_of(code)
    module, _, short = name.rpartition(".")
    if module not in _SAID:
        _SAID.add(module)
        notice(
            f"{name} has no version: its results are computed again by each command, also after a kill. To reuse them, "
            f'set {short}.version = "1", and another version whenever the code or what it reads changes'
        )
    return f"{PROCESS}-{uuid.uuid4().hex}"


def as_parquet(frame: pl.DataFrame) -> bytes:
    """The bytes of the table as a Parquet file: the same for the same rows, in whatever chunks they are."""
    buffer = BytesIO()
    frame.rechunk().write_parquet(buffer, row_group_size=2**18)
    return buffer.getvalue()


def digest_of_table(frame: pl.DataFrame) -> str:
    """The hash of a table's rows, a part at a time: the bytes of all would take as much memory as the table."""
    return digest_of(" ".join(digest_of(as_parquet(part)) for part in frame.iter_slices(2**18)))


def table_bytes(frame: pl.DataFrame, format: str) -> bytes:
    """A table as a file's content. Equal tables give equal bytes. TSV has no quotes, as ConceptNet's files: a tab or
    line end within a text becomes a space."""
    content = BytesIO()
    if format == "tsv":
        plain = frame.with_columns(pl.col(pl.String).str.replace_all(r"[\t\r\n]", " "))
        plain.write_csv(content, separator="\t", quote_style="never")
    else:
        save: Any = {"parquet": frame.write_parquet, "csv": frame.write_csv, "jsonl": frame.write_ndjson}[format]
        save(content)
    return content.getvalue()


def statement_lines(statements: pl.DataFrame) -> bytes:
    """The distinct statements as lines `target<TAB>statement` under a line of names, as recipe=humans and recipe=labels
    read them with data=statements."""
    return table_bytes(statements.select("target", "statement").unique(maintain_order=True), "tsv")


def _value(value: Any) -> Any:
    """The value that a stage's function receives: of a Result its table or numbers."""
    if isinstance(value, Result):
        return value.value()
    if isinstance(value, list | tuple) and any(isinstance(part, Result) for part in value):
        return type(value)(map(_value, value))
    if isinstance(value, dict) and any(isinstance(part, Result) for part in value.values()):
        return {name: _value(part) for name, part in value.items()}
    return value


@contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file, after a line where another process holds it."""
    with system_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            notice(f"another process is already working on {what}; waiting for it to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_parts(folder: Path) -> None:
    """Remove the unfinished files that killed processes have left; the folder is locked."""
    for path in filter(Path.is_file, folder.rglob(".*.part")):
        path.unlink()
