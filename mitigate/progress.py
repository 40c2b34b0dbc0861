"""Progress of long steps: a step reports, and a listener shows it. Without a listener nothing is shown. The lines of a
command on standard output and standard error. And the state of a run in its folder's status.json, which a person, a
script or the service may watch.

A stage uses neither terminals nor files: `with progress("score sentiment", 5000, "texts") as advance: advance(128)`.

status.json: {"state": "running" | "finished" | "failed" | "stopped", "recipe", "stage", "step", "share",
"seconds_left", "done", "error", "pid", "host", "started", "updated"}: share is of the step within the stage, 0 to 1,
seconds_left an estimate for it; times are seconds since 1970. While the process lives, `updated` is at most a few
seconds old."""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any, Protocol

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.words.outside_text import escaped

NAME = "status.json"
EVERY = 2.0  # seconds between two writes
LINES, SELDOM = 20.0, 60.0  # seconds between two lines on a terminal; of a job of a sweep, beside those of others
NO_STEP: dict[str, None] = dict.fromkeys(("step", "share", "seconds_left"))


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


class Listener(Protocol):
    """A receiver of progress. It is called often, and decides itself how often it shows or writes anything. It may also
    have a method notice(message: str), which receives the messages of `notice`."""

    def begin(self, step: Step) -> None: ...
    def at(self, step: Step) -> None: ...
    def end(self, step: Step) -> None: ...


_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report steps that begin inside to the listener; the innermost listener receives them."""
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
    listener = _listeners[-1] if _listeners else None

    def advance(count: int, to: float | None = None) -> None:
        step.count += count
        step.done = step.done + count if to is None else to
        if listener:
            listener.at(step)

    if listener:
        listener.begin(step)
    try:
        yield advance
    finally:
        if listener:
            listener.end(step)


def notice(message: str) -> None:
    """Show the user one sentence about something unusual that does not stop the work, by the innermost listener or, if
    none shows notices, on standard error."""
    show = getattr(_listeners[-1], "notice", None) if _listeners else None
    if show:
        show(message)
    else:
        sys.stderr.write(f"{escaped(message)}\n")


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
    """A listener of mitigate.progress: the terminal, and status.json."""

    def __init__(self, status: Status | None = None, every: float = LINES) -> None:
        self.status = status
        self.every = every
        self.bar: Any = None
        self.said = 0.0

    def begin(self, step: Step) -> None:
        """A step begins."""
        self.said = time.monotonic()
        if sys.stderr.isatty() and step.total:
            from tqdm import tqdm

            by_share = step.total == 1.0
            self.bar = tqdm(
                total=100 if by_share else step.total,
                initial=100 * step.done if by_share else step.done,
                desc=step.name,
                unit="%" if by_share else f" {step.unit}",
                leave=False,
            )

    def at(self, step: Step) -> None:
        """Show the progress so far."""
        if self.status:
            self.status.step(step)
        if self.bar is not None:
            self.bar.update((100 if step.total == 1.0 else 1) * step.done - self.bar.n)
        elif time.monotonic() - self.said > self.every and step.pace and step.seconds_left is not None:
            pace = f"{step.pace:,.0f} {step.unit}/s" if step.pace >= 10 else f"{step.pace:.1f} {step.unit}/s"
            left = f"{step.seconds_left / 60:.0f} min" if step.seconds_left >= 90 else f"{step.seconds_left:.0f} s"
            say(f"  {step.name:<17}{step.share:>12.0%}    {pace}, about {left} left")
            self.said = time.monotonic()

    def end(self, step: Step) -> None:
        """Show that the stage has ended."""
        if self.status:
            self.status.step(None)
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def notice(self, message: str) -> None:
        """Show a notice that does not stop the run."""
        say(f"  note: {message}")


def say(message: str) -> None:
    """A line for the user, on standard output at once; control characters in it are spelt out."""
    print(escaped(message), flush=True)


def complain(message: str) -> None:
    """A fault or a warning, on standard error at once."""
    print(f"mitigate: {escaped(message)}", file=sys.stderr, flush=True)


def prepare_output() -> None:
    """Let the work continue where the reader of the output is gone, and spell out characters that it cannot show."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        if isinstance(stream, TextIOWrapper) and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            output = BufferedWriter(_Output(stream.fileno(), "wb", closefd=False))
            lines = name == "stderr" or stream.line_buffering
            setattr(sys, name, TextIOWrapper(output, stream.encoding, "backslashreplace", line_buffering=lines))
    if sys.stdout and sys.stdout.encoding:  # for the processes started from here
        os.environ["PYTHONIOENCODING"] = f"{sys.stdout.encoding}:backslashreplace"


class _Output(FileIO):
    """Standard output or error. When its reader is gone (`| head -1`), or it cannot be written to for another reason,
    nothing more is shown, and the work continues."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if not isinstance(error, BrokenPipeError) and self.fileno() != 2:
                complain(f"cannot write to standard output ({error.strerror}); nothing more is shown there")
            return memoryview(content).nbytes
