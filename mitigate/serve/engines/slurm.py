"""Jobs of SLURM, by submitit. A job that runs out of time is queued again and goes on from its last checkpoint."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.serve.engines import environment
from mitigate.serve.engines.cluster import DIED

MOST_TIMEOUTS = 10  # after which a job is no longer queued again


@dataclass(frozen=True)
class Command:
    """What a machine of the cluster does; it is sent there as a pickle."""

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
        """What is queued when the time is over: the same command, which goes on."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Slurm:
    """folder: of submitit's files, on a file system that all machines share; kind: "slurm", or submitit's "local" for
    processes here. Raises MitigateError where submitit or SLURM is absent."""

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
        try:
            from submitit import AutoExecutor
        except ImportError as error:
            raise MitigateError(
                "serve.engine=slurm needs submitit: pip install -c constraints.txt -e '.[serve,slurm]'"
            ) from error
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
        self.jobs: dict[str, Any] = {}

    def start(self, name: str, command: Sequence[str], log: Path) -> str:
        """Submit it. Of jobs of one name SLURM runs one at a time (singleton), so one that was submitted twice, because
        the service was killed in between, finds its run complete the second time."""
        self.executor.update_parameters(name=name, slurm_additional_parameters={"dependency": "singleton"})
        job = self.executor.submit(Command(list(command), str(log), self.threads))
        self.jobs[job.job_id] = job
        return str(job.job_id)

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
        """By scancel."""
        self._job(handle).cancel(check=False)

    def _job(self, handle: str) -> Any:
        """One that this process submitted, or an earlier one."""
        if handle not in self.jobs:
            inner = self.executor._executor
            self.jobs[handle] = inner.job_class(inner.folder, handle)
        return self.jobs[handle]
