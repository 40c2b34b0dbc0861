"""The probe's grid: order, parts, resuming; the beams themselves are held in test_beam.py."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import torch
from shown_steps import Steps

from mitigate.errors import MitigateError
from mitigate.probe import grid
from mitigate.probe.comet import find_devices, probe
from mitigate.progress import listening
from mitigate.store import PartFolder
from mitigate.triples import PROBED
from models.beam import beam_search
from models.comet import Comet
from models.decoder import Decoder, DecoderConfig
from models.encoding import Encoding
from models.minilm import locate

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
    torch.manual_seed(0)
    config = DecoderConfig("minilm", vocab_size=30522, positions=40, width=16, layers=1, heads=2, inner=32)
    return Comet(Decoder(config), Encoding.of_encoder(locate())).eval()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "PART", 4)


def test_rows_stand_in_the_order_of_the_grid(comet: Comet) -> None:
    parts = Memory()
    probe(comet, TARGETS, RELATIONS, parts=parts, beams=3, top=2, max_length=4)
    probed = pl.concat(list(parts))
    assert [frame.height for frame in parts] == [8, 8, 2]
    assert probed.schema == pl.Schema(PROBED)
    asked = [(t, c, r) for t, c in TARGETS.rows() for r, _ in RELATIONS]
    assert probed.select("target", "category", "relation").rows()[::2] == asked
    assert probed["rank"].to_list() == [1, 2] * 9


def test_answers_are_the_beams_of_their_prompts(comet: Comet) -> None:
    parts = Memory()
    probe(comet, TARGETS, RELATIONS, parts=parts, beams=3, top=2, max_length=4)
    probed = pl.concat(list(parts)).filter(target="church", relation="UsedFor")
    (found,) = beam_search(
        comet.decoder, comet.prompts(["church"], ["is used for"]), end=comet.encoding.end, beams=3, max_length=4
    )
    assert probed["tail"].to_list() == [comet.encoding.decode(beam.tokens) for beam in found[:2]]
    assert probed["log_prob"].to_list() == pytest.approx([beam.log_prob for beam in found[:2]], rel=1e-5)
    assert probed["score"].to_list() == pytest.approx([beam.score for beam in found[:2]], rel=1e-5)


def test_a_killed_probe_goes_on_at_the_missing_part(comet: Comet) -> None:
    whole, broken = Memory(), Memory(fails_at=1)
    settings = {"beams": 3, "top": 3, "max_length": 4}
    probe(comet, TARGETS, RELATIONS, parts=whole, **settings)
    with pytest.raises(KilledError):
        probe(comet, TARGETS, RELATIONS, parts=broken, **settings)
    broken.fails_at, broken.saved = None, []
    steps = Steps()
    with listening(steps):
        probe(comet, TARGETS, RELATIONS, parts=broken, **settings)
    assert broken.saved == [1, 2]
    (step,) = steps.begun  # nine prompts, in parts of 4, 4 and 1; the first was there
    assert (step.name, step.unit, step.total) == ("probe", "prompts", 9)
    assert (step.before, step.count, step.done) == (4, 5, 9)
    assert pl.concat(list(broken)).equals(pl.concat(list(whole)))


@pytest.mark.parametrize(
    ("training", "longest", "why"),
    [
        (True, 4, "the decoder is in training mode, where dropout changes what it says; call eval() first"),
        (False, 50, "a prompt of 5 tokens with tails of 50 needs 54 positions; the decoder has 40"),
    ],
)
def test_why_a_generator_cannot_be_asked_is_told(comet: Comet, training: bool, longest: int, why: str) -> None:
    comet.train(training)
    try:
        with pytest.raises(MitigateError) as told:
            probe(comet, TARGETS, RELATIONS, parts=Memory(), max_length=longest)
    finally:
        comet.eval()
    assert str(told.value) == f"the generator cannot be asked: {why} (probe.max_length={longest})"


def test_parts_of_a_run_folder(comet: Comet, tmp_path) -> None:
    parts = PartFolder(tmp_path / "parts")
    probe(comet, TARGETS, RELATIONS, parts=parts, beams=2, top=1, max_length=2)
    assert pl.concat(list(parts)).schema == pl.Schema(PROBED)


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
        assert (tmp_path / "shared" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    (tmp_path / "shared" / files[0]).unlink()
    probe(comet, parts=shared, **many)
    assert pl.concat(list(shared)).equals(pl.concat(list(alone)))


class FullDisk(PartFolder):
    def save(self, number: int, frame: pl.DataFrame) -> None:
        raise MitigateError("the disk is full")


def test_a_fault_in_a_process_is_raised_here(comet: Comet, many: dict, tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="the disk is full"):
        probe(comet, parts=FullDisk(tmp_path), devices=["cpu", "cpu"], **many)


def test_a_full_temporary_folder_is_named_with_the_way_to_another(
    comet: Comet, many: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(MitigateError, match=r"generator.pt \(No space left on device\), .* by the variable TMPDIR"):
        probe(comet, parts=PartFolder(tmp_path), devices=["cpu", "cpu"], **many)


def test_devices_are_found_or_named() -> None:
    assert find_devices("cpu", 3) == ["cpu"] * 3
    with pytest.raises(MitigateError, match="unknown probe.device 'tpu'; allowed: auto, cpu, cuda"):
        find_devices("tpu", 1)
    with pytest.raises(MitigateError, match="probe.processes=0 must be at least 1"):
        find_devices("cpu", 0)


def test_bf16_leaves_the_generator_as_it_was(comet: Comet) -> None:
    parts = Memory()
    probe(comet, TARGETS, RELATIONS, parts=parts, beams=2, top=2, max_length=3, precision="bf16")
    assert pl.concat(list(parts)).height == 18
    assert comet.decoder.words.weight.dtype == torch.float32


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beams": 5}, "probe.top=10 must be at least 1 and at most probe.beams=5"),
        ({"precision": "fp8"}, "unknown probe.precision 'fp8'; allowed: fp32, bf16"),
    ],
)
def test_faults_of_settings_are_named(comet: Comet, settings: dict, message: str) -> None:
    with pytest.raises(MitigateError, match=message):
        probe(comet, TARGETS, RELATIONS, parts=Memory(), **settings)
