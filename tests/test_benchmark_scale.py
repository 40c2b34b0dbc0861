"""The synthetic assertions of the benchmark of scale are what it says of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.scale import assertions, described
from mitigate.load.assertions import load
from mitigate.load.stream import Met
from mitigate.match import about_targets
from mitigate.targets import choose_targets

ROWS = 20_000


def test_the_assertions_are_as_described(tmp_path: Path) -> None:
    path = assertions(tmp_path, ROWS, packed=True)
    (_, _, first), *rest = load(str(path)).chunks()
    chunks = [first, *(chunk for _, _, chunk in rest)]
    met = sum((chunk.met for chunk in chunks), Met())
    about = sum(about_targets(chunk.rows, choose_targets("all")).height for chunk in chunks)
    assert {kind for kind, _ in met} == {"left out"}  # neither a bad line nor an unknown relation
    assert sum(met.values()) / ROWS == pytest.approx(0.9, abs=0.01)
    assert about / ROWS == pytest.approx(0.003, abs=0.001)
    english, distinct = (float(share) for share in _percentages(described(path)))
    assert english == pytest.approx(10, abs=1)
    assert distinct > 80


def _percentages(said: str) -> list[str]:
    return [word.removesuffix("%") for word in said.split() if word.endswith("%")]
