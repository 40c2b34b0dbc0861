"""The dispatcher: claims each job that may run and hands it to the engine, as a thread of the service or by itself. It
keeps nothing: what runs stands in the queue, so a service that was killed and started again goes on with the same
jobs."""

import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mitigate.serve import queue
from mitigate.serve.engines import Engine


@dataclass
class Dispatcher:
    """A thread's loop that passes the jobs of a queue to an engine, `slots` at once, and of each owner as many as
    `most_running` allows."""

    path: Path
    slots: int
    engine: Engine
    _stopped: threading.Event = field(default_factory=threading.Event)
    most_running: Callable[[str | None], int | None] = queue.any_number

    def step(self) -> int:
        """Start jobs up to `slots` at once, and have the engine see to the jobs in hand; return the number of started
        jobs."""
        started = 0
        with queue.opened(self.path) as connection:
            while job := queue.claim(connection, name := uuid.uuid4().hex, self.slots, most_running=self.most_running):
                self.engine.start(job, name)
                started += 1
        self.engine.look()
        return started

    def run(self) -> None:
        """Step until stop() is called; a step that fails is tried again."""
        while not self._stopped.wait(self.engine.every):
            try:
                self.step()
            except Exception as error:  # a full disk, no more processes: the service still answers
                sys.stderr.write(f"mitigate: no job can be started now: {error}\n")
                self._stopped.wait(10 * self.engine.every)

    def start(self) -> threading.Thread:
        """Run in a new thread."""
        thread = threading.Thread(target=self.run, name="dispatcher", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Start no further jobs; running ones continue."""
        self._stopped.set()
