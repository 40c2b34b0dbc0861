"""Ctrl-C, wherever it comes: the process ends with status 130 and a sentence, and what is written stays whole."""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
import torch

from mitigate import cli as command_line
from mitigate.files import replacing, write

TENSORS = {"a": torch.arange(3000.0), "b": torch.ones(40, 40)}


@pytest.fixture(autouse=True)
def _interrupts_are_raised() -> Iterator[None]:
    """Also in a process that was started to ignore Ctrl-C, such as a background job of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting:
    """A file whose n-th operation is interrupted by Ctrl-C."""

    def __init__(self, file: BinaryIO, number: int) -> None:
        self.file, self.left = file, number

    def write(self, content: Any) -> int:
        self._count()
        return self.file.write(content)

    def flush(self) -> None:
        self._count()
        self.file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.left = sys.maxsize
            os.kill(os.getpid(), signal.SIGINT)


def test_every_moment_of_a_write(tmp_path: Path) -> None:
    path = write(tmp_path / "result", b"old")
    for number in count():
        try:
            with replacing(path) as file:
                interrupting = Interrupting(file, number)
                torch.save(TENSORS, cast(Any, interrupting))
        except KeyboardInterrupt:
            assert path.read_bytes() == b"old"
            assert [left.name for left in tmp_path.iterdir()] == ["result"]
        else:
            assert interrupting.left < sys.maxsize  # no interrupt was swallowed
            break
    assert number > 0
    assert path.read_bytes() != b"old"


class WrappedError(Exception):
    """How a library words what happened in it."""


def test_an_error_in_the_place_of_the_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise WrappedError("compiling failed") from None

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("mitigate.cli.start", interrupted)
    monkeypatch.setattr(
        sys, "argv", ["mitigate", "hydra.run.dir=.", "hydra/job_logging=none", "hydra/hydra_logging=none"]
    )
    try:
        with pytest.raises(SystemExit) as ended:
            command_line.cli()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130
    said = capsys.readouterr().err
    assert said.startswith("mitigate: Interrupted.")
    assert "Traceback" not in said
