"""How far a long step is. The step reports; who wants to know listens. Without a listener nothing is shown.

A stage knows neither terminals nor files:
`with progress("score sentiment", 5000, "texts") as advance: advance(128)`."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from mitigate.words.texts import escaped


@dataclass
class Step:
    """A step under way."""

    name: str
    total: float  # units; of a file whose length in units is unknown, 1.0, and `done` is the share
    unit: str
    done: float = 0.0
    before: float = 0.0  # finished before this process began: counts for the share, not for the pace
    count: int = 0  # units since this process began
    started: float = field(default_factory=lambda: time.monotonic())

    @property
    def share(self) -> float:
        """Between 0 and 1."""
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
    """Who is told. Called often: it decides itself how often it shows or writes anything.

    It may also have a method notice(message: str), for what `notice` is given."""

    def begin(self, step: Step) -> None: ...
    def at(self, step: Step) -> None: ...
    def end(self, step: Step) -> None: ...


_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Steps begun inside are reported to the listener; the innermost one is told."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def progress(name: str, total: float, unit: str, done: float = 0.0) -> Iterator[Callable[..., None]]:
    """Reports a step of `total` units, `done` of which were finished before. Yields advance(count), or for a step whose
    total is a share advance(count, to=share)."""
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
    """Shows the user one sentence about something unusual after which the work goes on: by the innermost listener, or
    on standard error if there is none that shows notices."""
    show = getattr(_listeners[-1], "notice", None) if _listeners else None
    if show:
        show(message)
    else:
        sys.stderr.write(f"{escaped(message)}\n")
