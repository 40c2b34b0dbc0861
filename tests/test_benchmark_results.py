"""RESULTS.md keeps each section, and those of several processors side by side."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import results
from benchmarks.results import machine, processor, write_section


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "RESULTS.md"
    monkeypatch.setattr(results, "RESULTS", path)
    return path


def test_a_section_is_replaced_and_the_others_stay(file: Path) -> None:
    write_section("one", "## One\n\n1")
    write_section("two", "## Two\n\n2")
    write_section("one", "## One\n\n\\1 anew")
    assert file.read_text() == (
        "# What was measured\n\n"
        "<!-- one -->\n## One\n\n\\1 anew\n<!-- end of one -->\n\n"
        "<!-- two -->\n## Two\n\n2\n<!-- end of two -->\n"
    )


def test_what_another_processor_had_stays_beside_it(file: Path) -> None:
    write_section("speed", "## Speed\n\n10\n\n## More", "CPU A, AVX2")
    write_section("speed up", "## Other", "CPU A, AVX2")
    write_section("speed", "## Speed\n\n20", "CPU (B), AVX512")
    write_section("speed", "## Speed\n\n30", "CPU A, AVX2")
    headings = [line for line in file.read_text().splitlines() if line.startswith("## ") or line.isdigit()]
    assert headings == ["## Speed (CPU A, AVX2)", "30", "## Speed (CPU (B), AVX512)", "20", "## Other (CPU A, AVX2)"]


def test_the_machine_is_its_processor_with_threads_and_torch() -> None:
    name, instructions = processor().rsplit(", ", 1)
    assert machine().startswith(f"{name}, ")
    assert f"threads, {instructions}" in machine()
    assert machine().endswith(f", torch {torch.__version__}")
