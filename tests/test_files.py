"""Writes that are whole or leave the old file: on a full disk, by a kill, and wherever Ctrl-C comes."""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
import torch
from refusals import refuses

from mitigate import cli as command_line
from mitigate.errors import MitigateError
from mitigate.files import replacing, replacing_folder, write, writing


def test_text_and_bytes_are_written_and_errors_of_other_places_stay(tmp_path: Path) -> None:
    assert write(tmp_path / "a" / "b.txt", "é").read_bytes() == "é".encode()
    assert write(tmp_path / "a" / "b.txt", b"x").read_bytes() == b"x"
    with pytest.raises(ZeroDivisionError), writing(tmp_path):
        _ = 1 / 0
    with pytest.raises(FileNotFoundError), writing(tmp_path):
        (tmp_path / "absent").read_bytes()


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_write_that_fails_leaves_the_old_file_and_names_the_write(tmp_path, monkeypatch) -> None:
    path = tmp_path / "metrics.json"
    write(path, b"old")
    monkeypatch.setattr("os.fsync", full)
    refuses(MitigateError, "No space left on device", write, path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.json"]
    monkeypatch.setattr(Path, "unlink", refuse)  # an error of the tidying behind it is not named
    refuses(MitigateError, r"metrics.json \(No space left on device\); free some space, or choose", write, path, b"new")


@pytest.fixture
def _small_files() -> Iterator[None]:
    """No file may grow beyond 10,000 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("_small_files")
def test_a_full_disk_is_called_so_whatever_library_writes(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with (
        pytest.raises(MitigateError, match=r"cannot write .*/model \(.*\); free some space, or choose another"),
        writing(path),
        replacing(path) as file,
    ):
        torch.save(torch.zeros(100_000), file)


def replace_folder(folder: Path, content: str) -> None:
    with replacing_folder(folder) as part:
        (part / content).touch()


def test_a_folder_that_is_replaced_outlives_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the old folder is removed, and between two renames."""

    def killed(path: Path, **_: object) -> None:
        if path.exists():
            raise KeyboardInterrupt

    folder = tmp_path / "model"
    replace_folder(folder, "first")
    refuses(MitigateError, r"cannot write .*first/a \(Not a directory\)", replace_folder, folder / "first" / "a", "b")
    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(folder, "second")
    monkeypatch.undo()
    assert [path.name for path in folder.iterdir()] == ["second"]
    replace_folder(folder, "third")
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "third"]
    folder.rename(tmp_path / ".model.old")
    with pytest.raises(KeyboardInterrupt), replacing_folder(folder):
        raise KeyboardInterrupt
    assert [path.name for path in folder.iterdir()] == ["third"]


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


def test_an_error_in_the_place_of_the_interrupt(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise WrappedError("compiling failed") from None

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("mitigate.cli.start", interrupted)
    quiet = ("hydra.run.dir=.", "hydra/job_logging=none", "hydra/hydra_logging=none")
    monkeypatch.setattr(sys, "argv", ["mitigate", *quiet])
    try:
        with pytest.raises(SystemExit) as ended:
            command_line.cli()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130
    said = capsys.readouterr().err
    assert said.startswith("mitigate: Interrupted.")
    assert "Traceback" not in said
