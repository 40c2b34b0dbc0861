"""Running `python -m mitigate` from a test: here, or in a process of its own that can be killed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mitigate.__main__ import cli

ROOT = Path(__file__).parents[1]
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


def apart(*overrides: str) -> subprocess.CompletedProcess[str]:
    """The finished process."""
    return subprocess.run(_line(overrides), cwd=ROOT, env=_environment(), capture_output=True, text=True)


def killed(when: Callable[[], bool], *overrides: str) -> None:
    """The command, killed with signal 9 as soon as `when` is true."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(_line(overrides), cwd=ROOT, env=_environment(), stdout=said, stderr=said)
        while not when():
            if process.poll() is not None:
                said.seek(0)
                pytest.fail(f"it ended before it could be killed:\n{said.read().decode()}")
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _environment() -> dict[str, str]:
    """Without the address of this process's W&B service, which would outlive the process that is killed."""
    return {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}


def _line(overrides: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "mitigate", *overrides]
