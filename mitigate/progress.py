"""Lines on the terminal (the logger "mitigate"), progress of long steps, and the state of a run in its folder's
status.json, which a person, a script or the service may watch.

A stage uses neither terminals nor files: `with progress("score sentiment", 5000, "texts") as advance: advance(128)`.

status.json: {"state": "running" | "finished" | "failed" | "stopped", "recipe", "stage", "step", "share",
"seconds_left", "done", "error", "pid", "host", "started", "updated"}: share is of the step within the stage, 0 to 1,
seconds_left an estimate for it; times are seconds since 1970."""

import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mitigate.errors import MitigateError, escaped
from mitigate.files import write

NAME = "status.json"
EVERY = 2.0  # seconds between two writes
LINES = 20.0  # seconds between two lines on a terminal
NO_STEP: dict[str, None] = dict.fromkeys(("step", "share", "seconds_left"))
LOG = logging.getLogger("mitigate")
PREFIXES = {logging.WARNING: "  note: ", logging.ERROR: "mitigate: "}

say = LOG.info  # a line for the user
notice = LOG.warning  # a sentence about something unusual that does not stop the work
complain = LOG.error  # a fault, on standard error


class Terminal(logging.Handler):
    """Lines on standard output, errors on standard error, at once; control characters are spelt out. Where the reader
    is gone (`| head -1`) or the disk is full, nothing more is shown, and the work continues."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        stream = sys.stderr if record.levelno >= logging.ERROR else sys.stdout
        try:
            print(f"{PREFIXES.get(record.levelno, '')}{escaped(record.getMessage())}", file=stream, flush=True)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show_lines() -> None:
    """Show the logger's lines; calling it again changes nothing."""
    if not any(isinstance(handler, Terminal) for handler in LOG.handlers):
        LOG.addHandler(Terminal())
        LOG.setLevel(logging.INFO)
        LOG.propagate = False


def prepare_output() -> None:
    """Spell out characters that the output cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout and sys.stdout.encoding:  # for the processes started from here
        os.environ["PYTHONIOENCODING"] = f"{sys.stdout.encoding}:backslashreplace"


@dataclass
class Step:
    """A step in progress."""

    name: str
    total: float  # units; 1.0 for a file with an unknown number of units, and `done` is then the share
    unit: str
    done: float = 0.0
    before: float = 0.0  # finished before this process began: counts for the share, not for the pace
    count: int = 0  # units since this process began
    started: float = field(default_factory=lambda: time.monotonic())
    ended: bool = False

    @property
    def share(self) -> float:
        """The completed share, between 0 and 1."""
        return min(1.0, self.done / self.total) if self.total else 1.0

    @property
    def pace(self) -> float:
        """Units a second since this process began."""
        return self.count / max(time.monotonic() - self.started, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Estimated from the pace so far; None while unknown."""
        elapsed, gained = time.monotonic() - self.started, self.done - self.before
        return elapsed * (self.total - self.done) / gained if gained > 0 else None


_listeners: list[Callable[[Step], None]] = []


@contextmanager
def listening(listener: Callable[[Step], None]) -> Iterator[None]:
    """Report steps that begin inside to the listener, when they begin, advance and end; the innermost receives them.
    Without a listener nothing is shown."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def progress(name: str, total: float, unit: str, done: float = 0.0) -> Iterator[Callable[..., None]]:
    """Report a step of `total` units; `done` of them were finished before. Yields advance(count), or advance(count,
    to=share) for a step whose total is a share."""
    step = Step(name, total, unit, done, before=done)
    show = _listeners[-1] if _listeners else lambda _: None

    def advance(count: int, to: float | None = None) -> None:
        step.count += count
        step.done = step.done + count if to is None else to
        show(step)

    show(step)
    try:
        yield advance
    finally:
        step.ended = True
        show(step)


class Status:
    """A writer of status.json: at every change of stage, and while a step advances every two seconds."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self.path, self.written = folder / NAME, 0.0
        self._facts: dict[str, Any] = {
            **{"state": "running", "recipe": recipe, "stage": None, **NO_STEP},
            **{"done": [], "error": None, "pid": os.getpid(), "host": socket.gethostname(), "started": time.time()},
        }
        self._write()

    def stage(self, name: str) -> None:
        """Begin a stage."""
        self._write(stage=name, **NO_STEP)

    def done(self, name: str) -> None:
        """Record a finished stage."""
        self._write(stage=None, **NO_STEP, done=[*self._facts["done"], name])

    def step(self, step: Step) -> None:
        """Record the progress of the step within the stage."""
        if step.ended:
            self._write(**NO_STEP)
        elif time.monotonic() > self.written + EVERY:
            left = None if step.seconds_left is None else round(step.seconds_left)
            self._write(step=step.name, share=round(step.share, 4), seconds_left=left)

    def close(self, state: str, error: str | None = None) -> None:
        """Record the end of the run: "finished", "failed" with its error, or "stopped" by Ctrl-C."""
        self._write(state=state, error=error, seconds_left=None)

    def _write(self, **facts: Any) -> None:
        self.written = time.monotonic()
        self._facts |= facts | {"updated": time.time()}
        with suppress(MitigateError):  # a run does not fail for want of its status
            write(self.path, json.dumps(self._facts, indent=2))


class Showing:
    """A listener: a bar on a terminal, else a line now and then, and status.json."""

    def __init__(self, status: Status, every: float = LINES) -> None:
        self.status, self.every, self.said = status, every, 0.0
        self.bar: Any = None
        self.step: Step | None = None

    def __call__(self, step: Step) -> None:
        """Show a step that begins, advances or ends."""
        self.status.step(step)
        if step is not self.step:
            self.step, self.said, self.bar = step, time.monotonic(), None
            if sys.stderr.isatty():
                self.bar = tqdm(total=step.total, initial=step.done, desc=step.name, unit=f" {step.unit}", leave=False)
        if self.bar is not None:
            self.bar.update(step.done - self.bar.n)
            if step.ended:
                self.bar.close()
        elif time.monotonic() - self.said > self.every and step.seconds_left is not None:
            pace = f"{step.pace:,.0f} {step.unit}/s" if step.pace >= 10 else f"{step.pace:.1f} {step.unit}/s"
            left = f"{step.seconds_left / 60:.0f} min" if step.seconds_left >= 90 else f"{step.seconds_left:.0f} s"
            say(f"  {step.name:<17}{step.share:>12.0%}    {pace}, about {left} left")
            self.said = time.monotonic()
