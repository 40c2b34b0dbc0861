"""The benchmark of embeddings beside PyKEEN: its own contestant, its parts of triples and its table."""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import cast

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.kge import Contestant, Work, chosen, ours, table

PROCESS = cast(ProcessPoolExecutor, None)


def work(model: str) -> Work:
    """A line of 30 entities, of which two thirds are trained on in a turn."""
    triples = np.array([(place, 0, place + 1) for place in range(29)])
    return Work(model, triples, 30, 1, 20)


@pytest.mark.parametrize("model", ["complex", "complex_n3"])
def test_our_contestant_trains_a_part_and_gives_the_seconds_of_an_epoch(model):
    assert 0 < ours(work(model))(1) < 60


def test_a_part_is_distinct_triples_and_whole_heads_for_queries():
    drawn = chosen(work("complex"), 1)
    assert len({tuple(triple) for triple in drawn.tolist()}) == 20
    heads = chosen(work("complex_n3"), 1)[:, 0]
    assert heads.tolist() == list(range(heads[0], heads[0] + 20))


def test_the_table_compares_medians():
    ours_ = Contestant("complex", "mitigate, shared", PROCESS, [10.0, 12.0, 11.0], peak=1.0)
    theirs = Contestant("complex", "PyKEEN", PROCESS, [110.0, 100.0, 120.0], peak=2.5)
    assert table([ours_, theirs]).splitlines()[2:] == [
        "| `complex` | mitigate, shared | 11 | 10 12 11 |  | 1.00 |",
        "| `complex` | PyKEEN | 110 | 110 100 120 | 10.0 times as fast | 2.50 |",
    ]
