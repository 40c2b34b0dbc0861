"""The service under many clients: questions and texts answered together against one by one.

    python benchmarks/serve_load.py RUN [--seconds 60] [--clients 50] [--rounds 4] [--write]

RUN is the folder of a finished run with a generator. Two services have it, one that answers what waits together
(serve.batch=64) and one that answers one by one (serve.batch=1). Clients ask in a closed loop, half of them /generate
for heads that the run's probe did not ask, half /label. The services take turns; --seconds is the time of each in all.
--write replaces the section of RESULTS.md."""

import argparse
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import processor, write_section
from mitigate.errors import MitigateError
from mitigate.serve.client import Client, UnreachableError

ROOT = Path(__file__).parents[1]
BATCHES = {"together": 64, "one by one": 1}
RELATION = "CapableOf"
KINDS = ("/generate", "/label")


@dataclass
class Service:
    """A service and what its clients have met. times: seconds of each answer, by kind, in turns."""

    client: Client
    pid: int
    run: str
    times: dict[str, list[list[float]]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    errors: list[str] = field(default_factory=list)
    memory: float = 0.0  # MiB after the first turn

    def ask(self, kind: str, head: str, number: int) -> None:
        """One question, or one text, that was not asked before."""
        if kind == "/generate":
            self.client.generate(head, RELATION, [self.run])
        else:
            self.client.label([f"the {head} is number {number}"])

    def turn(self, clients: int, seconds: float, heads: Sequence[str], seed: int) -> None:
        """All clients at once for some seconds; answers that come later are waited for and counted."""
        found: dict[str, list[float]] = {kind: [] for kind in KINDS}
        end = time.perf_counter() + seconds

        def ask(number: int) -> None:
            draw, kind = random.Random(seed * 1000 + number), KINDS[number % 2]
            while (begin := time.perf_counter()) < end:
                try:
                    self.ask(kind, draw.choice(heads), draw.randrange(10**6))
                except (MitigateError, OSError) as error:
                    self.errors.append(str(error))
                else:
                    found[kind].append(time.perf_counter() - begin)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for kind, times in found.items():
            self.times[kind].append(times)

    def resident(self, peak: bool) -> float:
        """Memory in MiB, now or at most so far."""
        name = "VmHWM" if peak else "VmRSS"
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


@contextmanager
def service(place: Path, run: Path, batch: int) -> Iterator[Service]:
    """A service of its own folder with a copy of the run, warmed up."""
    shutil.copytree(run, place / run.name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = [f"paths.outputs={place}", f"serve.port={port}", f"serve.batch={batch}", "tracking=none"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "mitigate", "recipe=serve", *settings]
    with subprocess.Popen(line, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        client = Client(f"http://127.0.0.1:{port}", None)
        try:
            while True:
                with suppress(UnreachableError):
                    client.runs()
                    break
                assert process.poll() is None
                time.sleep(0.1)
            made = Service(client, process.pid, run.name)
            for kind in KINDS:
                made.ask(kind, "gardener", 0)
            yield made
        finally:
            process.terminate()


def percentile(times: Sequence[float], share: float) -> float:
    """The smallest time that this share of all do not exceed."""
    return sorted(times)[max(0, -int(-share * len(times) // 1) - 1)]


def written(services: dict[str, Service], clients: int, seconds: float) -> str:
    """The section of RESULTS.md."""
    lines = [
        "## The service under load",
        "",
        f"{clients} clients in a closed loop, half of them for each kind, {seconds:.0f} seconds for each service, in "
        "turns in one run. Server and clients have the same cores. Ratio: throughput together over one by one, the "
        "median of the turns (least to most).",
        "",
        "| request | answered | a second | median, s | 99th percentile, s | answers | errors | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        turns = [services[name].times[kind] for name in BATCHES]
        ratios = [len(one) / max(1, len(other)) for one, other in zip(*turns, strict=True)]
        for name, found in services.items():
            times = [time for turn in found.times[kind] for time in turn]
            ratio = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if name == "together" else ""
            lines.append(
                f"| {kind} | {name} | {len(times) / seconds:.1f} | {median(times):.2f} | {percentile(times, 0.99):.2f} "
                f"| {len(times):,} | {len(found.errors)} | {ratio} |"
            )
    memory = "; ".join(
        f"{name} {found.memory:,.0f} after the first turn, {found.resident(peak=True):,.0f} at most"
        for name, found in services.items()
    )
    return "\n".join([*lines, "", f"Resident memory of the server, MiB: {memory}. Errors are those of both kinds."])


def heads_of(run: Path) -> list[str]:
    """Targets that the run's probe did not ask, so that they are generated."""
    import polars as pl

    known = set(pl.read_parquet(run / "probe.parquet")["target"].unique())
    every = pl.read_csv(ROOT / "mitigate" / "data" / "targets.csv")["target"]
    return [head for head in every if head not in known]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each service, in all")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    args = parser.parse_args()
    run = args.run.resolve()
    heads = heads_of(run)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with ExitStack() as stack:
            services = {
                name: stack.enter_context(service(place / str(batch), run, batch)) for name, batch in BATCHES.items()
            }
            for number in range(args.rounds):
                for found in [*services.values()][:: 1 if number % 2 else -1]:
                    found.turn(args.clients, args.seconds / args.rounds, heads, number)
                    found.memory = found.memory or found.resident(peak=False)
            said = written(services, args.clients, args.seconds)
    print(said)
    if args.write:
        write_section("serve-load", said, processor())


if __name__ == "__main__":
    main()
