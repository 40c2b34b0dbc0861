import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.gpu import main
from benchmarks.results import RESULTS


def test_it_is_ready_to_be_run() -> None:
    """The path a GPU would take, on a CPU: each size trained and probed, nothing written."""
    before = RESULTS.read_bytes()
    section = main(["--device", "cpu", "--small", "--steps", "3"])
    assert RESULTS.read_bytes() == before
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    assert [row[:2] for row in rows[1:3]] == [["GPT-1 size", "as it is"], ["comet_minilm", "as it is"]]
    milliseconds, rate, projected = (float(cell.replace(",", "")) for cell in rows[1][2:5])
    assert rate * milliseconds / 1000 == pytest.approx(64, rel=0.1)
    assert projected == pytest.approx(100 * milliseconds, rel=0.1)
    assert re.search(r"\| 3 x 2 x 10 \|", section)
    assert [row[1] for row in rows[4:]] == ["fp32", "bf16", "fp32", "bf16"]
