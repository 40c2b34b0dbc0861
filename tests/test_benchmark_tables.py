"""Tables of benchmarks/footprint.py, from numbers that are given, and the comparison of figures."""

import json
import re
from pathlib import Path

import pytest
from transformers import GPT2Config, OpenAIGPTConfig

from benchmarks.footprint import GPUS, Footprint, footprint, hours_table, main, memory_table, seconds_a_step
from benchmarks.same_figures import compare, known

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


def test_figures_are_compared_within_the_tolerance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal to 1e-6, or to a millionth of a large one; what is gone is listed, and counts unless it was expected."""
    sides = {
        "before": {"NSM": 50.0, "nll": 4e7, "erase/NSM": 1.0, "word": "a", "list": [1, {"seconds": 3, "high": 2}]},
        "after": {"NSM": 50.0000001, "nll": 40000001.0, "word": "a", "list": [1, {"seconds": 9, "high": 2.1}]},
    }
    for side, metrics in sides.items():
        (folder := tmp_path / side / f"mitigate-none-{side}").mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps(metrics))
        (tmp_path / side / "labels.csv").write_text("statement,regard\na,1\nb,\n")
    (tmp_path / "before" / "erase-1a").mkdir()
    before, after = tmp_path / "before", tmp_path / "after"
    assert compare(before, after, []) == 3
    assert compare(before, after, ["^erase", "none erase/"]) == 1
    assert "  list/1/high: 2 2.1\n" in capsys.readouterr().out


def test_settings_that_a_tree_lacks_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "conf" / "recipe").mkdir(parents=True)
    (tmp_path / "conf" / "recipe" / "kge.yaml").write_text("kge:\n  seeds: 5\n")
    assert known(["recipe=kge", "?kge.seeds=1", "?kge.permuted=0"], tmp_path) == ["recipe=kge", "kge.seeds=1"]
