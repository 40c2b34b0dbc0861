"""The seconds until a command answers, beside the version before, with a warm file cache and bytecode and without.

    python benchmarks/waits.py --before TREE --run DIR [--rounds 3] [--cold-rounds 1] [--waits NAME ...] [--write]

TREE is a git worktree of the version before, DIR a finished run of recipe=mitigate with a generator; MITIGATE_DATA must
be set. Each turn is a process of its own with empty folders of results and labels, and both versions take turns. Warm:
after a run that is not counted. Cold: PYTHONPYCACHEPREFIX names an empty folder, so that all modules are compiled, and
the system is asked to drop the pages of the environment's and of the version's files; it keeps those that other
programs have mapped. CPU seconds are user and system together. Answers of both versions are compared. --write replaces
the section of RESULTS.md."""

import argparse
import json
import os
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

TREE = Path(__file__).parents[1]
TRIPLES = 1000
QUESTION = ("head=the baker", "relation=CapableOf", "ask.format=json")
TEXTS = "texts=[the nurse is kind,the lawyer is greedy]"
FILTER = ("recipe=filter", "data=triples")
WAITS: dict[str, tuple[str, float | None, list[str]]] = {  # name -> in words, aim in seconds, arguments
    "version": ("`--version`", 0.3, ["--version"]),
    "help": ("`--help`", None, ["--help"]),
    "wrong": ("a wrong policy", 0.4, ["policy=bth"]),
    "labels": ("`recipe=labels` of two texts", 1.5, ["recipe=labels", TEXTS]),
    "ask": ("`recipe=ask`, a head that was not probed", 2.0, ["recipe=ask", "ask.run={run}", *QUESTION]),
    "filter": ("`recipe=filter` of 1,000 triples", 1.8, [*FILTER, "data.path={triples}", "tracking=none"]),
    "recorded": ("the same, recorded in W&B offline", None, [*FILTER, "data.path={triples}"]),
}
QUIET = 1.5  # load: of the turns, with as many threads as cores for a part of them
WITHOUT_FOLDERS = ("version", "help", "wrong")


class Turn(NamedTuple):
    """The seconds of a command, and what it answered."""

    cpu: float
    elapsed: float
    answer: Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold-rounds", type=int, default=1)
    parser.add_argument("--waits", nargs="+", choices=WAITS, default=list(WAITS))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    load, lines = os.getloadavg()[0], list[str]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "triples.tsv").write_text(triples())
        for is_cold, rounds in ((False, given.rounds), (True, given.cold_rounds)):
            lines += table(is_cold, measured(given, folder, is_cold, rounds), given.waits) if rounds else []
    section = report(given, lines, max(load, os.getloadavg()[0]))
    print(section)
    if given.write:
        sys.path.insert(0, str(TREE))
        from benchmarks.results import processor, write_section

        write_section("waits", section, processor())


def triples() -> str:
    """Every hundredth triple of train100k, as a table."""
    lines = (Path(os.environ["MITIGATE_DATA"]) / "conceptnet100k" / "train100k.txt").read_text().splitlines()
    parts = [line.split("\t")[:3] for line in lines[:: len(lines) // TRIPLES][:TRIPLES]]
    rows = (f"{head}\t{relation}\t{tail}\n" for relation, head, tail in parts)
    return "head\trelation\ttail\n" + "".join(rows)


def measured(given: argparse.Namespace, folder: Path, is_cold: bool, rounds: int) -> dict[str, dict[str, list[Turn]]]:
    """The turns of each wait by the name of the version."""
    trees = {"before": given.before.resolve(), "after": TREE}
    found: dict[str, dict[str, list[Turn]]] = {wait: {name: [] for name in trees} for wait in given.waits}
    for number in range(rounds if is_cold else rounds + 1):
        for wait in given.waits:
            for name, tree in trees.items():
                turn = take_turn(wait, tree, given.run.resolve(), folder, is_cold)
                if is_cold or number:  # else the bytecode was made
                    found[wait][name].append(turn)
                print(f"{wait} {name}: {turn.cpu:.2f} CPU, {turn.elapsed:.1f} elapsed", flush=True)
    return found


def take_turn(wait: str, tree: Path, run: Path, folder: Path, is_cold: bool) -> Turn:
    """Run a command once."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        parts = [part.format(run=run, triples=folder / "triples.tsv") for part in WAITS[wait][2]]
        if wait not in WITHOUT_FOLDERS:
            parts += [f"paths.outputs={place}/outputs", f"paths.cache={place}/cache"]
        bytecode = place if is_cold else str(folder / f"bytecode-{tree.name}")
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "WANDB_MODE": "offline"}
        if is_cold:
            forget(tree)
        printed = Path(place) / "printed"
        with printed.open("wb") as out:
            begun = time.perf_counter()
            process = os.posix_spawn(
                sys.executable,
                [sys.executable, "-c", STARTED.format(tree=str(tree)), *parts],
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)],
            )
            _, status, used = os.wait4(process, 0)
            elapsed = time.perf_counter() - begun
        if os.waitstatus_to_exitcode(status) != (2 if wait == "wrong" else 0):
            raise SystemExit(f"{wait} failed: {printed.read_text()}")
        return Turn(used.ru_utime + used.ru_stime, elapsed, answer(wait, printed.read_text(), Path(place)))


STARTED = """import os, runpy, sys
os.chdir({tree!r})
sys.path[0] = {tree!r}
runpy.run_module("mitigate", run_name="__main__", alter_sys=True)"""


def forget(tree: Path) -> None:
    """Ask the system to drop the files of the environment and of a version from its cache."""
    for path in files([Path(sysconfig.get_path("stdlib")), *map(Path, sys.path), tree / "mitigate", tree / "models"]):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def files(folders: Sequence[Path]) -> Iterator[Path]:
    """The regular files of folders."""
    for folder in dict.fromkeys(folders):
        for place, _, names in os.walk(folder):
            yield from (path for name in names if (path := Path(place, name)).is_file())


def answer(wait: str, printed: str, place: Path) -> Any:
    """The answer of a command, without what differs from run to run."""
    if wait == "ask":
        (run,) = json.loads(printed.splitlines()[-1])["runs"]
        return [{name: value for name, value in row.items() if not isinstance(value, float)} for row in run["tails"]]
    if wait in ("filter", "recorded"):
        return [path.read_bytes() for path in sorted(place.glob("outputs/*/*.tsv"))]
    return printed


def table(is_cold: bool, found: dict[str, dict[str, list[Turn]]], waits: Sequence[str]) -> list[str]:
    """The lines of a table of medians, with those of each round."""
    lines = [
        f"| {'no bytecode, cold file cache' if is_cold else 'warm'} | CPU s before | CPU s after | aim | elapsed s "
        "before | elapsed s after | answers |",
        "|---|---|---|---|---|---|---|",
    ]
    for wait in waits:
        words, aim, _ = WAITS[wait]
        before, after = found[wait]["before"], found[wait]["after"]
        same = "equal" if all(turn.answer == before[0].answer for turn in [*before, *after]) else "differ"
        cells = [words, cell([turn.cpu for turn in before]), cell([turn.cpu for turn in after]), f"{aim or ''}"]
        cells += [cell([turn.elapsed for turn in before]), cell([turn.elapsed for turn in after]), same]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def cell(seconds: Sequence[float]) -> str:
    rounds = f" ({' '.join(f'{one:.2f}' for one in seconds)})" if len(seconds) > 1 else ""
    return f"{median(seconds):.2f}{rounds}"


def report(given: argparse.Namespace, lines: Sequence[str], load: float) -> str:
    """The section of RESULTS.md."""
    cores, threads = os.cpu_count(), os.environ.get("OMP_NUM_THREADS") or os.cpu_count()
    others = f"""\
Other programs had the cores meanwhile (load {load:.0f} on {cores}), so that CPU seconds are higher than on quiet cores,
for which the aims are, and elapsed seconds say little."""
    quiet = f"No other program had the {cores} cores; the aims are elapsed seconds, warm."
    text = f"""\
## Waits: seconds until a command answers

By `python benchmarks/waits.py`, both versions in turns in one run, {given.rounds} rounds warm and {given.cold_rounds}
cold; medians, with the rounds behind. CPU seconds are user and system together, OMP_NUM_THREADS={threads}.
{others if load > QUIET else quiet}
Cold: no bytecode, and pages of the environment's files dropped but for those that other programs had mapped, such as
PyTorch's. Answers: tails and labels of `ask`, the bytes of `filter`'s files, in which strengths of regard differ where
one version computes them in bfloat16 and the other in float32; else what is printed.
"""
    return "\n".join([text, *lines])


if __name__ == "__main__":
    main()
