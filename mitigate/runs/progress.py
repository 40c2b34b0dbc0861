"""Progress of long steps: a step reports, and a listener shows it. Without a listener nothing is shown.

A stage uses neither terminals nor files: `with progress("score sentiment", 5000, "texts") as advance: advance(128)`."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from mitigate.words.outside_text import escaped


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
