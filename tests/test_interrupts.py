"""Ctrl-C, wherever it comes: the process ends with status 130 and a sentence, and what is written stays whole. And
trainings that end before anything was counted."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import polars as pl
import pytest
import torch
from safetensors.torch import save as as_safetensors

from mitigate import cli as command_line
from mitigate.errors import MitigateError
from mitigate.files import replacing, replacing_folder, write
from mitigate.progress import Showing, Step, listening, progress
from mitigate.stages import as_parquet
from mitigate.train.checkpoints import Checkpoints
from mitigate.train.harness import Progress

TENSORS = {"a": torch.arange(3000.0), "b": torch.ones(40, 40)}
TABLE = pl.DataFrame({"target": ["lawyer", "nurse"] * 500, "label": [0, 1] * 500})


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


def _torch(file: Any) -> None:
    torch.save(TENSORS, file)


def _whole(file: Any) -> None:
    file.write(as_safetensors(TENSORS))


def _parts(file: Any) -> None:
    for part in TABLE.iter_slices(100):
        file.write(as_parquet(part))


@pytest.mark.parametrize("save", [_torch, _whole, _parts])
def test_every_moment_of_a_write(save: Callable[[Any], None], tmp_path: Path) -> None:
    path = write(tmp_path / "result", b"old")
    for number in count():
        try:
            with replacing(path) as file:
                interrupting = Interrupting(file, number)
                save(interrupting)
        except KeyboardInterrupt:
            assert path.read_bytes() == b"old"
            assert [left.name for left in tmp_path.iterdir()] == ["result"]
        else:
            assert interrupting.left < sys.maxsize  # no interrupt was swallowed
            break
    assert number > 0
    assert path.read_bytes() != b"old"


def test_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path, "mine")
    checkpoints.save_checkpoint({"step": 1, **TENSORS}, checkpoints.last)
    saving = torch.save
    for number in (0, 1, 3, 5):
        monkeypatch.setattr(
            "mitigate.train.checkpoints.torch.save",
            lambda content, file, number=number: saving(content, cast(Any, Interrupting(file, number))),
        )
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save_checkpoint({"step": 2, **TENSORS}, checkpoints.last)
        newest = checkpoints.newest()
        assert newest == checkpoints.last
        assert checkpoints.load_checkpoint(newest)["step"] == 1


def test_a_folder_that_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with replacing_folder(folder) as part:
        (part / "weights").write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing_folder(folder) as part, (part / "weights").open("wb") as file:
        torch.save(TENSORS, cast(Any, Interrupting(file, 2)))
    assert (folder / "weights").read_text() == "old"


class WrappedError(Exception):
    """How a library words what happened in it."""


@pytest.mark.parametrize("how", ["cause", "context", "hidden", "twice", "mitigate"])
def test_an_error_in_the_place_of_the_interrupt(
    how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            if how == "cause":
                raise WrappedError("compiling failed") from stop
            if how == "context":
                raise WrappedError("compiling failed")  # noqa: B904
            if how == "hidden":
                raise WrappedError("compiling failed") from None
            if how == "mitigate":
                raise MitigateError("the scorer failed") from stop
            try:
                raise WrappedError("compiling failed")
            except WrappedError as error:
                raise WrappedError("the stage failed") from ValueError(error)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("mitigate.cli.compute", interrupted)
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


def test_a_second_ctrl_c_while_python_ends(tmp_path: Path) -> None:
    """It ends the process at once, with the same status and without a traceback."""
    process = os.fork()
    if not process:
        status = 1
        try:
            os.dup2(os.open(tmp_path / "said", os.O_WRONLY | os.O_CREAT), 2)
            command_line.run = _stopped
            try:
                command_line.cli()
            except SystemExit:
                os.kill(os.getpid(), signal.SIGINT)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130


def _stopped(_: object) -> None:
    raise KeyboardInterrupt


class Module:
    """Of a training module what Progress reads."""

    steps = 6

    def __init__(self) -> None:
        self.batches = SimpleNamespace(size=4.0)


@pytest.mark.parametrize(("seconds", "steps", "pace"), [(0.0, 0, 0.0), (0.0, 5, 0.0), (2.0, 5, 10.0)])
def test_the_pace_of_a_training_that_ends_early(seconds: float, steps: int, pace: float) -> None:
    counts = Progress(cast(Any, Module()), None, cast(Any, None))
    counts.seconds = seconds
    assert counts.rate(steps) == pace


def test_a_training_that_stops_early_counts_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 12.0])
    monkeypatch.setattr("mitigate.train.harness.time.monotonic", lambda: next(now))
    counts = Progress(cast(Any, Module()), None, cast(Any, None))
    counts.since = 10.0
    next(now)
    counts.on_train_end(cast(Any, None), cast(Any, None))
    assert counts.rate(5) == 10.0


@pytest.mark.parametrize("total", [0.0, 1.0, 5.0])
def test_lines_of_progress_before_anything_is_known(
    total: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mitigate.progress.time.monotonic", lambda: 7.0)
    shown = Showing(every=-1.0)
    with listening(shown), progress("score", total, "texts") as advance:
        advance(0)
        advance(3)
    assert capsys.readouterr().out == ""  # no time has passed: there is no pace
    assert Step("score", total, "texts").share == (0.0 if total else 1.0)
