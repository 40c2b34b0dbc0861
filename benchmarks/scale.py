"""Audits of millions of assertions: seconds, rows per second and memory, as the resource grows.

    python benchmarks/scale.py [--millions 1 4 16] [--texts targets all] [--folder DIR] [--plain] [--kill 4]

Assertions are synthetic, in ConceptNet's format: one row of ten has two English ends, two of ten one, the rest
none; three of a thousand are about a target, 15 of a hundred repeat another; words are those of the project's sample
corpus, the common ones commoner. Each audit asks for sentiment alone, with a label cache of its own. --kill ends an
audit of so many millions with signal 9 when half of it is read, and again when half is labelled, goes on, and compares
with one that was not ended. Writes a section of RESULTS.md."""

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, processor, write_section
from mitigate.relations import relations
from mitigate.targets import targets

ROOT = Path(__file__).parents[1]
ENGLISH, ONE_END, ABOUT_TARGET, REPEATED = 0.1, 0.2, 0.003, 0.15  # shares of the rows
LANGUAGES = ("fr", "de", "es", "ru", "ja", "pt", "it", "zh", "la", "fi")
FACTS = (
    '{{"dataset": "/d/wiktionary/{0}", "license": "cc:by-sa/4.0", "sources": [{{"contributor": '
    '"/s/resource/wiktionary/{0}", "process": "/s/process/wikiparsec/2"}}], "weight": {1}}}'
)
PIECE = 10_000  # rows drawn at once
EVERY = 0.25  # seconds between two looks at the memory
GIB = 2**30
COLUMNS = (
    "rows",
    "scored",
    "MiB",
    "seconds",
    "of processor",
    "cores left to it",
    "peak, GiB",
    "GiB at each tenth of the run",
)
CORES = (
    "Where other work left an audit fewer than two cores, its seconds are no measure; compare the processor "
    "seconds, summed over cores."
)


@dataclass
class Measured:
    """What one audit took."""

    seconds: float = 0.0
    processor: float = 0.0  # seconds of all cores
    others: float = 0.0  # the same, that other work on this machine took meanwhile
    status: int = 0  # that the process ended with
    memory: list[int] = field(default_factory=list)  # bytes, from look to look

    @property
    def cores_left(self) -> float:
        """How many cores other work left to the audit."""
        return (os.cpu_count() or 1) - self.others / self.seconds

    @property
    def peak(self) -> float:
        return max(self.memory) / GIB

    @property
    def curve(self) -> str:
        """GiB at each tenth of the run."""
        last = len(self.memory) - 1
        return " ".join(f"{self.memory[last * tenth // 10] / GIB:.2f}" for tenth in range(11))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 4, 16], help="of rows, each an audit")
    parser.add_argument("--texts", nargs="+", choices=("targets", "all"), default=["targets", "all"])
    parser.add_argument("--folder", type=Path, help="where files lie and stay; default: a temporary one")
    parser.add_argument("--plain", action="store_true", help="not gzipped")
    parser.add_argument("--kill", type=float, metavar="MILLIONS", help="of --millions: end it twice, and go on")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        table, notes, command = (
            [row(COLUMNS), "|---" * len(COLUMNS) + "|"],
            [CORES],
            "python benchmarks/scale.py --millions",
        )
        for millions in arguments.millions:
            rows = round(millions * 1e6)
            path = assertions(folder, rows, packed=not arguments.plain)
            for texts in arguments.texts:
                taken = audit(path, folder / f"{path.stem}-{texts}", texts)
                table.append(row(cells(rows, path, texts, taken)))
                print(table[-1], flush=True)
            command += f" {millions:g}"
            if millions == arguments.kill:
                notes.append(killed(path, folder / f"{path.stem}-{texts}", texts))
            ended = f" --kill {arguments.kill:g}" if len(notes) > 1 else ""
            where = f"Measured on {machine()}, {os.cpu_count()} cores, by `{command}{ended}`"
            said = [f"## Audits of any size\n\n{where}: {described(path)}.", "\n".join(table), *notes]
            write_section("scale", "\n\n".join(said), processor())  # of the sizes so far: the next may take long


def cells(rows: int, path: Path, texts: str, taken: Measured) -> tuple[str, ...]:
    """A line of the table, as COLUMNS names it."""
    return (
        f"{rows:,}",
        {"targets": "texts about a target", "all": "every English row"}[texts],
        f"{path.stat().st_size / 2**20:,.0f}",
        f"{taken.seconds:.0f}",
        f"{taken.processor:.0f}",
        f"{taken.cores_left:.1f}",
        f"{taken.peak:.2f}",
        taken.curve,
    )


def row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def assertions(folder: Path, rows: int, packed: bool) -> Path:
    """A file of so many assertions, the same for the same number; made when it is not there."""
    path = folder / (f"assertions-{rows}.csv" + ".gz" * packed)
    if not path.exists():
        part = path.with_name(f".{path.name}")
        started = time.perf_counter()
        with gzip.open(part, "wb", compresslevel=1) if packed else part.open("wb") as file:
            for piece in draw(rows):
                file.write(piece.encode())
        part.rename(path)
        print(f"{path} made in {time.perf_counter() - started:.0f} s", flush=True)
    return path


def draw(rows: int) -> Iterator[str]:
    """So many lines, some at a time."""
    chance = random.Random(rows)
    words, weights = vocabulary()
    named, people = list(relations()), [target.replace(" ", "_") for target in targets()]
    for drawn_before in range(0, rows, PIECE):
        count = min(PIECE, rows - drawn_before)
        drawn = iter(chance.choices(words, cum_weights=weights, k=6 * count))
        lines: list[str] = []
        for kind, relation, language in zip(
            (chance.random() for _ in range(count)),
            chance.choices(named, k=count),
            chance.choices(LANGUAGES, k=count),
            strict=True,
        ):
            if lines and chance.random() < REPEATED:
                lines.append(chance.choice(lines))
                continue
            head, tail = f"{next(drawn)}_{next(drawn)}_{next(drawn)}", f"{next(drawn)}_{next(drawn)}_{next(drawn)}"
            if kind < ABOUT_TARGET:
                head = chance.choice(people)
            first = "en" if kind < ENGLISH + ONE_END else language
            second = "en" if kind < ENGLISH else language
            start_uri, end_uri = f"/c/{first}/{head}", f"/c/{second}/{tail}"
            facts = FACTS.format(language, "1.0" if kind < 0.5 else "2.0")
            lines.append(
                f"/a/[/r/{relation}/,{start_uri}/,{end_uri}/]\t/r/{relation}\t{start_uri}\t{end_uri}\t{facts}\n"
            )
        yield "".join(lines)


def vocabulary() -> tuple[list[str], list[float]]:
    """The words of the sample corpus but for targets, and their weights, summed up: a word at rank r weighs r to the
    power -.7."""
    lines = files("mitigate").joinpath("data/sample/train.txt").read_text(encoding="utf-8").splitlines()
    names = {word for target in targets() for word in target.split()}
    found = dict.fromkeys(word for line in lines for field in line.split("\t")[1:3] for word in field.split())
    words = [word for word in found if word.isalpha() and word not in names]
    return words, list(accumulate((rank + 1) ** -0.7 for rank in range(len(words))))


def described(path: Path) -> str:
    """What the English rows are like."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        ends = [line.split(b"\t")[1:4] for _, line in zip(range(1_000_000), file, strict=False)]
    english = [tuple(end) for end in ends if all(term.startswith(b"/c/en/") for term in end[1:])]
    return (
        f"of the last file's first {len(ends):,} rows {len(english) / len(ends):.1%} are English, of which "
        f"{len(set(english)) / len(english):.1%} are distinct"
    )


def audit(path: Path, folder: Path, texts: str) -> Measured:
    """One audit from nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    return watched(start(path, folder, texts))


def start(path: Path, folder: Path, texts: str) -> subprocess.Popen:
    """An audit under way."""
    asked = ["recipe=audit", "data=conceptnet", f"data.path={path.absolute()}"]
    return launch(folder, [*asked, f"measure.texts={texts}", "score.regard=null"])


def launch(folder: Path, arguments: Sequence[str]) -> subprocess.Popen:
    """The command under way, with outputs and cache in the folder; what it says goes to folder/said.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    line = [sys.executable, "-m", "mitigate", *arguments, "tracking=none"]
    line += [f"paths.outputs={folder.absolute()}/outputs", f"paths.cache={folder.absolute()}/cache"]
    with (folder / "said.txt").open("w") as said:
        return subprocess.Popen(line, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)


def watched(process: subprocess.Popen, enough: Callable[[], bool] = lambda: False) -> Measured:
    """The process until its end, or until it is ended because there is enough of it."""
    taken, started = Measured(), time.perf_counter()
    own_before, all_before = processor_seconds(), machine_seconds()
    while process.poll() is None:
        if held := resident(process.pid):  # nothing once it has ended, and is not yet known to have
            taken.memory.append(held)
        if enough():
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        time.sleep(EVERY)
    taken.seconds = time.perf_counter() - started
    taken.processor = processor_seconds() - own_before
    taken.others = machine_seconds() - all_before - taken.processor
    taken.status = process.returncode
    if taken.status not in (0, -signal.SIGKILL):
        raise SystemExit(f"the command ended with status {process.returncode}; see said.txt")
    return taken


def processor_seconds() -> float:
    """Of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def machine_seconds() -> float:
    """Of all cores, whatever they worked at."""
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 once it has ended."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def killed(path: Path, folder: Path, texts: str) -> str:
    """What it took to go on after signal 9, twice, and whether the figures are the same as those of the audit of `path`
    in `folder`, which was left alone."""
    (run,) = folder.glob("outputs/*")
    half = len(list((run / "rows").iterdir())) // 2  # of the chunks
    ended = folder.with_name(f"{folder.name}-ended")
    shutil.rmtree(ended, ignore_errors=True)
    parts = f"outputs/{run.name}/parts/*"
    taken = [
        watched(start(path, ended, texts), lambda: len(list(ended.glob(f"{parts}/met/*.parquet"))) >= half),
        watched(start(path, ended, texts), lambda: len(list(ended.glob(f"{parts}/*.parquet"))) >= half),
        watched(start(path, ended, texts)),
    ]
    assert [each.status for each in taken] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    one, other = (json.loads((place / "metrics.json").read_text()) for place in (run, ended / "outputs" / run.name))
    same = "the same figures" if one == other else "OTHER FIGURES"
    seconds = ", ".join(f"{each.processor:.0f}" for each in taken)
    return (
        f"The audit of {path.name} was ended with signal 9 when half of its chunks were read, started again, ended "
        f"with signal 9 when half were labelled, and started again. The three took {seconds} seconds of processor and "
        f"gave {same} as an undisturbed audit, all {len(one)} of them."
    )


if __name__ == "__main__":
    main()
