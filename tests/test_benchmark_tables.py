"""Tables and figures of benchmarks/, from numbers that are given, and the inputs that benchmarks make up."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config, OpenAIGPTConfig

from benchmarks import results, simulate
from benchmarks.footprint import GPUS, Footprint, footprint, hours_table, main, memory_table, seconds_a_step
from benchmarks.results import machine, processor, write_section
from mitigate.measure.comparison import Change

PAGE = Path(__file__).parents[1] / "docs" / "models.md"


@pytest.mark.parametrize("kind", [GPT2Config, OpenAIGPTConfig])
def test_bytes_of_a_small_model(kind: type) -> None:
    """Words 10 x 4, positions 8 x 4; a layer's four products with their biases and two norms; GPT-2 has a last norm."""
    found = footprint(kind(vocab_size=10, n_positions=8, n_embd=4, n_layer=1, n_head=1))
    layer = (4 * 12 + 12) + (4 * 4 + 4) + (4 * 16 + 16) + (16 * 4 + 4) + 2 * 8
    assert found.parameters == 40 + 32 + layer + (8 if kind is GPT2Config else 0)
    assert found.adapters == 8 * (4 + 12 + 4 + 4 + 4 + 16 + 16 + 4)


def test_memory_of_training_and_seconds_of_a_step() -> None:
    """Weight, gradient and AdamW's two moments are 16 bytes of each parameter that is trained, and 4 of any other."""
    found = Footprint(parameters=100, adapters=10)
    assert (found.probed, found.trained, found.adapted) == (400, 1600, 560)
    assert seconds_a_step(309e12) == 0.015  # the products alone would take 10 ms at a tenth of the peak
    assert seconds_a_step(30.9e12) == pytest.approx(0.1)
    assert "| RTX 3090 | 71 | 44 | 1.2 |" in hours_table()
    assert list(GPUS)[-1] == "H100 SXM"


def test_the_page_and_the_command_have_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert memory_table() in page
    assert hours_table() in page
    assert re.search(r"measured .* together \d+\.\d", page, re.DOTALL)
    assert main([]) == f"{memory_table()}\n\n{hours_table()}"
    assert "bytes each" not in capsys.readouterr().out


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "RESULTS.md"
    monkeypatch.setattr(results, "RESULTS", path)
    return path


def test_sections_are_replaced_and_stay_beside_those_of_other_processors(file: Path) -> None:
    write_section("one", "## One\n\n1")
    write_section("two", "## Two\n\n2")
    write_section("one", "## One\n\n\\1 anew")
    assert file.read_text() == (
        "# What was measured\n\n"
        "<!-- one -->\n## One\n\n\\1 anew\n<!-- end of one -->\n\n"
        "<!-- two -->\n## Two\n\n2\n<!-- end of two -->\n"
    )
    name, instructions = processor().rsplit(", ", 1)
    assert machine().startswith(f"{name}, ")
    assert f"threads, {instructions}" in machine()
    assert machine().endswith(f", torch {torch.__version__}")


def test_what_another_processor_had_stays_beside_it(file: Path) -> None:
    write_section("speed", "## Speed\n\n10\n\n## More", "CPU A, AVX2")
    write_section("speed up", "## Other", "CPU A, AVX2")
    write_section("speed", "## Speed\n\n20", "CPU (B), AVX512")
    write_section("speed", "## Speed\n\n30", "CPU A, AVX2")
    headings = [line for line in file.read_text().splitlines() if line.startswith("## ") or line.isdigit()]
    assert headings == ["## Speed (CPU A, AVX2)", "30", "## Speed (CPU (B), AVX512)", "20", "## Other (CPU A, AVX2)"]


def test_the_truth_of_simulations_and_intervals_that_miss_it() -> None:
    """5 % polarised on average, times what policy, seed and both together do: exp of half their variances."""
    polarised = 5 * math.exp((simulate.POLICY**2 + simulate.TRAINING**2 + simulate.INTERACTION**2) / 2)
    truth = simulate.of_all_words("skewed", 0.5)
    assert truth.difference == pytest.approx(polarised / 2, rel=0.05)
    assert truth.ratio == pytest.approx(0.25, rel=0.15)
    assert simulate.of_all_words("skewed", 1.0).ratio == pytest.approx(1, rel=0.15)
    known, unknown = Change(50.0, 53.0, "difference", 1.0, 10), Change(50.0, 53.0)
    assert simulate.excludes(known, 0)
    assert not simulate.excludes(known, 1)
    assert not simulate.excludes(unknown, 0)


def test_every_part_writes_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "TARGETS", (12, 40))
    monkeypatch.setattr(simulate, "SEEDS", (2,))
    monkeypatch.setattr(simulate, "SHAPES", {"tied": simulate.SHAPES["tied"]})
    monkeypatch.setattr(simulate, "ENOUGH", 40)
    parts = (simulate.one_run, simulate.policies, simulate.copies)
    text = "\n\n".join(piece for part in parts for piece in part(3))
    rows = [line for line in text.splitlines() if line.startswith("| tied")]
    assert len(rows) == 1 + 4 * 2 + 1
    shares = [float(share) for row in rows for share in row.split("|")[2:] if share.strip()]
    assert np.all((np.array(shares) >= 0) & (np.array(shares) <= 100))
