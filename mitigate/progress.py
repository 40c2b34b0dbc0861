"""Lines on the terminal (the logger "mitigate"), progress of long steps, and the state of a run in its folder's
status.json, which a person, a script or the service may watch.

A stage uses neither terminals nor files: `with progress("score sentiment", 5000, "texts") as advance: advance(128)`.

status.json: {"state": "running" | "finished" | "failed" | "stopped", "recipe", "stage", "step", "share",
"seconds_left", "done", "error", "pid", "host", "started", "updated"}: share is of the step within the stage, 0 to 1,
seconds_left an estimate for it; times are seconds since 1970. While the process lives, `updated` is at most a few
seconds old."""

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.words.outside_text import escaped

NAME = "status.json"
EVERY = 2.0  # seconds between two writes
LINES, SELDOM = 20.0, 60.0  # seconds between two lines on a terminal; of a job of a sweep, beside those of others
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
        name = "stderr" if record.levelno >= logging.ERROR else "stdout"
        line = f"{PREFIXES.get(record.levelno, '')}{escaped(record.getMessage())}"
        try:
            print(line, file=getattr(sys, name), flush=True)
        except OSError as error:
            stream = getattr(sys, name)
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError) and name == "stdout":
                complain(f"cannot write to standard output ({error.strerror}); nothing more is shown there")


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
    def pace(self) -> float | None:
        """Units a second since this process began; None while unknown."""
        elapsed = time.monotonic() - self.started
        return self.count / elapsed if self.count and elapsed > 0 else None

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


class Showing:
    """A listener: a bar on a terminal, else a line now and then, and status.json."""

    def __init__(self, status: Status | None = None, every: float = LINES) -> None:
        self.status = status
        self.every = every
        self.bar: Any = None
        self.said = 0.0
        self.step: Step | None = None

    def __call__(self, step: Step) -> None:
        """Show a step that begins, advances or ends."""
        if step is not self.step:
            self.step, self.said = step, time.monotonic()
            self.bar = _bar(step) if sys.stderr.isatty() and step.total else None
        if self.status:
            self.status.step(None if step.ended else step)
        if self.bar is not None:
            self.bar.update((100 if step.total == 1.0 else 1) * step.done - self.bar.n)
            if step.ended:
                self.bar.close()
        elif time.monotonic() - self.said > self.every and step.pace and step.seconds_left is not None:
            pace = f"{step.pace:,.0f} {step.unit}/s" if step.pace >= 10 else f"{step.pace:.1f} {step.unit}/s"
            left = f"{step.seconds_left / 60:.0f} min" if step.seconds_left >= 90 else f"{step.seconds_left:.0f} s"
            say(f"  {step.name:<17}{step.share:>12.0%}    {pace}, about {left} left")
            self.said = time.monotonic()


def _bar(step: Step) -> Any:
    from tqdm import tqdm

    by_share = step.total == 1.0
    total, initial = (100, 100 * step.done) if by_share else (step.total, step.done)
    unit = "%" if by_share else f" {step.unit}"
    return tqdm(total=total, initial=initial, desc=step.name, unit=unit, leave=False)
