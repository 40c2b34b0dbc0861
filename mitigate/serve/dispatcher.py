"""The dispatcher: starts a worker for each job that may run, as a thread of the service or by itself. It keeps nothing:
what runs stands in the queue, so a service that was killed and started again goes on with the same jobs."""

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mitigate.serve import queue

EVERY = 0.5  # seconds
NOT_HANDED_ON = ("MITIGATE_TOKEN", "WANDB_SERVICE")  # of the environment: jobs need no token of the service
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")


@dataclass
class Dispatcher:
    """Starts workers for the jobs of a queue, `slots` at once. threads: of each job; None: as many as it takes."""

    path: Path
    slots: int
    threads: int | None = None
    _workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def step(self) -> int:
        """Start what may be started; the number of workers started."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]  # and no zombie stays
        started = 0
        with queue.opened(self.path) as connection:
            while job := queue.claim(connection, name := uuid.uuid4().hex, self.slots):
                self._workers.append(self._start(job.id, name))
                started += 1
        return started

    def run(self) -> None:
        """Step until stop() is called; a step that fails is tried again."""
        while not self._stopped.wait(EVERY):
            try:
                self.step()
            except Exception as error:  # a full disk, no more processes: the service still answers
                sys.stderr.write(f"mitigate: no job can be started now: {error}\n")
                self._stopped.wait(10 * EVERY)

    def start(self) -> threading.Thread:
        """The same in a thread of its own."""
        thread = threading.Thread(target=self.run, name="dispatcher", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Start no more; what runs goes on."""
        self._stopped.set()

    def _start(self, job: int, name: str) -> subprocess.Popen[bytes]:
        said = self.path.parent / "workers.log"
        with said.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "mitigate.serve.worker", str(self.path), str(job), name],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=environment(os.environ, self.threads),
            )


def environment(given: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """What a worker and its job inherit."""
    kept = {name: value for name, value in given.items() if name not in NOT_HANDED_ON}
    return kept | (dict.fromkeys(THREADS, str(threads)) if threads else {})
