"""Running `python -m mitigate` from a test: here, or in a process of its own that can be killed. Such processes are
forked from one that has imported what they need (forked_commands.py)."""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from select import select
from subprocess import PIPE
from typing import Any, NamedTuple

import pytest
from hydra import compose, initialize_config_dir

from mitigate.__main__ import cli
from mitigate.recipes.config import Config, configured

ROOT = Path(__file__).parents[1]
PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABAQAAAAA3bvkkAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")
BLANK = {"svg": b"<svg></svg>", "png": PIXEL}
UNDRAWN: tuple[str, Any] = ("mitigate.report.plots._bytes", lambda *_, format, **__: BLANK[format])
"""Arguments of monkeypatch.setattr for pages without pictures, which are tested by themselves and take seconds."""
SMALL = [  # the whole job in seconds
    "trainer.max_steps=6",
    "trainer.batch_size=16",
    "probe.targets=[lawyer,nurse,italy]",
    "probe.relations=[IsA,CapableOf,HasPainIntensity]",
    "probe.max_length=6",
    "probe.heads=12",
    "measure.resamples=200",
]


def here(monkeypatch: pytest.MonkeyPatch, *overrides: str) -> int:
    """The command's exit status."""
    monkeypatch.setattr(sys, "argv", ["mitigate", *overrides])
    monkeypatch.chdir(ROOT)
    try:
        cli()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def metrics_of(folder: Path) -> dict[str, Any]:
    """The metrics.json of a run folder."""
    return json.loads((folder / "metrics.json").read_text())


def recipe_is(monkeypatch: pytest.MonkeyPatch, recipe: Callable[[Any], object]) -> None:
    """Lets commands call this function in the place of a recipe."""
    monkeypatch.setattr("mitigate.recipes.config.imported", lambda *_: recipe)


class Job(NamedTuple):
    """A command that the fixture `job` has run: its exit status, what it printed, and its run folder, or the folder of
    outputs where it names none."""

    status: int
    said: str
    complaint: str
    folder: Path


@cache
def composed(*overrides: str) -> Config:
    """The configuration with these settings, for tests that only read it."""
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        return configured(compose("config", list(overrides)))


class Ended(NamedTuple):
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def done(self) -> str:
        """What a command printed that has succeeded."""
        assert self.returncode == 0, self.stderr
        return self.stdout

    @property
    def refused(self) -> str:
        """The sentence of a command that was refused."""
        assert (self.returncode, "Traceback" in self.stderr) == (2, False), self.stderr
        return self.stderr


def apart(*overrides: str) -> Ended:
    """The command in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        _fork(overrides, place)
        return Ended(int(_server().read()), *(Path(place, name).read_text() for name in ("output", "error")))


def killed(when: Callable[[], bool], *overrides: str) -> None:
    """The command, killed with signal 9 as soon as `when` is true."""
    with tempfile.TemporaryDirectory() as place:
        process = _fork(overrides, place)
        while not when():
            if _server().has_more():
                status = int(_server().read())
                said = "".join(Path(place, name).read_text() for name in ("output", "error"))
                pytest.fail(f"it ended with status {status} before it could be killed:\n{said}")
            time.sleep(0.005)
        os.kill(process, signal.SIGKILL)
        assert int(_server().read()) == -signal.SIGKILL


def _fork(overrides: Sequence[str], place: str) -> int:
    """Starts the command; its process's number."""
    asked = {"arguments": overrides, "environment": _environment()}
    files = {name: str(Path(place, name)) for name in ("output", "error")}
    return int(_server().ask(json.dumps(asked | files)))


class Server:
    """The process that runs forked_commands.py."""

    def __init__(self) -> None:
        line = [sys.executable, str(Path(__file__).with_name("forked_commands.py"))]
        self.process = subprocess.Popen(line, stdin=PIPE, stdout=PIPE, bufsize=0)
        atexit.register(self.process.terminate)

    def ask(self, line: str) -> bytes:
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n")
        return self.read()

    def read(self) -> bytes:
        assert self.process.stdout
        return self.process.stdout.readline()

    def has_more(self) -> bool:
        """Whether a line can be read without waiting."""
        return bool(select([self.process.stdout], [], [], 0)[0])


@cache
def _server() -> Server:
    return Server()


def _environment() -> dict[str, str]:
    """Without the address of this process's W&B service, which would outlive the process that is killed."""
    return {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
