"""POST /generate under many clients: the service of this checkout against that of another one.

    git worktree add BEFORE COMMIT
    python benchmarks/serve_load.py RUN BEFORE [--seconds 60] [--clients 50] [--rounds 4] [--write]

RUN is the folder of a finished run with a generator. Both services have a copy of it. Clients ask in a closed loop,
each question once and in the same order to both: heads that the run's probe did not have, all with one relation, or
each with any of COMeT's 34. The services take turns; --seconds is the time of each and of each kind of question in all.
--write replaces the section of RESULTS.md."""

import argparse
import itertools
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

import polars as pl
import torch

from benchmarks.results import processor, write_section
from mitigate.errors import MitigateError
from mitigate.serve.client import Client, UnreachableError
from mitigate.words.relations import comet_relations

ROOT = Path(__file__).parents[1]
KINDS = ("one relation", "any relation")
TICKS = os.sysconf("SC_CLK_TCK")
Question = tuple[str, str]


@dataclass
class Service:
    """A service with its answers, and for each kind of question and turn the seconds of each answer, and the processor
    seconds of the server."""

    client: Client
    pid: int
    run: str
    times: dict[str, list[list[float]]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    processor: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    answers: dict[Question, list[dict[str, object]]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def turn(self, kind: str, questions: Iterator[Question], clients: int, seconds: float) -> None:
        """All clients at once for some seconds; answers that come later are waited for and counted."""
        times: list[float] = []
        end, lock, before = time.perf_counter() + seconds, threading.Lock(), self._processor()

        def ask() -> None:
            while (begin := time.perf_counter()) < end:
                with lock:
                    question = next(questions)
                try:
                    self.answers[question] = self.client.generate(*question, [self.run])[0]["tails"]
                except (MitigateError, OSError) as error:
                    self.errors.append(str(error))
                else:
                    times.append(time.perf_counter() - begin)

        threads = [threading.Thread(target=ask) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.times[kind].append(times)
        self.processor[kind] += self._processor() - before

    def _processor(self) -> float:
        """The processor seconds of the server so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def service(root: Path, place: Path, run: Path) -> Iterator[Service]:
    """The service of a checkout, in a folder of its own with a copy of the run, warmed up."""
    shutil.copytree(run, place / run.name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "mitigate", "recipe=serve", f"paths.outputs={place}", f"serve.port={port}"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen([*line, "tracking=none"], cwd=root, env=environment, stdout=subprocess.DEVNULL) as process:
        client = Client(f"http://127.0.0.1:{port}", None)
        try:
            while True:
                with suppress(UnreachableError):
                    client.runs()
                    break
                assert process.poll() is None
                time.sleep(0.1)
            client.generate("gardener of words", "CapableOf", [run.name])
            yield Service(client, process.pid, run.name)
        finally:
            process.terminate()


def questions_of(run: Path, kind: str) -> Iterator[Question]:
    """Questions in an order drawn by seed, each once."""
    known = set(pl.read_parquet(run / "probe.parquet")["target"].unique())
    targets = [head for head in pl.read_csv(ROOT / "mitigate" / "data" / "targets.csv")["target"] if head not in known]
    if kind == "one relation":
        heads = [f"{one} {other}" for one, other in itertools.permutations(targets, 2)]
        pairs = [(head, "CapableOf") for head in heads]
    else:
        pairs = [(head, relation.name) for head in targets for relation in comet_relations()]
    random.Random(1).shuffle(pairs)
    return iter(pairs)


def percentile(times: list[float], share: float) -> float:
    """The smallest time that this share of all do not exceed."""
    return sorted(times)[max(0, -int(-share * len(times) // 1) - 1)]


def compared(before: Service, after: Service) -> str:
    """A sentence about the answers to questions that both were asked."""
    both = [(before.answers[question], after.answers[question]) for question in before.answers & after.answers.keys()]
    equal = [(one, other) for one, other in both if [row["tail"] for row in one] == [row["tail"] for row in other]]
    gaps = [
        abs(float(str(a["log_prob"])) - float(str(b["log_prob"])))
        for one, other in equal
        for a, b in zip(one, other, strict=True)
    ]
    return (
        f"Of {len(both):,} questions that both answered, {len(equal):,} have the same tails in the same order; their "
        f"log-probabilities differ by {max(gaps):.1e} at most."
    )


def section(services: dict[str, Service], rounds: int, clients: int, seconds: float) -> str:
    """The section of RESULTS.md."""
    lines = [
        "## /generate under load",
        "",
        f"`python benchmarks/serve_load.py`: {clients} clients in a closed loop, each question once, {seconds:.0f} "
        f"seconds for each service and kind of question, in {rounds} turns in one run. Server and clients share "
        f"{len(os.sched_getaffinity(0))} cores with whatever else ran. torch {torch.__version__}, FastAPI "
        f"{version('fastapi')}, uvicorn {version('uvicorn')}, serve.batch=64. Ratio: answers of after over before, the "
        "median of the turns (least to most).",
        "",
        "| questions | service | a second | median, s | 99th percentile, s | server's processor seconds an answer "
        "| answers | errors | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        before, after = (services[name].times[kind] for name in ("before", "after"))
        ratios = [len(other) / max(1, len(one)) for one, other in zip(before, after, strict=True)]
        for name, found in services.items():
            times = [time for turn in found.times[kind] for time in turn]
            ratio = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if name == "after" else ""
            lines.append(
                f"| {kind} | {name} | {len(times) / seconds:.1f} | {median(times):.2f} | {percentile(times, 0.99):.2f} "
                f"| {found.processor[kind] / len(times):.4f} | {len(times):,} | {len(found.errors)} | {ratio} |"
            )
    return "\n".join([*lines, "", compared(*services.values()), "Errors are those of both kinds."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each service and kind of question, in all")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    args = parser.parse_args()
    run, roots = args.run.resolve(), {"before": args.before.resolve(), "after": ROOT}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        services = {name: stack.enter_context(service(root, Path(folder, name), run)) for name, root in roots.items()}
        questions = {(name, kind): questions_of(run, kind) for name in services for kind in KINDS}
        for number in range(args.rounds):
            for name, kind in itertools.product([*services][:: 1 if number % 2 else -1], KINDS):
                services[name].turn(kind, questions[name, kind], args.clients, args.seconds / args.rounds)
        text = section(services, args.rounds, args.clients, args.seconds)
    print(text)
    if args.write:
        write_section("serve-generate", text, processor())


if __name__ == "__main__":
    main()
