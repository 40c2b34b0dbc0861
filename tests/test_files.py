from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.files import replacing, write


def test_text_and_bytes_in_folders_that_are_made(tmp_path: Path) -> None:
    assert write(tmp_path / "a" / "b.txt", "é").read_bytes() == "é".encode()
    assert write(tmp_path / "a" / "b.txt", b"x").read_bytes() == b"x"


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.json"
    write(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MitigateError, match="No space left on device"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.json"]


def test_what_is_stopped_half_way_leaves_nothing(tmp_path: Path) -> None:
    def stop() -> None:
        with replacing(tmp_path / "metrics.json") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert list(tmp_path.iterdir()) == []
