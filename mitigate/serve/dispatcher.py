"""The dispatcher claims each job that may run and hands it to the engine: processes of this machine, or SLURM. It keeps
nothing: what runs stands in the queue, so a service that was killed and started again goes on with the same jobs."""

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mitigate.serve import queue
from mitigate.serve.queue import Job

NOT_HANDED_ON = ("MITIGATE_TOKEN", "WANDB_SERVICE")  # of the environment
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")


class Engine(Protocol):
    """An engine that runs the jobs that a dispatcher has claimed. every: seconds between two looks."""

    every: float

    def start(self, job: Job, worker: str) -> None:
        """Start a job that this worker has claimed, or take over one that runs."""

    def look(self) -> None:
        """See to the jobs in hand."""


@dataclass
class Local:
    """Jobs as processes of this machine: each has a worker, which outlives the service and writes into the queue
    itself. path: the queue's file. threads: the number for each job; None: the job's own default."""

    path: Path
    threads: int | None = None
    every: float = 0.5
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, job: Job, worker: str) -> None:
        """Start the job's worker."""
        with (self.path.parent / "workers.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "mitigate.serve.worker", str(self.path), str(job.id), worker],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=environment(os.environ, self.threads),
            )
        self.workers.append(process)

    def look(self) -> None:
        """Let go of workers that have ended, so that no zombie stays."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]


@dataclass
class Dispatcher:
    """Passes the jobs of a queue to an engine, `slots` at once."""

    path: Path
    slots: int
    engine: Engine

    def step(self) -> int:
        """Start jobs up to `slots` at once, and have the engine see to the jobs in hand; return the number of started
        jobs."""
        started = 0
        with queue.opened(self.path) as connection:
            while job := queue.claim(connection, name := uuid.uuid4().hex, self.slots):
                self.engine.start(job, name)
                started += 1
        self.engine.look()
        return started


def environment(given: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """The environment that a job inherits."""
    kept = {name: value for name, value in given.items() if name not in NOT_HANDED_ON}
    return kept | (dict.fromkeys(THREADS, str(threads)) if threads else {})


def repeat(step: Callable[[], object], every: float, stopped: threading.Event) -> None:
    """Step until `stopped` is set. A step that fails is reported and tried again after ten times as long."""
    while not stopped.wait(every):
        try:
            step()
        except Exception as error:  # a full disk, no more processes: the service still answers
            sys.stderr.write(f"mitigate: no job can be started now: {error}\n")
            stopped.wait(10 * every)
