"""Attention over trees whose places are used again, against means that one can work out by hand."""

import torch
from torch import Tensor

from models.decoder import DecoderConfig
from models.tree_attention import TreeAttention

ONE = DecoderConfig("gpt2", vocab_size=9, positions=9, width=1, layers=1, heads=1, inner=4)


def attended(trees: TreeAttention, slots: list[int], nodes: list[int], seen: list[list[int]], values: list[float]):
    """What rows get whose queries and keys are zero: the mean of the values that each sees."""
    seen_nodes = torch.zeros(len(slots), max(map(max, seen)) + 1, dtype=torch.bool)
    for row, those in enumerate(seen):
        seen_nodes[row, those] = True
    trees.place(torch.tensor(slots), torch.tensor(nodes), seen_nodes)
    value = column(values).to(trees.keys)
    return trees(0, torch.zeros_like(value), torch.zeros_like(value), value)[:, 0, 0].tolist()


def column(values: list[float]) -> Tensor:
    """Values (rows, heads, head_width)."""
    return torch.tensor(values)[:, None, None]


def test_each_row_sees_its_own_nodes_whatever_was_there_before():
    trees = TreeAttention(ONE, slots=2, like=torch.empty(0))
    assert attended(trees, [0, 1], [0, 0], [[0], [0]], [2.0, 8.0]) == [2.0, 8.0]
    assert attended(trees, [0, 0, 1], [1, 2, 1], [[0, 1], [0, 2], [0, 1]], [4.0, 6.0, 0.0]) == [3.0, 4.0, 4.0]
    trees = TreeAttention(ONE, slots=1, like=torch.empty(0))
    attended(trees, [0, 0], [0, 1], [[0], [1]], [2.0, 50.0])
    assert attended(trees, [0], [1], [[0, 1]], [10.0]) == [6.0]
    trees = TreeAttention(ONE, slots=5, like=torch.empty(0))
    assert attended(trees, [0, 1, 2, 3, 4], [0] * 5, [[0]] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert attended(trees, [1, 4], [1, 1], [[0, 1], [0, 1]], [4.0, 7.0]) == [3.0, 6.0]  # two of five: taken out
    assert attended(trees, [0, 2, 3], [1, 1, 1], [[0, 1], [1], [0]], [3.0, 9.0, 0.0]) == [2.0, 9.0, 4.0]
