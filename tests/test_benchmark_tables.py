"""Tables of benchmarks/footprint.py, from numbers that are given, and gpu.py at a small size."""

import re
from pathlib import Path

import pytest

from benchmarks import gpu
from benchmarks.footprint import hours_table, main, memory_table

PAGE = Path(__file__).parents[1] / "docs" / "models.md"


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
