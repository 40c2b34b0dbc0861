import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

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
    with pytest.raises(MitigateError, match="No space left on device"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.json"]
    monkeypatch.setattr(Path, "unlink", refuse)  # an error of the tidying behind it is not named
    with pytest.raises(
        MitigateError, match=r"metrics.json \(No space left on device\); free some space, or choose ano"
    ):
        write(path, b"new")


@pytest.fixture
def _small_files() -> Iterator[None]:
    """No file may grow beyond 10,000 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def as_torch_in_place(path: Path) -> None:
    with replacing(path) as file:
        torch.save(torch.zeros(100_000), file)


@pytest.mark.usefixtures("_small_files")
@pytest.mark.parametrize("save", [as_torch_in_place])
def test_a_full_disk_is_called_so_whatever_library_writes(save: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "model"
    with (
        pytest.raises(MitigateError, match=r"cannot write .*/model \(.*\); free some space, or choose another"),
        writing(path),
    ):
        save(path)


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
