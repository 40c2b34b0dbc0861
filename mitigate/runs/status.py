"""The state of a run in its folder's status.json, which a person, a script or the service may watch.

{"state": "running" | "finished" | "failed" | "stopped", "recipe", "stage", "step", "share", "seconds_left", "done",
"error", "pid", "host", "started", "updated"}: share is of the step within the stage, 0 to 1, seconds_left an estimate
for it; times are seconds since 1970. While the process lives, `updated` is at most a few seconds old."""

import json
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.runs.files import write
from mitigate.runs.progress import Step

NAME = "status.json"
EVERY = 2.0  # seconds between two writes
NO_STEP: dict[str, None] = dict.fromkeys(("step", "share", "seconds_left"))


class Status:
    """A writer of status.json: now, at every change of stage, and every two seconds until it is closed."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self.path = folder / NAME
        self._facts: dict[str, Any] = {
            **{"state": "running", "recipe": recipe, "stage": None, **NO_STEP},
            **{"done": [], "error": None, "pid": os.getpid(), "host": socket.gethostname(), "started": time.time()},
        }
        self._lock = threading.Lock()
        self._file = threading.Lock()  # two threads write it
        self._closed = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._write_regularly, daemon=True)
        self._thread.start()

    def stage(self, name: str) -> None:
        """Begin a stage."""
        self._change(stage=name, **NO_STEP)
        self._write()

    def done(self, name: str) -> None:
        """Record a finished stage."""
        self._change(stage=None, **NO_STEP, done=[*self._facts["done"], name])

    def step(self, step: Step | None) -> None:
        """Record the progress of the step within the stage; None when it has ended. Cheap: the next write includes
        it."""
        if step is None:
            self._change(**NO_STEP)
        else:
            left = step.seconds_left
            self._change(step=step.name, share=round(step.share, 4), seconds_left=None if left is None else round(left))

    def close(self, state: str, error: str | None = None) -> None:
        """Record the end of the run: "finished", "failed" with its error, or "stopped" by Ctrl-C."""
        self._closed.set()
        self._thread.join()
        self._change(state=state, error=error, seconds_left=None)
        self._write()

    def _change(self, **facts: Any) -> None:
        with self._lock:
            self._facts |= facts

    def _write_regularly(self) -> None:
        while not self._closed.wait(EVERY):
            self._write()

    def _write(self) -> None:
        with self._file:
            with self._lock:
                facts = self._facts | {"updated": time.time()}
            # A run does not fail for want of its status: the write of a result reports a full disk.
            with suppress(MitigateError):
                write(self.path, json.dumps(facts, indent=2))
