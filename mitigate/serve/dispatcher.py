"""The dispatcher: claims each job that may run and hands it to the engine. It keeps nothing: what runs stands in the
queue, so a service that was killed and started again goes on with the same jobs."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from mitigate.serve import queue
from mitigate.serve.engines import Engine


@dataclass
class Dispatcher:
    """Passes the jobs of a queue to an engine, `slots` at once, and of each owner as many as `most_running` allows."""

    path: Path
    slots: int
    engine: Engine
    most_running: queue.MostRunning | None = None

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
