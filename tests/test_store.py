import json
import threading
from pathlib import Path

import polars as pl
import pytest

from mitigate import filter as some_module
from mitigate import verbalise as other_module
from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.store import BusyError, PartFolder, Run, read_json, wait_for


@pytest.fixture
def run(tmp_path: Path):
    run = Run(tmp_path / "run")
    yield run
    run.close()


class Counting:
    """Computes a table of one row, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, fingerprint: str) -> pl.DataFrame:
        self.times += 1
        return pl.DataFrame({"a": [1]})


def test_a_stage_is_computed_once(run: Run) -> None:
    compute = Counting()
    first = run.stage("score", compute, settings={"x": 1})
    second = run.stage("score", compute, settings={"x": 1})
    assert compute.times == 1
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first.digest == second.digest
    assert second.table().rows() == [(1,)]


@pytest.mark.parametrize(
    "change",
    [{"settings": {"x": 2}}, {"needs": ["other"]}, {"code": [other_module]}],
    ids=["settings", "needs", "code"],
)
def test_what_a_stage_depends_on_makes_it_run_again(run: Run, change: dict) -> None:
    compute = Counting()
    given = {"settings": {"x": 1}, "needs": ["input"], "code": [some_module]}
    run.stage("score", compute, **given)
    run.stage("score", compute, **given | change)
    assert compute.times == 2


def test_a_damaged_result_is_computed_again(run: Run) -> None:
    compute = Counting()
    result = run.stage("score", compute)
    result.path.write_bytes(b"cut off")
    assert run.stage("score", compute).table().rows() == [(1,)]
    assert compute.times == 2


def test_files_a_stage_leaves_are_part_of_its_result(run: Run) -> None:
    def compute(fingerprint: str) -> dict:
        write(run.folder / "model" / "weights", b"heavy")
        return {"steps": 3}

    first = run.stage("train", compute, leaves=["model"])
    assert first.facts() == {"steps": 3}
    (run.folder / "model" / "weights").write_bytes(b"light")
    assert not run.stage("train", compute, leaves=["model"]).from_cache
    assert (run.folder / "model" / "weights").read_bytes() == b"heavy"


def test_a_failed_stage_leaves_no_record(run: Run) -> None:
    def fail(fingerprint: str) -> dict:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        run.stage("train", fail)
    assert run.known("train", run.fingerprint("train", [], None, [])) is None


def test_manifest_lists_files_and_goes_when_something_is_computed_anew(run: Run) -> None:
    run.stage("score", Counting())
    run.finish({"seed": 1})
    manifest = read_json(run.folder / "manifest.json")
    assert manifest is not None
    assert manifest["seed"] == 1
    assert set(manifest["files"]) == {"score.parquet", "stages/score.json"}
    run.stage("score", Counting())
    assert run.finished()
    run.stage("score", Counting(), settings="other")
    assert not run.finished()


def test_two_processes_cannot_hold_one_folder(run: Run) -> None:
    with pytest.raises(BusyError, match="another process is working on"):
        Run(run.folder)


def test_one_can_wait_until_the_other_process_has_ended(run: Run) -> None:
    threading.Timer(0.2, run.close).start()
    wait_for(run.folder)
    Run(run.folder).close()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MitigateError, match="cannot write to .*paths.outputs=DIR"):
        Run(tmp_path / "file" / "run")


def test_a_cut_off_record_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"a": 1})[:-1])
    assert read_json(tmp_path / "a.json") is None
    assert read_json(tmp_path / "absent.json") is None


def test_parts_come_back_in_order(tmp_path: Path) -> None:
    parts = PartFolder(tmp_path / "parts")
    for number in (2, 0, 11):
        parts.save(number, pl.DataFrame({"number": [number]}))
    assert 2 in parts
    assert 1 not in parts
    assert [frame["number"].item() for frame in PartFolder(tmp_path / "parts")] == [0, 2, 11]
    parts.remove()
    assert not (tmp_path / "parts").exists()
