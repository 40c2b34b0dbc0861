"""Kills at every file operation: what lies on the disk before each of them is what a kill there would leave.

A run is done once with the operating system's functions replaced by ones that first copy the output folder. Then the
same command is given again in each of the copies, and has to come to the figures of the undisturbed run.

    python tests/killing.py [NAME ...]      all operations of these commands (default: all), as a table"""

import importlib
import json
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from recipe_commands import COMMANDS, arguments_of, make_compared

ROOT = Path(__file__).parents[1]
OPERATIONS = ("replace", "rename", "unlink", "remove", "rmdir", "mkdir")
STATUS = shutil.ignore_patterns("*status.json*")  # which a thread replaces at the same time
LIMIT = 1800  # seconds: a command that takes longer hangs
FIGURES = ("metrics.json", "humans.json", "comparison.json", "survey.json")


class Operation(NamedTuple):
    """A file operation, and the copy of what was on the disk before it."""

    name: str
    path: str
    copy: Path


class Killed(NamedTuple):
    """What became of a kill."""

    operation: Operation
    survived: bool
    told: str  # what was wrong


def call(arguments: Sequence[str]) -> int:
    """`python -m mitigate` in this process; its exit status."""
    from mitigate.__main__ import cli

    sys.argv = ["mitigate", *arguments]
    os.chdir(ROOT)
    try:
        cli()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def forked(work: Callable[[], int], said: Path) -> int:
    """The exit status of work done in a process that shares what is imported here; that of a signal after LIMIT."""
    process = os.fork()
    if process == 0:
        signal.alarm(LIMIT)  # whose action, to end the process, needs nothing of it
        with said.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            status = 1
            try:
                status = work()
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def prepared(name: str, place: Path) -> list[str]:
    """arguments_of, whose input is written by a process of its own: polars starts threads, and what is forked
    afterwards, without them, would wait for them for ever."""
    place.mkdir(parents=True, exist_ok=True)
    answer = place / "arguments.json"

    def write() -> int:
        answer.write_text(json.dumps(arguments_of(name, place)))
        return 0

    assert forked(write, place / "said") == 0, (place / "said").read_text()
    return json.loads(answer.read_text())


@contextmanager
def copying(outputs: Path, copies: Path) -> Iterator[None]:
    """Inside, each operation on a file below `outputs` first leaves a copy of the whole folder in copies/{number}."""
    originals = {name: getattr(os, name) for name in OPERATIONS}
    state = {"number": 0, "copying": False}
    prefix = str(outputs)

    def standing_in(name: str) -> Callable[..., Any]:
        def operation(path: Any, *rest: Any, **named: Any) -> Any:
            own = isinstance(path, str | os.PathLike) and os.fspath(path).startswith(prefix)  # type: ignore[arg-type]
            idle = name == "mkdir" and own and Path(path).is_dir()
            if own and not idle and "status.json" not in os.fspath(path) and not state["copying"]:
                state["copying"] = True
                copy = copies / f"{state['number']:05}"
                state["number"] += 1
                shutil.copytree(outputs, copy / "out", ignore=STATUS) if outputs.is_dir() else originals["mkdir"](copy)
                (copy / "operation.json").write_text(json.dumps([name, os.fspath(path)[len(prefix) + 1 :]]))
                state["copying"] = False
            return originals[name](path, *rest, **named)

        return operation

    for name in OPERATIONS:
        setattr(os, name, standing_in(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def figures(outputs: Path, place: Path | None = None) -> dict[str, Any] | None:
    """The figures of the only run folder, once it is finished.

    place: the folder of all that the command reads and writes; its name is left out of the figures, as are those that
    say how fast something was."""
    folders = [path for path in outputs.iterdir() if path.is_dir()] if outputs.is_dir() else []
    if len(folders) != 1 or not (folders[0] / "manifest.json").is_file():
        return None
    found = (folders[0] / name for name in FIGURES if (folders[0] / name).is_file())
    texts = (path.read_text() for path in found)
    placed = (text.replace(str(place), "PLACE") if place else text for text in texts)
    return next((json.loads(text, object_pairs_hook=_without_times) for text in placed), None)


def _without_times(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if not key.endswith(("seconds", "per_second"))}


def left_in(outputs: Path) -> list[str]:
    """The files of a finished run."""
    files = (path for path in outputs.rglob("*") if path.is_file() and path.name not in ("status.json", ".lock"))
    return sorted(str(path.relative_to(outputs)) for path in files)


def kills(name: str, place: Path, every: int = 1) -> list[Killed]:
    """The command killed before every operation, or every `every`-th and each that is the first of its kind."""
    cache = f"paths.cache={place / 'cache'}"
    arguments = [*prepared(name, place), cache]
    make_compared(name, place, lambda asked: forked(lambda: call([*asked, cache]), place / "said"))
    outputs, copies = place / "out", place / "copies"
    copies.mkdir()

    def whole() -> int:
        with copying(outputs, copies):
            return call([*arguments, f"paths.outputs={outputs}"])

    assert forked(whole, place / "said") == 0, (place / "said").read_text()
    expected = figures(outputs)
    assert expected, f"{name} left no figures"
    found, seen, left = [], set(), left_in(outputs)
    for number, copy in enumerate(sorted(copies.iterdir())):
        operation = Operation(*json.loads((copy / "operation.json").read_text()), copy)
        kind = (operation.name, "/".join(Path(operation.path).parts[1:2]))
        if number % every and kind in seen:
            continue
        seen.add(kind)
        here = copy / "out"
        status = forked(lambda here=here: call([*arguments, f"paths.outputs={here}"]), copy / "said")
        told = "" if status == 0 else (copy / "said").read_text()[-600:]
        if not told and figures(here) != expected:
            told = "other figures"
        there = left_in(here)
        if not told and there != left:
            told = f"files: missing {sorted(set(left) - set(there))}, left over {sorted(set(there) - set(left))}"
        found.append(Killed(operation, not told, told))
        shutil.rmtree(copy)
    return found


def share_imports() -> None:
    """Import here what every forked process would; nothing is computed, since threads do not survive a fork."""
    import mitigate

    for module in pkgutil.walk_packages(mitigate.__path__, "mitigate."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("transformers.models.bert_generation.modeling_bert_generation")


def main() -> None:
    """The table: operations, survived, lost."""
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
    sys.path.insert(0, str(ROOT))
    share_imports()
    with tempfile.TemporaryDirectory() as place:
        for name in sys.argv[1:] or list(COMMANDS):
            started = time.monotonic()
            found = kills(name, Path(place, name))
            lost = [killed for killed in found if not killed.survived]
            print(f"{name:<18}{len(found):>5} kills {len(found) - len(lost):>5} survived {len(lost):>4} lost", end="")
            print(f"   {time.monotonic() - started:.0f} s", flush=True)
            for killed in lost:
                print(f"    before {killed.operation.name} {killed.operation.path}: {killed.told}", flush=True)


if __name__ == "__main__":
    main()
