"""The output of a command: lines on standard output and standard error, and the progress of a long step, as a bar on a
terminal, elsewhere as a line now and then."""

import os
import sys
import time
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

from mitigate.progress import Status, Step
from mitigate.words.outside_text import escaped

EVERY = 20.0  # seconds between two lines
SELDOM = 60.0  # of a job of a sweep, whose lines stand between those of others


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


class Showing:
    """A listener of mitigate.progress: the terminal, and status.json."""

    def __init__(self, status: Status | None = None, every: float = EVERY) -> None:
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
