"""Stages of a run folder: what is computed once, again or never, and what a manifest and parts say of it."""

import json
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.runs.files import as_json, read_json, replacing, write
from mitigate.runs.fingerprints import as_parquet
from mitigate.runs.store import (
    BusyError,
    NotComputedError,
    PartFolder,
    Result,
    Run,
    Work,
    tidy,
    wait_for,
)

TIMES: list[object] = []  # the values that `one_row` was called with


def one_row(value: object = None, *, x: int = 1, told: list[str] | None = None) -> pl.DataFrame:
    """A stage's function: a table of one row."""
    TIMES.append(value)
    if told is not None:
        told.append("called")
    return pl.DataFrame({"a": [x]})


@pytest.fixture
def run(tmp_path: Path):
    TIMES.clear()
    run = Run(tmp_path / "run")
    yield run
    run.close()


def test_a_stage_is_computed_once_and_leaves_no_record_when_it_fails(run: Run) -> None:
    first = run.stage("score", one_row, x=1)
    second = run.stage("score", one_row, x=1)
    assert len(TIMES) == 1
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first.digest == second.digest
    assert second.table().rows() == [(1,)]
    with pytest.raises(RuntimeError):
        run.stage("train", failing)
    assert not (run.folder / "stages" / "train.json").exists()


def leaves_a_folder(folder: Path, x: int = 1) -> dict[str, int]:
    """A stage's function that leaves a folder with a file."""
    TIMES.append(x)
    write(folder / "model" / "weights", str(x))
    return {"steps": x}


def trained(folder: Path, x: int = 1, dry: bool = False) -> tuple[Result, bool]:
    """The result of a stage `train` in a run folder, and whether the run counts as finished."""
    run = Run(folder, dry=dry)
    result = run.stage("train", leaves_a_folder, x=x, using={"folder": folder}, leaves=["model"])
    finished = run.finished()
    run.close()
    return result, finished


def test_a_run_takes_a_result_from_a_run_beside_it(tmp_path: Path) -> None:
    TIMES.clear()
    first, _ = trained(tmp_path / "first")
    write(tmp_path / "second" / "model" / "of a killed training", "0")
    rehearsed, finished = trained(tmp_path / "second", dry=True)
    assert (rehearsed.origin, rehearsed.pending, finished) == ("first", False, False)
    second, _ = trained(tmp_path / "second")
    third, _ = trained(tmp_path / "third")
    assert TIMES == [1]
    assert (first.origin, second.origin) == (None, "first")
    assert third.origin == "first"  # the run that computed it, not the one that it was copied from
    assert first.digest == second.digest == rehearsed.digest
    assert [path.name for path in (tmp_path / "second" / "model").iterdir()] == ["weights"]
    assert trained(tmp_path / "second")[0].origin == "first"
    assert trained(tmp_path / "elsewhere" / "run")[0].origin is None


def test_a_run_takes_no_other_or_damaged_result_from_a_run_beside_it(tmp_path: Path) -> None:
    TIMES.clear()
    trained(tmp_path / "first")
    assert trained(tmp_path / "second", x=2)[0].origin is None
    write(tmp_path / "first" / "model" / "weights", "damaged")
    assert trained(tmp_path / "third")[0].origin is None
    assert TIMES == [1, 2, 1]
    write(tmp_path / "third" / "model" / "weights", "damaged")
    run = Run(tmp_path / "third", dry=True)
    run.stage("train", leaves_a_folder, x=1, using={"folder": run.folder}, leaves=["model"])
    assert run.results[0].pending


def test_brackets_in_a_folders_name_stand_for_themselves(tmp_path: Path) -> None:
    """To polars `run[1]` is a pattern that `run1` matches."""
    results = []
    for number, name in enumerate(("run[1]", "run1")):
        run = Run(tmp_path / name)
        results.append(run.stage("score", one_row, x=number))
        run.close()
    assert [result.table().item() for result in results] == [0, 1]


@pytest.mark.parametrize(
    "change", [{"x": 2}, {"value": "given"}, {"value": pl.DataFrame({"b": [1]})}], ids=["setting", "value", "table"]
)
def test_a_stage_runs_again_when_its_arguments_change(run: Run, change: dict) -> None:
    run.stage("score", one_row, x=1)
    run.stage("score", one_row, **{"x": 1} | change)
    assert len(TIMES) == 2


def test_a_result_is_handed_over_as_its_table_or_counts_without_being_handed_over(run: Run) -> None:
    first = run.stage("score", one_row, x=1)
    run.stage("ledger", one_row, first)
    assert TIMES[1].rows() == [(1,)]  # type: ignore[attr-defined]
    other = Result("score", first.path, "another digest", 0.0, 0, False)
    run.stage("ledger", one_row, other)
    assert len(TIMES) == 3
    for after in ([first], [first], []):
        run.stage("ledger", one_row, after=after)
    assert TIMES[3:] == [None, None]


def test_a_result_does_not_depend_on_what_its_stage_uses(run: Run) -> None:
    told: list[str] = []
    run.stage("score", one_row, using={"told": told})
    run.stage("score", one_row, using={"told": []})
    assert told == ["called"]
    refuses(TypeError, "a result cannot depend on .*Path.*goes into `using`", run.stage, "score", one_row, run.folder)


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b"\xff\xfe", b'{"code": 1}', b'{"files": []}'])
def test_a_damaged_record_is_no_record(run: Run, content: bytes) -> None:
    run.stage("score", one_row)
    (run.folder / "stages" / "score.json").write_bytes(content)
    assert not run.stage("score", one_row).from_cache
    result = run.stage("score", one_row)
    assert result.from_cache
    result.path.write_bytes(b"cut off")
    assert run.stage("score", one_row).table().rows() == [(1,)]
    assert len(TIMES) == 3


def leaving(folder: Path) -> dict[str, Any]:
    """A stage's function that leaves a file of its own, and another that it needs only on the way."""
    write(folder / "model" / "weights", b"heavy")
    write(folder / "checkpoints" / "last", b"half way")
    return {"steps": 3}


def in_folder(work: Work) -> dict[str, Any]:
    return {"folder": work.folder}


def test_files_a_stage_leaves_are_part_of_its_result(run: Run) -> None:
    first = run.stage("train", leaving, using=in_folder, leaves=["model"])
    assert first.facts() == {"steps": 3}
    (run.folder / "model" / "weights").write_bytes(b"light")
    assert not run.stage("train", leaving, using=in_folder, leaves=["model"]).from_cache
    assert (run.folder / "model" / "weights").read_bytes() == b"heavy"


def test_scratch_files_are_removed_after_the_record(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill in between, the next time."""

    monkeypatch.setattr(leaving, "version", "1", raising=False)

    def killed(*_: object) -> None:
        assert (run.folder / "stages" / "train.json").is_file()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            run.stage("train", leaving, using=in_folder, leaves=["model"], scratch=["checkpoints"])
    assert (run.folder / "checkpoints" / "last").is_file()
    assert run.stage("train", leaving, using=in_folder, leaves=["model"], scratch=["checkpoints"]).from_cache
    assert not (run.folder / "checkpoints").exists()


def failing() -> dict[str, Any]:
    """A stage's function that fails."""
    raise RuntimeError("killed")


def test_a_result_stays_though_its_code_changed_where_the_user_says_so(run: Run, monkeypatch) -> None:
    first = run.stage("train", one_row, may_be_kept=True)
    run.close()
    monkeypatch.setattr("mitigate.runs.store.digest_of_stage", lambda *_: "edited")
    assert Run(run.folder, dry=True).stage("train", one_row, may_be_kept=True).pending
    keeping = Run(run.folder, keep_code=True)
    kept = keeping.stage("train", one_row, may_be_kept=True)
    assert (kept.from_cache, kept.kept, kept.digest) == (True, True, first.digest)
    assert not keeping.stage("train", one_row).from_cache  # of a stage that does not allow it
    keeping.close()
    assert len(TIMES) == 2


def test_a_rehearsal_traces_the_stages_that_are_to_be_run(run: Run) -> None:
    """All that depends on a pending stage is pending; what does not depend on it is read."""

    def stages(run: Run, size: int) -> list[Result]:
        first = run.stage("train", one_row, x=size)
        return [
            first,
            run.stage("probe", one_row, first),
            run.stage("other", one_row),
            run.stage("last", one_row, after=[first]),
        ]

    done = [result.digest for result in stages(run, 1)]
    run.finish({})
    same, changed = Run(run.folder, dry=True), Run(run.folder, dry=True)
    assert [result.digest for result in stages(same, 1)] == done
    assert [result.stage for result in stages(changed, 2) if result.pending] == ["train", "probe", "last"]
    assert (same.finished(), changed.finished()) == (True, False)
    refuses(NotComputedError, "probe", changed.results[1].table)
    assert len(TIMES) == 4


@pytest.fixture
def finished(run: Run) -> Run:
    """A run of one stage, with its manifest."""
    run.stage("score", one_row)
    run.finish({"seed": 1})
    return run


def manifest_of(run: Run) -> dict[str, Any]:
    manifest = read_json(run.folder / "manifest.json")
    assert manifest is not None
    return manifest


def test_a_manifest_lists_files_and_goes_when_something_is_computed_anew(finished: Run) -> None:
    assert manifest_of(finished)["seed"] == 1
    assert set(manifest_of(finished)["files"]) == {"score.parquet", "stages/score.json"}
    finished.stage("score", one_row)
    assert finished.finished()
    finished.stage("score", one_row, "other")
    assert not finished.finished()


@pytest.mark.parametrize("content", [None, "", "a,b"])
def test_a_table_that_no_stage_wrote_is_looked_at_too(content: str | None, run: Run) -> None:
    run.stage("score", one_row)
    for name in ("table.csv", "config.yaml"):
        (run.folder / name).write_text("a,c")
    run.finish({})
    again = Run(run.folder, dry=True)
    again.stage("score", one_row)
    assert again.finished()
    (run.folder / "config.yaml").unlink()  # which is written anew by itself
    assert again.finished()
    (run.folder / "table.csv").unlink()
    if content is not None:
        (run.folder / "table.csv").write_text(content)
    assert not again.finished()


def test_a_file_that_is_being_written_is_not_in_the_manifest(run: Run) -> None:
    """Such as the status, which a thread of the same process writes every two seconds."""
    run.stage("score", one_row)
    with replacing(run.folder / "status.json"):
        run.finish({})
    assert set(manifest_of(run)["files"]) == {"score.parquet", "stages/score.json"}
    (run.folder / "manifest.json").write_text(json.dumps({"files": {".status.json.1.part": None}}))
    assert not run.finished()


def test_a_place_that_cannot_be_written_and_a_folder_that_another_process_holds(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("in the way")
    refuses(MitigateError, "cannot write to .*paths.outputs=DIR", Run, tmp_path / "file" / "run")
    refuses(BusyError, "another process is working on", Run, run.folder)
    threading.Timer(0.2, run.close).start()
    wait_for(run.folder)
    Run(run.folder).close()


def test_damaged_and_changed_manifests_and_records_are_found(tmp_path: Path, finished: Run) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"a": 1})[:-1])
    assert read_json(tmp_path / "a.json") is None
    assert read_json(tmp_path / "absent.json") is None
    (finished.folder / "manifest.json").write_text("{}")
    assert not finished.finished()


def test_a_file_that_a_kill_left_half_written_goes_unless_another_process_works_there(run: Run) -> None:
    half = run.folder / ".status.json.99999999.part"  # no system gives a process that number
    half.write_text("{")
    tidy(run.folder)
    assert half.exists()
    run.close()
    tidy(run.folder)
    assert not half.exists()


def test_a_changed_number_of_a_manifest_or_a_record_is_found(finished: Run) -> None:
    """Nothing else would tell of a bit that flips in a number."""
    record, manifest = finished.folder / "stages" / "score.json", finished.folder / "manifest.json"
    assert finished.finished()
    manifest.write_text(manifest.read_text().replace('"seed": 1', '"seed": 3'))
    assert not finished.finished()
    assert finished.stage("score", one_row).from_cache
    record.write_text(record.read_text().replace('"seconds": 0', '"seconds": 1'))
    assert not finished.stage("score", one_row).from_cache


def test_results_that_earlier_code_left_without_a_hash_are_read(finished: Run) -> None:
    for path in (finished.folder / "stages" / "score.json", finished.folder / "manifest.json"):
        content = read_json(path)
        assert content is not None
        path.write_bytes(as_json({name: value for name, value in content.items() if name != "sha256"}))
    assert finished.finished()
    assert finished.stage("score", one_row).from_cache


def numbers(folder: Path, result: str = "first", *saved: int) -> list[int]:
    """The parts of a result in a folder, once these numbers are saved."""
    parts = PartFolder(folder, result)
    for number in saved:
        parts.save(number, pl.DataFrame({"number": [number]}))
    return [frame["number"].item() for frame in PartFolder(folder, result)]


def test_parts_come_back_in_order_without_damaged_ones_and_those_of_another_result(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    assert numbers(folder, "first", 2, 0, 11) == [0, 2, 11]
    parts = PartFolder(folder, "first")
    assert 2 in parts
    assert 1 not in parts
    damaged = next(folder.glob("000002-*"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    assert numbers(folder) == [0, 11]
    assert numbers(folder, "second") == []
    assert numbers(folder) == []
    parts.remove()
    assert not folder.exists()


def test_a_table_has_the_same_bytes_however_it_came_together(tmp_path: Path) -> None:
    """Warm or cold, a label cache gives the same rows in other chunks."""
    whole = pl.DataFrame({"a": list(range(1000)), "b": ["x"] * 1000})
    pieces = pl.concat([whole.head(300), whole.slice(300)], rechunk=False)
    assert pieces.n_chunks() == 2
    assert as_parquet(pieces) == as_parquet(whole)
