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
from mitigate.models.comet import Comet
from mitigate.probe.beams import probe_generator
from mitigate.progress import listening
from mitigate.stages import PartFolder
from mitigate.triples import PROBED

TARGETS = pl.DataFrame(
    {"target": ["lawyer", "church", "new zealand"], "category": ["profession", "religion", "origin"]}
)
RELATIONS = {"CapableOf": "is capable of", "UsedFor": "is used for", "IsA": "is a"}


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
    monkeypatch.setattr("mitigate.probe.beams.PART", 4)


def probed(comet: Comet, parts: Memory | PartFolder | None = None, **how: Any) -> pl.DataFrame:
    return probe_generator(comet, TARGETS, RELATIONS, parts=parts, **{"beams": 3, "top": 2, "max_length": 4} | how)


def test_rows_stand_in_the_order_of_the_grid_and_are_the_beams_of_their_prompts(comet: Comet, tmp_path: Path) -> None:
    parts = Memory()
    rows = probed(comet, parts)
    assert [frame.height for frame in parts] == [8, 8, 2]
    assert rows.schema == pl.Schema(PROBED)
    prompts = [(t, c, r) for t, c in TARGETS.rows() for r in RELATIONS]
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


def test_faults_of_settings_are_named(comet: Comet) -> None:
    refuses(MitigateError, "probe.top=10 must be at least 1 and at most probe.beams=5", probed, comet, top=10, beams=5)
    refuses(MitigateError, "the probe has no targets or no relations", probe_generator, comet, TARGETS.clear(), ["IsA"])
    why = "cannot run: a prompt of 5 tokens with tails of 50 needs 54 positions; the decoder has 40"
    refuses(MitigateError, why, probed, comet, max_length=50)
