"""Engines that run jobs: as processes of this machine (local), or as jobs of an engine with a queue of its own (slurm,
ray). None of them is a scheduler."""

from collections.abc import Mapping
from typing import Protocol

from mitigate.serve.job_table import Job

NOT_HANDED_ON = ("MITIGATE_TOKEN", "MITIGATE_WEBHOOK_SECRET", "WANDB_SERVICE")  # of the environment, as secrets
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")


class Engine(Protocol):
    """An engine that runs the jobs that a dispatcher has claimed. every: seconds between two looks."""

    every: float

    def start(self, job: Job, worker: str) -> None:
        """Start a job that this worker has claimed, or take over one that runs."""

    def look(self) -> None:
        """See to the jobs in hand."""


def environment(given: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """The environment that a job inherits."""
    kept = {name: value for name, value in given.items() if name not in NOT_HANDED_ON}
    return kept | (dict.fromkeys(THREADS, str(threads)) if threads else {})
