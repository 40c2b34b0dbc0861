"""The memory and the hours that docs/models.md gives, by hand."""

import re
import sys
from pathlib import Path

import pytest
from transformers import GPT2Config, OpenAIGPTConfig

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.footprint import GPUS, Footprint, footprint, hours_table, main, memory_table, seconds_a_step

PAGE = Path(__file__).parents[1] / "docs" / "models.md"


@pytest.mark.parametrize("kind", [GPT2Config, OpenAIGPTConfig])
def test_bytes_of_a_small_model(kind: type) -> None:
    """Words 10 x 4, positions 8 x 4; a layer's four products with their biases and two norms; GPT-2 has a last norm."""
    found = footprint(kind(vocab_size=10, n_positions=8, n_embd=4, n_layer=1, n_head=1))
    layer = (4 * 12 + 12) + (4 * 4 + 4) + (4 * 16 + 16) + (16 * 4 + 4) + 2 * 8
    assert found.parameters == 40 + 32 + layer + (8 if kind is GPT2Config else 0)
    assert found.adapters == 8 * (4 + 12 + 4 + 4 + 4 + 16 + 16 + 4)


def test_what_training_keeps() -> None:
    """Weight, gradient and AdamW's two moments are 16 bytes of each parameter that is trained, and 4 of any other."""
    found = Footprint(parameters=100, adapters=10)
    assert (found.probed, found.trained, found.adapted) == (400, 1600, 560)


def test_a_step_takes_its_products_or_its_launches() -> None:
    assert seconds_a_step(309e12) == 0.015  # the products alone would take 10 ms at a tenth of the peak
    assert seconds_a_step(30.9e12) == pytest.approx(0.1)
    assert "| RTX 3090 | 71 | 44 | 1.2 |" in hours_table()
    assert list(GPUS)[-1] == "H100 SXM"


def test_the_page_has_these_tables_and_says_what_was_measured() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert memory_table() in page
    assert hours_table() in page
    assert re.search(r"measured .* together \d+\.\d", page, re.DOTALL)


def test_the_command_prints_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == f"{memory_table()}\n\n{hours_table()}"
    assert "bytes each" not in capsys.readouterr().out
