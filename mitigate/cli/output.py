"""The output of a running recipe: lines on standard output, and how far a long step is, as a bar on a terminal,
elsewhere as a line now and then."""

import sys
import time

from tqdm.auto import tqdm

from mitigate.runs.progress import Step
from mitigate.runs.status import Status
from mitigate.words.texts import escaped

EVERY = 20.0  # seconds between two lines
SELDOM = 60.0  # of a job of a sweep, whose lines stand between those of others


def say(message: str) -> None:
    """A line for the user, on standard output at once; control characters in it are spelt out."""
    print(escaped(message), flush=True)


class Showing:
    """A listener of mitigate.runs.progress: the terminal, and status.json."""

    def __init__(self, status: Status | None = None, every: float = EVERY) -> None:
        self.status = status
        self.every = every
        self.bar: tqdm | None = None
        self.said = 0.0

    def begin(self, step: Step) -> None:
        """A step begins."""
        self.said = time.monotonic()
        if sys.stderr.isatty() and step.total:
            by_share = step.total == 1.0
            self.bar = tqdm(
                total=100 if by_share else step.total,
                initial=100 * step.done if by_share else step.done,
                desc=step.name,
                unit="%" if by_share else f" {step.unit}",
                leave=False,
            )

    def at(self, step: Step) -> None:
        """It has come further."""
        if self.status:
            self.status.step(step)
        if self.bar is not None:
            self.bar.update((100 if step.total == 1.0 else 1) * step.done - self.bar.n)
        elif time.monotonic() - self.said > self.every and step.pace and step.seconds_left is not None:
            pace = f"{step.pace:,.0f} {step.unit}/s" if step.pace >= 10 else f"{step.pace:.1f} {step.unit}/s"
            say(f"  {step.name:<17}{step.share:>12.0%}    {pace}, about {_minutes(step.seconds_left)} left")
            self.said = time.monotonic()

    def end(self, step: Step) -> None:
        """It has ended."""
        if self.status:
            self.status.step(None)
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def notice(self, message: str) -> None:
        """Something a reader must know that does not stop the run."""
        say(f"  note: {message}")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
