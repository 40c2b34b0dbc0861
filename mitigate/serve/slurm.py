"""Jobs of SLURM, by submitit. A job that runs out of time is queued again and goes on from its last checkpoint; SLURM
that does not answer is asked again."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from mitigate.errors import MitigateError, check_installed
from mitigate.serve import queue
from mitigate.serve.dispatcher import environment
from mitigate.serve.queue import Job
from mitigate.serve.worker import MENDABLE, MOST_DEATHS, incomplete, log_of, run_folder, sentence

DIED = -int(signal.SIGKILL)  # the exit status of a job of which SLURM knows none
ASK_EVERY = 5.0  # seconds between two calls of squeue about a job of a cluster without accounting
LOOKS = 2  # at a job that has ended without a result, which the file system may show late
MOST_TIMEOUTS = 10  # after which a job is no longer queued again
ENDED = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT")
JOB_NAME = re.compile(r"^#SBATCH --job-name=(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """The command that a machine of the cluster runs; it is sent there as a pickle.

    SLURM ends a job that it preempts or cancels by SIGTERM to all its processes, and queues a preempted one again
    itself. The command's status is then no result: with one, the job would be submitted a second time."""

    command: Sequence[str]
    log: str
    threads: int | None

    def __call__(self) -> int:
        """The exit status. Ends the process where SLURM has ended the job."""
        received: list[int] = []
        before = signal.getsignal(signal.SIGTERM)

        def note(number: int, frame: Any) -> None:
            received.append(number)
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGTERM, note)
        with Path(self.log).open("ab") as output:
            status = subprocess.call(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(os.environ, self.threads),
            )
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
        if received:
            os._exit(128 + signal.SIGTERM)
        return status

    def checkpoint(self) -> Any:
        """Queue the same command again when the time is over; it resumes."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Slurm:
    """Jobs of SLURM. folder: of submitit's files, on a file system that all machines share; kind: "slurm", or
    submitit's "local" for processes here. Raises MitigateError where submitit or SLURM is absent."""

    def __init__(
        self,
        folder: Path,
        *,
        threads: int | None = None,
        gpus: int = 0,
        memory: float | None = None,
        minutes: int = 1440,
        partition: str | None = None,
        kind: str = "slurm",
    ) -> None:
        check_installed("serve.engine=slurm", "slurm", "submitit")
        from submitit import AutoExecutor

        own = {"slurm_max_num_timeout": MOST_TIMEOUTS} if kind == "slurm" else {}
        try:
            self.executor = AutoExecutor(folder, cluster=kind, **own)
        except RuntimeError as error:
            raise MitigateError(
                f"serve.engine=slurm finds no SLURM here ({error}); start the service where sbatch can be called"
            ) from error
        self.threads = threads
        self.executor.update_parameters(
            timeout_min=minutes,
            cpus_per_task=threads or 1,
            gpus_per_node=gpus,
            mem_gb=memory,
            slurm_partition=partition,
        )
        self.folder = folder
        self.jobs: dict[str, Any] = {}
        self.looks: dict[str, tuple[float, int]] = {}  # the last call of squeue, and how many found the job ended
        self.names: dict[str, str] = {}  # of jobs in the folder, by handle: read once

    def start(self, name: str, command: Sequence[str], log: Path) -> str:
        """Submit a command, unless it was submitted before, and return its handle. A kill between SLURM's answer and
        submitit's files leaves a job that finds no command, waits for it and ends; of jobs of one name SLURM runs one
        at a time (singleton)."""
        if known := self.find(name):
            return known
        self.executor.update_parameters(name=name, slurm_additional_parameters={"dependency": "singleton"})
        job = self.executor.submit(Command(list(command), str(log), self.threads))
        self.jobs[job.job_id] = job
        return str(job.job_id)

    def find(self, name: str) -> str | None:
        """The handle of the job with this name, or None, from submitit's files on each submitted job, without a query
        to SLURM. Not with kind="local"."""
        for script in self.folder.glob("*_submission.sh"):
            handle = script.name.removesuffix("_submission.sh")
            if handle not in self.names and (found := JOB_NAME.search(script.read_text(encoding="utf-8"))):
                self.names[handle] = found[1]
        named = (handle for handle, given in self.names.items() if given == name)
        return next((handle for handle in named if (self.folder / f"{handle}_submitted.pkl").exists()), None)

    def state(self, handle: str) -> int | None:
        """The exit status, or None while it waits or runs."""
        from submitit.core.utils import FailedJobError, UncompletedJobError

        job = self._job(handle)
        if not job.done():
            return DIED if job.state == "UNKNOWN" and self._has_ended(handle) else None
        try:
            return int(job.result())
        except (UncompletedJobError, FailedJobError):
            return DIED

    def _has_ended(self, handle: str) -> bool:
        """Return whether squeue lists a job as ended, or no longer. submitit asks sacct, which a cluster without
        accounting lacks: a job that was cancelled or killed, and left no result, would never end."""
        last, found = self.looks.get(handle, (0.0, 0))
        if shutil.which("squeue") is None or time.monotonic() - last < ASK_EVERY:
            return False
        line = ["squeue", "--noheader", "--states=all", "-o", "%T", "-j", handle]
        asked = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        is_unknown = "Invalid job id" in asked.stderr
        if asked.returncode and not is_unknown:
            return False  # SLURM does not answer
        has_ended = is_unknown or asked.stdout.strip() in ENDED
        self.looks[handle] = (time.monotonic(), found + 1 if has_ended else 0)
        return has_ended and found + 1 >= LOOKS

    def stop(self, handle: str) -> None:
        """End a job, by scancel."""
        self._job(handle).cancel(check=False)

    def _job(self, handle: str) -> Any:
        """One that this process submitted, or an earlier one."""
        if handle not in self.jobs:
            inner = self.executor._executor
            self.jobs[handle] = inner.job_class(inner.folder, handle)
        return self.jobs[handle]


@dataclass
class Remote:
    """The jobs of this queue on SLURM. The queue keeps who submitted them and how they ended. A job is submitted under
    a name that is the same after a restart of the service, so that one that was submitted just before a kill, or whose
    answer was lost, is found again. path: the queue's file."""

    path: Path
    cluster: Slurm
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
                    sys.stderr.write(f"mitigate: SLURM does not answer for job {number}: {error}\n")

    def _has_ended(self, table: Connection, number: int, worker: str, is_to_stop: bool) -> bool:
        job = queue.read(table, number)
        assert job is not None
        log = log_of(self.path.parent, job)
        handle = job.handle
        if handle is None and not is_to_stop:
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
        status = self.cluster.state(handle)
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
    """The name of a job on the cluster: the same until it was started, another one afterwards."""
    return f"mitigate-{job.name}-{job.starts}"
