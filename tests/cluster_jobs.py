"""A job of counted steps that continues where it stopped, and a queue whose jobs a cluster runs."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from mitigate.serve import queue
from mitigate.serve.dispatcher import Dispatcher
from mitigate.serve.engines.cluster import Cluster, Remote
from mitigate.serve.job_output import log_of
from mitigate.serve.job_table import Job

PATIENCE = 120.0  # seconds
COUNTS = """
import os, pathlib, sys, time
run, most = pathlib.Path(sys.argv[1]), int(sys.argv[2])
run.mkdir(exist_ok=True)
print(f"  run folder  {run}", flush=True)
print("node", os.environ.get("NODE"), flush=True)
for number in range(len(list(run.glob("step-*"))), most):  # goes on from where it stopped
    time.sleep(0.2)
    (run / f"step-{number}").touch()
    print("step", number, flush=True)
(run / "manifest.json").touch()
"""


def until(condition: Callable[[], bool], log: Path | None = None) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, log.read_text()[-3000:] if log else ""
        time.sleep(0.2)


class Service:
    """A queue whose dispatcher gives jobs to a cluster, stepped by hand. connect: to the cluster."""

    def __init__(self, place: Path, connect: Callable[[], Cluster]) -> None:
        self.path = place / "queue.sqlite"
        self.connect = connect
        self.restart()

    def restart(self) -> None:
        """Start the dispatcher again, as after a kill: the queue alone keeps the jobs, and their leases have ended."""
        with queue.opened(self.path) as table:
            table.execute("UPDATE jobs SET lease = 0")
        self.dispatcher = Dispatcher(self.path, 2, Remote(self.path, self.connect()))

    def submit(self, run: Path, steps: int) -> int:
        with queue.opened(self.path) as table:
            command = [sys.executable, "-c", COUNTS, str(run), str(steps)]
            return queue.submit(table, "fake", {}, command, owner="ann")

    def job(self, number: int) -> Job:
        self.dispatcher.step()
        with queue.opened(self.path) as table:
            found = queue.read(table, number)
        assert found
        return found


def steps(run: Path) -> int:
    return len(list(run.glob("step-*")))


def said(place: Path, job: Job, word: str) -> list[str]:
    """The values that the output of a job gives after a word ("step", "node"), in order."""
    lines = (line.split() for line in log_of(place, job).read_text().splitlines())
    return [value for given, value, *_ in lines if given == word]
