"""Run folders that earlier versions left are compared as those of this one."""

import json
from pathlib import Path

import pytest
from command import here

RUNS = Path(__file__).with_name("runs")
VERSIONS = sorted(path.name for path in RUNS.iterdir())


@pytest.fixture(params=VERSIONS)
def kept(request: pytest.FixtureRequest) -> Path:
    return RUNS / request.param


def test_they_are_compared(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison runs as a whole, which takes seconds: all files of kept runs are read."""
    runs = f"{kept / 'none'},{kept / 'both'}"
    where = [f"paths.outputs={tmp_path / 'out'}", f"paths.cache={tmp_path / 'cache'}", "tracking=none"]
    assert here(monkeypatch, "recipe=compare", f"compare.runs=[{runs}]", "measure.resamples=100", *where) == 0
    (folder,) = (tmp_path / "out").glob("[!.]*")
    assert json.loads((folder / "comparison.json").read_text())
    assert (folder / "comparison.html").is_file()
