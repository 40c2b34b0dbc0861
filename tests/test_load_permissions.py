"""Files that are there and cannot be opened: each is called what it is, not damaged."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load.lines import read_lines
from mitigate.load.ratings import _table as read_ratings
from mitigate.load.stream import text_blocks
from mitigate.load.table import open_table


def lines(path: Path) -> object:
    return read_lines(path, "a line")


def blocks(path: Path) -> object:
    return list(text_blocks(path))


def parquet(path: Path) -> object:
    return open_table(path, {"head": "head"})


@pytest.mark.parametrize("read", [lines, blocks, parquet, read_ratings])
def test_a_file_that_may_not_be_read(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:  # a stand-in, since the system lets root read everything
        raise PermissionError(13, "Permission denied")

    for name in ("open", "read_bytes", "read_text"):
        monkeypatch.setattr(Path, name, refuse)
    monkeypatch.setattr(pl, "scan_parquet", refuse)
    with pytest.raises(MitigateError) as caught:
        read(tmp_path / "data.parquet")
    assert str(caught.value) == (
        f"{tmp_path}/data.parquet is there and may not be read (permission denied); have its owner allow it: "
        f"chmod +r {tmp_path}/data.parquet"
    )


@pytest.mark.parametrize("read", [lines, blocks, read_ratings])
def test_a_folder_is_no_file(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="is a folder; give a file"):
        read(tmp_path)
