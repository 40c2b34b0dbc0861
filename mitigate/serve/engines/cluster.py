"""Jobs that another engine runs. The queue keeps who submitted them and how they ended, also when the engine forgets.

A job is submitted under a name that is the same after a restart of the service, so that one that was submitted just
before a kill, or whose answer was lost, is found again. An engine that does not answer is asked again."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection
from typing import Protocol

from mitigate.serve import queue
from mitigate.serve.job_output import incomplete, log_of, run_folder, sentence
from mitigate.serve.job_table import Job
from mitigate.serve.worker import MENDABLE, MOST_DEATHS, MOST_STARTS

DIED = -int(signal.SIGKILL)  # the exit status of a job of which the engine knows none


class Cluster(Protocol):
    """An engine: SLURM, Ray Jobs."""

    def start(self, name: str, command: Sequence[str], log: Path) -> str:
        """Submit a command, whose output goes into `log`, and return the engine's handle. A job of that name that the
        engine already has is not started again."""

    def find(self, name: str) -> str | None:
        """The engine's handle of the job of that name; None where it has none."""

    def state(self, handle: str) -> int | None:
        """The exit status, DIED where there is none; None while it waits or runs. Raises LookupError for a job that it
        has forgotten."""

    def stop(self, handle: str) -> None:
        """End a job."""


@dataclass
class Remote:
    """The jobs of this queue on a cluster. path: the queue's file."""

    path: Path
    cluster: Cluster
    every: float = 2.0
    _held: dict[int, str] = field(default_factory=dict)  # job: worker
    _stopped: set[str] = field(default_factory=set)

    def start(self, job: Job, worker: str) -> None:
        """Take the job over; the next look submits it, unless it was submitted before."""
        self._held[job.id] = worker

    def look(self) -> None:
        """Submit jobs, poll their states and stop them."""
        with queue.opened(self.path) as table:
            for number, worker in list(self._held.items()):
                told = queue.renew(table, number, worker)
                try:
                    if told == "lost" or self._has_ended(table, number, worker, told == "cancel"):
                        del self._held[number]
                except Exception as error:  # whatever a client of a cluster raises while that does not answer
                    sys.stderr.write(f"mitigate: the engine does not answer for job {number}: {error}\n")

    def _has_ended(self, table: Connection, number: int, worker: str, is_to_stop: bool) -> bool:
        job = queue.read(table, number)
        assert job is not None
        log = log_of(self.path.parent, job)
        handle = job.handle
        if handle is None and not is_to_stop:
            if job.starts >= MOST_STARTS:
                error = f"it was started {job.starts} times, and the engine forgot it"
                return queue.finish(table, number, worker, "failed", error=error)
            log.parent.mkdir(parents=True, exist_ok=True)
            handle = self.cluster.start(name_of(job), job.command, log)
            queue.note(table, number, worker, handle=handle, starts=1)
            return False
        if handle is None:  # it may have been submitted all the same: before a kill, or its answer was lost
            handle = self.cluster.find(name_of(job))
            if handle is None:
                return queue.finish(table, number, worker, "cancelled")
            queue.note(table, number, worker, handle=handle, starts=1)
        if is_to_stop and handle not in self._stopped:
            self.cluster.stop(handle)
            self._stopped.add(handle)
        try:
            status = self.cluster.state(handle)
        except LookupError:
            queue.note(table, number, worker, handle=None)  # it lost its head, and the job with it
            return False
        if folder := run_folder(log):
            queue.note(table, number, worker, folder=folder)
        if status is None:
            return False
        if is_to_stop:
            return queue.finish(table, number, worker, "cancelled", exit_status=status)
        fault = sentence(log, status) if status else incomplete(log)
        if fault is None:
            return queue.finish(table, number, worker, "done", exit_status=status)
        is_death = status not in (0, MENDABLE)
        queue.note(table, number, worker, deaths=int(is_death))
        if not is_death or job.deaths + 1 >= MOST_DEATHS:
            return queue.finish(table, number, worker, "failed", exit_status=status, error=fault)
        queue.note(table, number, worker, handle=None)
        return False


def name_of(job: Job) -> str:
    """The name of a job in the engine: the same until it was started, another one afterwards."""
    return f"mitigate-{job.name}-{job.starts}"
