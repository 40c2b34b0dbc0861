"""Faults of all kinds, done to every recipe; afterwards the same command has to come to the figures of the undisturbed
run, or say in a sentence which file is at fault.

    python tests/faults.py [NAME ...] [--kinds killed together damaged cold full denied] [--attempts 12]

killed    SIGKILL at a random moment of each stage in turn, half of the time once more while the same command goes on.
together  Two jobs at once on one cache, as in a sweep; half of the time one of them is killed at a random moment.
damaged   Each stored file (results, checkpoints, models, label cache, compared runs; those of a finished run and those
          of a killed one) is truncated, changed in one bit, emptied or deleted.
cold      A table of the finished run is deleted, and the label cache with it; in `damaged` the cache stays.
full      The disk that holds outputs and cache fills up at a random size; then there is space again.
denied    A folder of the run cannot be written to, by a process without root's rights; then it can.

What a fault is done to, and where a kill meets the run, is drawn by --seed. Full disks need
root, to mount small ones."""

import argparse
import ctypes
import itertools
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pytest
from fault_tables import LOST, OUTCOMES, SAME, TOLD, Attempt, tables
from few_terms import use_few_terms
from killing import ROOT, call, figures, forked, left_in, prepared, share_imports
from recipe_commands import COMMANDS, make_compared

from mitigate.runs.fingerprints import SEAL, digest_of, is_intact

CAPABILITIES = 0x20080522  # the version of the system's call that sets them
PLACE = re.compile(rf"{re.escape(tempfile.gettempdir())}/mitigate-\w{{8}}")  # of a run, or of its copy (a_copy)
TIMES = ("seconds", "per_second", "peak_memory", "peak memory")  # endings of keys
ON_PAGES = re.compile(rf"(?:{'|'.join(TIMES)})</dt><dd>[^<]*|<td>[^<]*</td><td class=.text.>(?:computed|cached)</td>")
OF_TIMES = {SEAL, "inputs"}  # keys of hashes: of a whole record, and of the results that a stage was made from
MOMENT = 0.002  # seconds between two looks at a status


@dataclass(frozen=True)
class Undisturbed:
    """A recipe's command, and what it leaves when nothing happens to it."""

    name: str
    place: Path  # its input, compared runs, cache and outputs
    arguments: Sequence[str]
    figures: Mapping[str, Any]
    files: Sequence[str]
    stages: Mapping[str, float]  # seconds of each with an empty cache, in order, from the start of the command on

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())

    def line(self, here: Path, cache: Path | None = None) -> list[str]:
        """The command with the outputs of a copy, the compared runs that lie there, and its cache or another."""
        own = [part.replace(f"{self.place}/compared", f"{here}/compared") for part in self.arguments]
        return [*own, f"paths.outputs={here / 'out'}", f"paths.cache={cache or here / 'cache'}"]


def undisturbed(name: str, place: Path) -> Undisturbed:
    """Runs a recipe's command once."""
    arguments = prepared(name, place)
    cache = f"paths.cache={place / 'first'}"
    make_compared(name, place, lambda asked: forked(lambda: call([*asked, cache]), place / "said"))
    for part in ("compared", "cache"):  # which not every recipe needs
        (place / part).mkdir(exist_ok=True)
    line = Undisturbed(name, place, arguments, {}, [], {}).line(place)
    stages = stages_of(started(lambda: call(line), place / "said"), place)
    expected = figures(place / "out", place)
    assert expected, f"{name} left no figures"
    return Undisturbed(name, place, arguments, expected, left_in(place / "out"), stages)


def stages_of(process: int, place: Path) -> dict[str, float]:
    """How long a command is in each of its stages, in seconds, watched until it ends."""
    stages: dict[str, float] = {}
    before = time.monotonic()
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        stage, now = stage_of(place / "out"), time.monotonic()
        stages[stage] = stages.get(stage, 0.0) + now - before
        if ended:
            assert status == 0, (place / "said").read_text()
            return stages
        before = now
        time.sleep(MOMENT)


def again(run: Undisturbed, here: Path, files: Iterable[Path] = (), cache: Path | None = None) -> tuple[str, str]:
    """The outcome of the same command after a fault, and what it said. Told is only what names one of the files, by its
    path or by a folder above it and its path in there, or the folder that one is in."""
    status = forked(lambda: call(run.line(here, cache)), here / "said")
    said = (here / "said").read_text(errors="replace")
    if status == 0 and figures(here / "out", here) == run.figures:
        if wrong := other_bytes(run.place / "out", here / "out"):
            return LOST, f"files with other bytes: {wrong}"
        there = left_in(here / "out")
        if wrong := not_as_listed(here / "out"):
            return LOST, f"other files than the manifest lists: {wrong}"
        if there == list(run.files):
            return SAME, ""
        missing, over = sorted(set(run.files) - set(there)), sorted(set(there) - set(run.files))
        return LOST, f"files: missing {missing}, left over {over}"
    if status == 2 and "Traceback" not in said and any(map(partial(is_named, said), files)):
        return TOLD, said[-400:]
    return LOST, f"status {status}: {said[-600:]}" if status else "other figures"


def other_bytes(before: Path, after: Path) -> list[str]:
    """The files of a finished run that have other bytes, times and places apart."""
    pairs = ((name, before / name, after / name) for name in left_in(before))
    return [name for name, file, other in pairs if other.is_file() and lasting(file) != lasting(other)]


def lasting(file: Path) -> object:
    """A file's bytes, without what says when and where a run was."""
    content = file.read_bytes()
    if file.suffix not in (".json", ".html", ".md", ".yaml"):
        return content
    text = PLACE.sub("PLACE", content.decode(errors="replace"))
    if file.suffix != ".json":
        return ON_PAGES.sub("", text)
    return json.loads(text, object_pairs_hook=_without_times)


def _without_times(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without times and their hashes; of a list of files the names, as not_as_listed compares hashes."""
    found = {key: value for key, value in pairs if not key.endswith(TIMES) and key not in OF_TIMES}
    files = found.get("files")
    return {**found, "files": sorted(files)} if isinstance(files, dict) else found


def is_named(said: str, file: Path) -> bool:
    """Whether it names the file: "PLACE/run/tables/a.csv", "PLACE/run/tables" or "PLACE/run lacks tables/a.csv"."""
    parts = ((str(above), str(file.relative_to(above))) for above in file.parents)
    return str(file.parent) in said or any(f"{above} lacks {inside}" in said for above, inside in parts)


def not_as_listed(outputs: Path) -> list[str]:
    """The files of a finished run that are not those whose hashes its manifest holds."""
    (manifest,) = outputs.glob("*/manifest.json")
    content = json.loads(manifest.read_text())
    assert is_intact(content)
    found = ((name, manifest.parent / name, digest) for name, digest in content["files"].items())
    return [name for name, path, digest in found if not path.is_file() or digest_of(path.read_bytes()) != digest]


def kill(run: Undisturbed, here: Path, draw: random.Random, stage: str | None = None) -> str | None:
    """Starts the command and kills it at a random moment of a stage, without one at any moment; the stage that it was
    in. None where it had ended."""
    process = started(lambda: call(run.line(here)), here / "said")
    if stage is not None:
        await_stage(process, here, stage)
    time.sleep(draw.uniform(0, run.seconds if stage is None else run.stages[stage]))
    os.killpg(process, signal.SIGKILL)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if ended != -signal.SIGKILL:
        assert ended == 0, (here / "said").read_text()
        return None
    return stage_of(here / "out")


def await_stage(process: int, here: Path, stage: str) -> None:
    """Waits until the command is in the stage, or has ended."""
    while stage_of(here / "out") != stage and not os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(MOMENT)


def started(work: Callable[[], int], said: Path) -> int:
    """The number of a process, and of its group, that does this."""
    process = os.fork()
    if process == 0:
        os.setsid()
        os._exit(forked(work, said))
    while os.getpgid(process) != process:
        time.sleep(0.001)
    return process


def stage_of(outputs: Path) -> str:
    """The stage that status.json names; "between" where it names none, "start" where there is none."""
    for path in outputs.glob("*/status.json"):
        content = json.loads(path.read_text())
        return content["stage"] or ("end" if content["state"] == "finished" else "between stages")
    return "start"


def killed(run: Undisturbed, draw: random.Random, attempts: int) -> Iterator[Attempt]:
    """Kills at random moments of each stage in turn. Some stages are over at once: what is recorded is the one that
    the kill met."""
    stages = itertools.cycle(run.stages)
    while attempts:
        with a_copy(run, "compared", *(["cache"] if draw.random() < 0.75 else [])) as here:
            stage = kill(run, here, draw, next(stages))
            if stage is None:
                continue
            attempts -= 1
            if draw.random() < 0.5:
                kill(run, here, draw)
            yield Attempt(run.name, "killed", stage, *again(run, here))


def together(run: Undisturbed, draw: random.Random, attempts: int) -> Iterator[Attempt]:
    """Two jobs at once on one cache, which is empty at first."""
    for _ in range(attempts):
        with a_copy(run, "compared") as first, a_copy(run, "compared") as second:
            cache, places = first / "cache", (first, second)
            jobs = [started(partial(call, run.line(here, cache)), here / "said") for here in places]
            if draw.random() < 0.5:
                time.sleep(draw.uniform(0, run.seconds))
                os.killpg(jobs[0], signal.SIGKILL)
            ended = [os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]) for job in jobs]
            where = "one killed" if ended[0] == -signal.SIGKILL else "both ended"
            failed = [here for here, status in zip(places, ended, strict=True) if status not in (0, -signal.SIGKILL)]
            told = "".join((here / "said").read_text(errors="replace")[-600:] for here in failed)
            found = [(LOST, told)] if failed else [again(run, here, cache=cache) for here in places]
            yield Attempt(run.name, "together", where, *max(found, key=lambda outcome: OUTCOMES.index(outcome[0])))


def damaged(run: Undisturbed, draw: random.Random, attempts: int) -> Iterator[Attempt]:
    """Damages files of the finished run, one of each kind at least, and half as often those of a killed one."""
    parts = ("out", "cache", "compared")
    kinds: dict[str, list[Path]] = {}
    for path in stored(run.place, parts):
        kinds.setdefault(re.sub(r"[0-9a-f]{8,}|\d+", "#", str(path)), []).append(path)
    chosen = [draw.choice(paths) for paths in kinds.values()]
    rest = max(0, attempts - len(chosen))
    for path in [*chosen, *draw.choices(chosen, k=rest)]:
        with a_copy(run, *parts) as here:
            what = damage(here / path, draw)
            yield Attempt(run.name, "damaged", f"{path}, {what}", *again(run, here, [here / path]))
    left = attempts // 2
    while left:
        with a_copy(run, "compared") as here:
            kill(run, here, draw)
            there = stored(here, parts)
            if not there:  # killed before it had stored anything
                continue
            left -= 1
            path = draw.choice(there)
            what = damage(here / path, draw)
            outcome = again(run, here, [here / path])
            yield Attempt(run.name, "damaged", f"{path} of a killed run, {what}", *outcome)


def cold(run: Undisturbed, draw: random.Random, attempts: int) -> Iterator[Attempt]:
    """Deletes a table of the finished run, where it has one, and all labels that are cached."""
    files = stored(run.place, ("out",))
    tables = [path for path in files if path.suffix == ".parquet"] or files
    for path in draw.sample(tables, min(attempts, len(tables))):
        with a_copy(run, "out", "compared") as here:
            (here / path).unlink()
            yield Attempt(run.name, "cold", f"{path}, deleted", *again(run, here, [here / path]))


def stored(place: Path, parts: Sequence[str]) -> list[Path]:
    """The files below these folders, relative to the place."""
    files = (path for part in parts for path in sorted((place / part).rglob("*")) if path.is_file())
    return [path.relative_to(place) for path in files]


def damage(path: Path, draw: random.Random) -> str:
    """Does one of four things to a file; which one."""
    content = path.read_bytes()
    what = draw.choice(("truncated", "changed in a bit", "emptied", "deleted") if content else ("deleted",))
    if what == "deleted":
        path.unlink()
    elif what == "changed in a bit":
        changed = bytearray(content)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
    else:
        path.write_bytes(content[: len(content) // 2] if what == "truncated" else b"")
    return what


def full(run: Undisturbed, draw: random.Random, attempts: int) -> Iterator[Attempt]:
    """A disk of a random size below what the run needs."""
    needed = sum(path.stat().st_size for path in (run.place / "out").rglob("*") if path.is_file())
    for _ in range(attempts):
        with a_copy(run, "compared") as here:
            size = int(draw.uniform(0.02, 1.0) * needed) // 4096 * 4096 + 4096
            for part in ("out", "cache"):
                (here / part).mkdir(exist_ok=True)
                mount(here / part, f"size={size}")
            try:
                outcome, told = again(run, here, [here / "out" / "any", here / "cache" / "any"])
                if outcome != LOST:
                    for part in ("out", "cache"):
                        mount(here / part, "remount,size=4g")
                    outcome, told = again(run, here) if outcome == TOLD else (outcome, told)
                yield Attempt(run.name, "full", f"{size / needed:.0%} of the space", outcome, told)
            finally:
                for part in ("out", "cache"):
                    subprocess.run(["umount", str(here / part)], check=True)


def mount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


def denied(run: Undisturbed, draw: random.Random, attempts: int) -> Iterator[Attempt]:
    """A folder of a killed run, or of outputs and cache, that cannot be written to."""
    for _ in range(attempts):
        with a_copy(run, "compared", *(["cache"] if draw.random() < 0.75 else [])) as here:
            for part in ("out", "cache"):
                (here / part).mkdir(exist_ok=True)
            if draw.random() < 0.75:
                kill(run, here, draw)
            folders = [path for part in ("out", "cache") for path in [here / part, *(here / part).rglob("*")]]
            folder = draw.choice([path for path in folders if path.is_dir()])
            where = str(folder.relative_to(here))
            folder.chmod(0o555)
            outcome, told = without_rights(run, here, [folder / "any", here / "out" / "any"])
            if outcome == TOLD:
                folder.chmod(0o755)
                outcome, told = without_rights(run, here)
            yield Attempt(run.name, "denied", where, outcome, told)


def without_rights(run: Undisturbed, here: Path, files: Iterable[Path] = ()) -> tuple[str, str]:
    """What `again` returns in a process that may write where its user may, as others than root. The user stays the
    same: another one could not read an interpreter that lies in a folder of root."""
    answer = here / "answer.json"
    process = os.fork()
    if process == 0:
        assert ctypes.CDLL(None).capset(struct.pack("Ii", CAPABILITIES, 0), bytes(24)) == 0
        answer.write_text(json.dumps(again(run, here, files)))
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
    outcome, told = json.loads(answer.read_text())
    answer.unlink()
    (here / "said").unlink()
    return outcome, told


@contextmanager
def a_copy(run: Undisturbed, *parts: str) -> Iterator[Path]:
    """A folder with copies of these parts of the undisturbed run's place."""
    with tempfile.TemporaryDirectory(prefix="mitigate-") as place:
        here = Path(place)
        here.chmod(0o777)
        for part in parts:
            shutil.copytree(run.place / part, here / part)
        yield here


KINDS = {kind.__name__: kind for kind in (killed, together, damaged, cold, full, denied)}


def said(attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    """The attempts; what was lost is printed at once."""
    for attempt in attempts:
        if attempt.outcome == LOST:
            print(f"    LOST {attempt.fault}, {attempt.where}: {attempt.told}", flush=True)
        yield attempt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of a recipe's command: {', '.join(COMMANDS)}")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--attempts", type=int, default=12, help="of each recipe and kind")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
    os.chdir(ROOT)
    share_imports()
    use_few_terms(pytest.MonkeyPatch())
    found: list[Attempt] = []
    for name in given.names or list(COMMANDS):
        with tempfile.TemporaryDirectory(prefix="mitigate-") as place:
            Path(place).chmod(0o777)
            run = undisturbed(name, Path(place))
            stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.stages.items())
            print(f"{name}: {run.seconds:.1f} s undisturbed ({stages})", flush=True)
            for kind in given.kinds:
                draw = random.Random(f"{given.seed} {name} {kind}")
                found += said(KINDS[kind](run, draw, given.attempts))
    print(tables(found))
    sys.exit(any(attempt.outcome == LOST for attempt in found))


if __name__ == "__main__":
    main()
