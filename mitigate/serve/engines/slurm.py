"""Jobs of SLURM, by submitit. A job that runs out of time is queued again and goes on from its last checkpoint."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError, check_installed
from mitigate.serve.engines import environment
from mitigate.serve.engines.cluster import DIED

MOST_TIMEOUTS = 10  # after which a job is no longer queued again
JOB_NAME = re.compile(r"^#SBATCH --job-name=(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """The command that a machine of the cluster runs; it is sent there as a pickle."""

    command: Sequence[str]
    log: str
    threads: int | None

    def __call__(self) -> int:
        """The exit status."""
        with Path(self.log).open("ab") as output:
            return subprocess.call(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(os.environ, self.threads),
            )

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
            return None
        try:
            return int(job.result())
        except (UncompletedJobError, FailedJobError):
            return DIED

    def stop(self, handle: str) -> None:
        """End a job, by scancel."""
        self._job(handle).cancel(check=False)

    def _job(self, handle: str) -> Any:
        """One that this process submitted, or an earlier one."""
        if handle not in self.jobs:
            inner = self.executor._executor
            self.jobs[handle] = inner.job_class(inner.folder, handle)
        return self.jobs[handle]
