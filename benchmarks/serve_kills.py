"""The service under kill -9: of its server, of a job's worker, of the job itself and of all three, in each stage.

    python benchmarks/serve_kills.py DIR [--most 40] [--write]

Each attempt submits a small job on the sample corpus and a second one that waits, kills when the first one's
status.json names the stage, starts the server again if it was killed, and waits until the job has ended. Its figures
are compared with those of a job that nobody disturbed. Each process of a job takes a lock and writes a log before
anything else, so two at once would be seen. DIR keeps the attempts: the same command goes on with those that are
left. About a minute each."""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import processor, write_section
from mitigate.serve.client import Client, UnreachableError

ROOT = Path(__file__).parents[1]
STARTING = "starting"
STAGES = (STARTING, *("score", "ledger", "train", "probe", "heads", "statements", "likelihood", "metrics", "report"))
LONG = (STARTING, "train", "report")  # a second and more
KEPT = "attempts.jsonl"
VICTIMS = {
    "server": ("server",),
    "worker": ("worker",),
    "job": ("job",),
    "all three": ("server", "worker", "job"),
}
JOB = {
    **{"policy": "both", "seed": 1, "trainer.max_steps": 4, "trainer.batch_size": 16, "measure.resamples": 100},
    **{"probe.targets": ["lawyer", "nurse"], "probe.relations": ["IsA", "CapableOf"], "probe.max_length": 4},
}
INSIDE = """
import fcntl, os, sys, time
if sys.orig_argv[1:3] == ["-m", "mitigate"] and "recipe=serve" not in sys.orig_argv:
    lock = os.open({lock!r}, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        said = "alone"
    except BlockingIOError:
        said = "beside another"
    with open({log!r}, "a") as log:
        log.write(f"{{time.time():.2f}} {{os.getpid()}} {{said}}\\n")
"""
"""What every process of a job does first, as sitecustomize.py. The lock is held until the process has ended."""


class Service:
    """The service by its command, in a folder of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.outputs = place / "outputs"
        self.queue = self.outputs / ".serve" / "queue.sqlite"
        self.log = place / "begun.log"
        (place / "inside").mkdir(parents=True, exist_ok=True)
        text = INSIDE.format(lock=str(place / "job.lock"), log=str(self.log))
        (place / "inside" / "sitecustomize.py").write_text(text, encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.client = Client(f"http://127.0.0.1:{self.port}", None)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        path = os.pathsep.join(map(str, (self.place / "inside", ROOT)))
        settings = [f"paths.outputs={self.outputs}", f"paths.cache={self.place / 'cache'}", f"serve.port={self.port}"]
        with (self.place / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mitigate", "recipe=serve", *settings, "tracking=none", "serve.threads=1"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path},
                stdout=log,
                stderr=log,
            )
        while True:
            with suppress(UnreachableError):
                self.client.jobs()
                return
            assert self.process.poll() is None, (self.place / "server.log").read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it as Ctrl-C does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()

    def kill(self, victims: Sequence[str], job: int) -> None:
        """Signal 9 to each. A lease of a killed worker ends at once, so that the next one comes while the job is still
        at work."""
        pids = {"server": self.process and self.process.pid, "worker": self._worker(job), "job": self._command(job)}
        for victim in victims:
            with suppress(ProcessLookupError):
                os.kill(pids[victim] or 0x7FFFFFFF, signal.SIGKILL)
        if "worker" in victims:
            with closing(sqlite3.connect(self.queue, timeout=30)) as table, table:
                table.execute("UPDATE jobs SET lease = 0 WHERE id = ? AND state = 'running'", (job,))
        if "server" in victims and self.process is not None:
            self.process.wait()
            self.start()

    def row(self, job: int) -> dict[str, Any]:
        """The job as the table has it, whether or not a server answers."""
        with closing(sqlite3.connect(self.queue, timeout=30)) as table:
            table.row_factory = sqlite3.Row
            return dict(table.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone())

    def stage(self, job: int) -> str | None:
        """What the job is at: a stage of its run, or that it starts; None before and after."""
        for path in self.outputs.glob("mitigate-*/status.json"):
            with suppress(OSError, ValueError):
                return json.loads(path.read_text(encoding="utf-8"))["stage"]
        return STARTING if self._command(job) else None

    def figures(self) -> str | None:
        """Those of the only run, which is then removed."""
        (folder,) = self.outputs.glob("mitigate-*")
        path = folder / "metrics.json"
        found = path.read_text(encoding="utf-8") if (folder / "manifest.json").exists() else None
        shutil.rmtree(folder)
        return found

    def began(self) -> list[str]:
        """A line for each process of a job so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def _worker(self, job: int) -> int | None:
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (folder / "cmdline").read_bytes().decode().split("\0")
                if "mitigate.serve.worker" in words and words[-4:-2] == [str(self.queue), str(job)]:
                    return int(folder.name)
        return None

    def _command(self, job: int) -> int | None:
        with suppress(OSError, ValueError):
            (lock,) = (self.queue.parent / "jobs").glob(f"{job}-*.lock")
            return int(lock.read_text())
        return None


def attempt(service: Service, stage: str, victim: str, figures: str, wait: float) -> dict[str, Any] | None:
    """One attempt, or None where the stage was over before it was seen. wait: seconds into the stage."""
    before = len(service.began())
    job = service.client.submit("mitigate", JOB)["id"]
    waiting = service.client.submit("mitigate", JOB | {"seed": 2})["id"]
    while service.stage(job) != stage and service.row(job)["ended"] is None:
        time.sleep(0.01)
    time.sleep(wait)
    at = service.stage(job)
    service.kill(VICTIMS[victim], job)
    kept = service.row(waiting)["state"]
    service.client.cancel(waiting)
    ended = service.client.wait(job, 0.2)
    service.client.wait(waiting, 0.2)
    same = service.figures() == figures
    if at != stage:
        return None
    begun = service.began()[before:]
    facts = {name: ended[name] for name in ("state", "exit", "starts", "error")}
    return {
        **{"stage": stage, "victim": victim, **facts, "same": same, "waited": kept},
        **{"begun": len(begun), "at_once": sum("beside" in line for line in begun)},
        "survived": ended["state"] == "done" and same and not any("beside" in line for line in begun),
        "lost": kept != "queued",
    }


def written(attempts: Sequence[Mapping[str, Any]]) -> str:
    """The section of RESULTS.md."""
    lines = [
        "## The service under kill -9",
        "",
        "Small jobs on the sample corpus. Each was killed once, in the stage of the row; survived / attempts. A job "
        "has survived that is done with the figures of an undisturbed one and of which no two processes ran at once. "
        "The lease of a killed worker was ended at once, so that the next worker came while the job was at work.",
        "",
        f"| stage | {' | '.join(VICTIMS)} |",
        f"|---|{'---|' * len(VICTIMS)}",
    ]
    for stage in STAGES:
        rows = [[row for row in attempts if (row["stage"], row["victim"]) == (stage, victim)] for victim in VICTIMS]
        cells = [f"{sum(row['survived'] for row in cell)} / {len(cell)}" if cell else "not tried" for cell in rows]
        lines.append(f"| {stage} | {' | '.join(cells)} |")
    lost, at_once = sum(row["lost"] for row in attempts), sum(row["at_once"] for row in attempts)
    begun, other = sum(row["begun"] for row in attempts), sum(not row["same"] for row in attempts)
    lines += [
        "",
        f"{len(attempts)} attempts, {sum(row['survived'] for row in attempts)} survived; {other} with other figures; "
        f"{lost} of the jobs that waited were lost; {at_once} of {begun} processes of jobs began beside another one.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", type=Path, metavar="DIR", help="where the service works and the attempts are kept")
    parser.add_argument("--most", type=int, default=40, help="attempts of this call")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md by the attempts so far")
    args = parser.parse_args()
    if args.most:
        attempts(args.place.resolve(), args.most)
    if args.write:
        write_section("serve-kills", written(read(args.place / KEPT)), processor())


def attempts(place: Path, most: int) -> None:
    """The next attempts."""
    service, undisturbed = Service(place), place / "undisturbed.json"
    service.start()
    if not undisturbed.exists():
        service.client.wait(service.client.submit("mitigate", JOB)["id"], 0.2)
        undisturbed.write_text(service.figures() or "")
    for _ in range(most):
        met = {(row["stage"], row["victim"]) for row in read(place / KEPT)}
        if not (left := [(stage, victim) for victim in VICTIMS for stage in STAGES if (stage, victim) not in met]):
            break
        stage, victim = left[0]
        wait = random.uniform(0.0, 1.0 if stage in LONG else 0.01)
        row = attempt(service, stage, victim, undisturbed.read_text(), wait)
        print(row or f"{stage} was over before it was seen", flush=True)
        if row is not None:
            with (place / KEPT).open("a") as lines:
                lines.write(json.dumps(row) + "\n")
    service.stop()


def read(kept: Path) -> list[dict[str, Any]]:
    """The attempts so far."""
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


if __name__ == "__main__":
    main()
