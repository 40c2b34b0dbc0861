"""Jobs as processes of this machine: each has a worker, which outlives the service and writes into the queue itself."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from mitigate.serve.engines import environment
from mitigate.serve.job_table import Job


@dataclass
class Local:
    """Jobs as processes of this machine. path: the queue's file. threads: the number for each job; None: the job's own
    default."""

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
