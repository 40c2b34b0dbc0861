"""Tables of benchmarks/footprint.py, from numbers that are given, and gpu.py at a small size."""

import re
from pathlib import Path

import pytest
from transformers import GPT2Config, OpenAIGPTConfig

from benchmarks import gpu
from benchmarks.footprint import GPUS, Footprint, footprint, hours_table, main, memory_table, seconds_a_step

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


def test_it_is_ready_to_be_run() -> None:
    """The path a GPU would take, on a CPU: each size trained and probed."""
    section = gpu.main(["--device", "cpu", "--small", "--steps", "3"])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:3]] == ["GPT-1 size", "comet_minilm"]
    milliseconds, rate, projected = (float(cell.replace(",", "")) for cell in rows[1][1:4])
    assert rate * milliseconds / 1000 == pytest.approx(64, rel=0.1)
    assert projected == pytest.approx(100 * milliseconds, rel=0.1)
    assert re.search(r"\| 3 x 2 x 10 \|", section)
    assert [row[1] for row in rows[4:]] == ["fp32", "bf16", "fp32", "bf16"]
