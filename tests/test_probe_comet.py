"""The probe's grid: order, parts, resuming; the beams themselves are held in test_beam.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from refusals import refuses
from shown_steps import Page
from small_models import small_comet

from mitigate.errors import MitigateError
from mitigate.probe.comet import find_devices, probe
from mitigate.progress import listening
from mitigate.stages import PartFolder
from mitigate.triples import PROBED
from models.comet import Comet

TARGETS = pl.DataFrame(
    {"target": ["lawyer", "church", "new zealand"], "category": ["profession", "religion", "origin"]}
)
RELATIONS = [("CapableOf", "is capable of"), ("UsedFor", "is used for"), ("IsA", "is a")]


class KilledError(Exception):
    pass


class Memory:
    """Parts in memory that can be set to fail at one of them."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.frames: dict[int, pl.DataFrame] = {}
        self.saved: list[int] = []
        self.fails_at = fails_at

    def __contains__(self, number: int) -> bool:
        return number in self.frames

    def save(self, number: int, frame: pl.DataFrame) -> None:
        if number == self.fails_at:
            raise KilledError
        self.frames[number] = frame
        self.saved.append(number)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return (self.frames[number] for number in sorted(self.frames))


@pytest.fixture(scope="module")
def comet() -> Comet:
    return small_comet(layers=1, heads=2)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mitigate.probe.comet.PART", 4)


def probed(comet: Comet, parts: Memory | PartFolder | None = None, **how: Any) -> pl.DataFrame:
    parts = Memory() if parts is None else parts
    probe(comet, TARGETS, RELATIONS, parts=parts, **{"beams": 3, "top": 2, "max_length": 4} | how)
    return pl.concat(list(parts))


def test_rows_stand_in_the_order_of_the_grid_and_are_the_beams_of_their_prompts(comet: Comet, tmp_path: Path) -> None:
    parts = Memory()
    rows = probed(comet, parts)
    assert [frame.height for frame in parts] == [8, 8, 2]
    assert rows.schema == pl.Schema(PROBED)
    prompts = [(t, c, r) for t, c in TARGETS.rows() for r, _ in RELATIONS]
    assert rows.select("target", "category", "relation").rows()[::2] == prompts
    assert rows["rank"].to_list() == [1, 2] * 9
    (found,) = comet.search(comet.prompts(["church"], ["is used for"]), beams=3, max_length=4)
    rows = rows.filter(target="church", relation="UsedFor")
    assert rows["tail"].to_list() == [comet.encoding.decode(beam.tokens) for beam in found[:2]]
    assert rows["log_prob"].to_list() == pytest.approx([beam.log_prob for beam in found[:2]], rel=1e-5)
    assert rows["score"].to_list() == pytest.approx([beam.score for beam in found[:2]], rel=1e-5)
    assert probed(comet, PartFolder(tmp_path / "parts"), beams=2, top=1).schema == pl.Schema(PROBED)
    assert probed(comet, beams=2, max_length=3, precision="bf16").height == 18
    assert comet.decoder.token_embedding.weight.dtype == torch.float32


def test_a_killed_probe_goes_on_at_the_missing_part(comet: Comet) -> None:
    broken, steps = Memory(fails_at=1), Page()
    with pytest.raises(KilledError):
        probed(comet, broken)
    broken.fails_at, broken.saved = None, []
    with listening(steps):
        assert_frame_equal(probed(comet, broken), probed(comet), abs_tol=1e-6)
    assert broken.saved == [1, 2]
    step = steps.begun[0]  # nine prompts, in parts of 4, 4 and 1; the first was there
    assert (step.name, step.unit, step.total) == ("probe", "prompts", 9)
    assert (step.before, step.count, step.done) == (4, 5, 9)


@pytest.fixture
def many() -> dict[str, object]:
    """Two parts of the usual size, which processes of their own know."""
    targets = TARGETS[[0, 1, 2] * 8]
    return {"targets": targets, "relations": RELATIONS * 8, "beams": 2, "top": 2, "max_length": 2}


@pytest.mark.thorough
def test_two_processes_answer_as_one(comet: Comet, many: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what two leave undone, one completes."""
    monkeypatch.undo()
    alone, shared = PartFolder(tmp_path / "alone"), PartFolder(tmp_path / "shared")
    probe(comet, parts=alone, **many)
    probe(comet, parts=shared, devices=["cpu", "cpu"], **many)
    files = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert len(files) == 2
    for name in files:
        parts = (pl.read_parquet(tmp_path / place / name) for place in ("shared", "alone"))
        assert_frame_equal(*parts, abs_tol=1e-6)
    (tmp_path / "shared" / files[0]).unlink()
    probe(comet, parts=shared, **many)
    assert_frame_equal(pl.concat(list(shared)), pl.concat(list(alone)), abs_tol=1e-6)


class FullDisk(PartFolder):
    def save(self, number: int, frame: pl.DataFrame) -> None:
        raise MitigateError("the disk is full")


def test_devices_are_found_and_faults_of_processes_are_raised(comet, many, tmp_path, monkeypatch):
    """Takes over 3 s: a process of its own raises one of the faults."""
    assert find_devices("cpu", 3) == ["cpu"] * 3
    refuses(MitigateError, "unknown probe.device 'tpu' ", find_devices, "tpu", 1)
    refuses(MitigateError, "probe.processes=0 must be at least 1", find_devices, "cpu", 0)
    refuses(MitigateError, "the disk is full", probe, comet, parts=FullDisk(tmp_path), devices=["cpu", "cpu"], **many)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(MitigateError, match=r"generator.pt \(No space left on device\), .* set the variable TMPDIR"):
        probe(comet, parts=PartFolder(tmp_path), devices=["cpu", "cpu"], **many)


def test_faults_of_settings_are_named(comet: Comet) -> None:
    refuses(MitigateError, "probe.top=10 must be at least 1 and at most probe.beams=5", probed, comet, top=10, beams=5)
    refuses(MitigateError, "unknown probe.precision 'fp8'; allowed: fp32, bf16", probed, comet, precision="fp8")
    why = (
        "cannot run: a prompt of 5 tokens with tails of 50 needs 54 positions; the decoder has 40 .probe.max_length=50"
    )
    refuses(MitigateError, why, probed, comet, max_length=50)
