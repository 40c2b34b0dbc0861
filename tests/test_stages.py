"""Stages of a run folder: what is computed once, again or never, whatever happens to files and processes."""

import json
import os
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from shown_steps import shown

from mitigate import files, stages
from mitigate.files import write
from mitigate.stages import MissingError, Run, Work, digest_of_values, plain

CALLS: list[object] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def one_row(value: object = None, *, x: int = 1, told: list[str] | None = None) -> pl.DataFrame:
    """A stage's function: a table of one row."""
    CALLS.append(value)
    if told is not None:
        told.append("called")
    return pl.DataFrame({"a": [x]})


def trained(folder: Path, x: int = 1) -> dict[str, int]:
    """A stage's function that leaves a folder with a file, and a checkpoint."""
    CALLS.append(x)
    write(folder / "model" / "weights", str(x))
    write(folder / "checkpoints" / "last", str(x))
    return {"steps": x}


def failing() -> dict[str, int]:
    raise RuntimeError("stopped in the middle")


def in_place(work: Work) -> dict[str, Any]:
    return {"folder": work.folder}


@pytest.fixture
def run(tmp_path: Path):
    run = Run(tmp_path / "run")
    yield run
    run.close()


def train(folder: Path, x: int = 1, dry: bool = False) -> stages.Result:
    """The result of a stage `train` in a run folder."""
    run = Run(folder, dry=dry)
    try:
        return run.stage("train", trained, x=x, using=in_place)
    finally:
        run.close()


def test_a_stage_is_computed_once_with_the_same_arguments_and_stored_only_when_it_succeeds(run: Run) -> None:
    first, second = run.stage("score", one_row, x=1), run.stage("score", one_row, x=1)
    assert len(CALLS) == 1
    assert (first.from_cache, second.from_cache, first.digest) == (False, True, second.digest)
    assert second.table().rows() == pl.read_parquet(run.folder / "score.parquet").rows() == [(1,)]
    for _ in range(2):
        with pytest.raises(RuntimeError):
            run.stage("train", failing)
    for number, change in enumerate(({"x": 2}, {"value": "given"}, {"value": pl.DataFrame({"b": [1]})}), start=2):
        run.stage("score", one_row, **{"x": 1} | change)
        assert len(CALLS) == number


def test_the_digest_of_the_package_has_every_file_and_version(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(stages, "__file__", str(tmp_path / "mitigate" / "stages.py"))
    (tmp_path / "mitigate").mkdir()
    (tmp_path / "mitigate" / "models").symlink_to(tmp_path / "models")  # as in a checkout
    compute, seen = stages.package_digest.__wrapped__, set()
    for number, name in enumerate(("mitigate/a.py", "mitigate/data/b.csv", "models/c.py", "mitigate/a.py"), start=1):
        write(tmp_path / name, f"# a comment {number}")
        seen.add(compute())
        assert len(seen) == number
    write(tmp_path / "mitigate/__pycache__/a.pyc", "compiled")
    assert compute() in seen
    monkeypatch.setattr(stages.metadata, "version", lambda name: "9")
    assert compute() not in seen


def test_runs_share_results_and_keep_them_without_the_store(tmp_path: Path) -> None:
    first, second = train(tmp_path / "first"), train(tmp_path / "second")
    assert CALLS == [1]
    assert first.digest == second.digest
    assert (tmp_path / "second" / "model" / "weights").read_text() == "1"
    assert not list(tmp_path.rglob("checkpoints"))
    files.shutil.rmtree(tmp_path / stages.STORE)
    assert (tmp_path / "second" / "model" / "weights").read_text() == "1"
    train(tmp_path / "second")
    assert CALLS == [1, 1]


@pytest.mark.parametrize("name", ["model/weights", "train.json", stages.RECORD])
@pytest.mark.parametrize("damage", ["deleted", "truncated", "swapped"])
def test_a_damaged_entry_is_computed_again(tmp_path: Path, name: str, damage: str) -> None:
    entry = train(tmp_path / "run").folder
    other = train(tmp_path / "other", x=2).folder
    path = entry / name
    content = {"truncated": path.read_bytes()[:-2], "swapped": (other / name).read_bytes()}
    path.unlink()
    if damage != "deleted":
        path.write_bytes(content[damage])
    assert train(tmp_path / "run").facts() == {"steps": 1}
    assert CALLS == [1, 2, 1]
    assert (tmp_path / "run" / "model" / "weights").read_text() == "1"


def test_a_run_is_complete_when_its_manifest_and_all_files_are(tmp_path: Path) -> None:
    def complete() -> bool:
        run = Run(tmp_path / "run")
        run.stage("score", one_row)
        try:
            if found := run.is_complete():
                return found
            run.begin()
            write(run.folder / "table.csv", "a")
            run.finish({"seed": 1})
            return False
        finally:
            run.close()

    assert [complete(), complete()] == [False, True]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert list(manifest["files"]) == ["score.parquet", "table.csv"]
    outside = write(tmp_path / "outside", "")
    foreign = json.dumps(files.sealed({"files": {str(outside): ""}}))
    damaged = json.dumps({**manifest, "seed": 2})
    for path, content in (("table.csv", "b"), ("manifest.json", damaged), ("manifest.json", foreign)):
        write(tmp_path / "run" / path, content)
        assert [complete(), complete()] == [False, True]
    assert (len(CALLS), outside.exists()) == (1, True)


def test_a_dry_run_writes_nothing_and_tells_what_is_missing(tmp_path: Path) -> None:
    missing = train(tmp_path / "run", dry=True)
    assert missing.missing
    assert not any(tmp_path.iterdir())
    with pytest.raises(MissingError, match="train"):
        missing.facts()
    train(tmp_path / "run")
    run = Run(tmp_path / "elsewhere", dry=True)
    known = run.stage("train", trained, x=1, using=in_place)
    assert (known.missing, known.from_cache) == (False, True)
    assert run.stage("score", one_row, known, x=3).missing
    assert run.stage("ledger", one_row, run.results[-1]).missing
    assert not (tmp_path / "elsewhere").exists()


def test_two_runs_that_want_the_same_result_compute_it_once(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow() -> dict[str, int]:
        CALLS.append("slow")
        entered.set()
        leave.wait(10)
        return {"a": 1}

    def work(name: str) -> None:
        run = Run(tmp_path / name)
        run.stage("slow", slow)
        run.close()

    slow.version = "1"  # type: ignore[attr-defined]
    threads = [threading.Thread(target=work, args=(name,)) for name in ("first", "second", "first")]
    with shown() as page:
        threads[0].start()
        assert entered.wait(10)
        for thread in threads[1:]:
            thread.start()
        time.sleep(0.2)
        leave.set()
        for thread in threads:
            thread.join(10)
    assert CALLS == ["slow"]
    assert not any(thread.is_alive() for thread in threads)
    assert (tmp_path / "second" / "slow.json").is_file()
    for what in ("stage slow", "this run"):
        assert f"another process is already working on {what}; waiting for it to finish" in page.notices


def numbered(parts: Any, stop: int) -> dict[str, Any]:
    """A stage's function that saves four parts, and is stopped at one."""
    left = [number for number in range(4) if number not in parts]
    for number in left:
        if number == stop:
            raise KeyboardInterrupt
        parts.save(number, pl.DataFrame({"number": [number]}))
    return {"rows": pl.concat(parts)["number"].to_list(), "done": len(left)}


def test_a_stopped_stage_goes_on_from_its_parts(tmp_path: Path, run: Run) -> None:
    def call(stop: int) -> dict[str, Any]:
        return run.stage("probe", numbered, using=lambda work: {"parts": work.parts(), "stop": stop}).facts()

    with pytest.raises(KeyboardInterrupt):
        call(3)
    (part,) = tmp_path.rglob("000001-*.parquet")
    part.write_bytes(b"damaged")
    assert call(-1) == {"rows": [0, 1, 2, 3], "done": 2}
    assert not list(tmp_path.rglob("000*.parquet"))


@dataclass(frozen=True)
class Settings:
    """Settings of which one does not count."""

    version = "1"
    lr: float
    device: str = "cpu"
    surroundings: ClassVar = ("device",)


for function in (one_row, trained, failing, numbered):
    function.version = "1"  # type: ignore[attr-defined]


class Marked:
    """An object with a fingerprint."""

    def __init__(self, fingerprint: str, name: str = "a") -> None:
        self.fingerprint, self.name = fingerprint, name


def test_values_are_equal_only_where_their_content_is() -> None:
    equal = [
        (Settings(0.1, "cpu"), Settings(0.1, "cuda")),
        (np.float64(1.5), 1.5),
        (pl.DataFrame({"a": [1]}), pl.concat([pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]}).clear()])),
        ({"a", "b"}, {"b", "a"}),
        (Marked("x"), Marked("x")),
    ]
    for one, other in equal:
        assert digest_of_values(one) == digest_of_values(other)
    different: list[Any] = [
        *(Settings(0.1), Settings(0.2), 1, "1", [1], {"a": 1}, {"a": 2}, {1}, b"1", None, True and "yes"),
        *(Marked("x"), Marked("x", "b"), Marked("y"), np.zeros(2), np.zeros((1, 2)), np.zeros(2, np.float32)),
        *(pl.DataFrame({"a": [1]}), pl.DataFrame({"b": [1]}), partial(one_row, 1), partial(one_row, 2)),
        *(one_row, trained, Settings, Marked, json, os),
    ]
    assert len({digest_of_values(value) for value in different}) == len(different)
    with pytest.raises(TypeError, match="a result cannot depend on"):
        plain(Path("a"))
