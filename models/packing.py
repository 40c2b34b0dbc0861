"""Texts of different lengths side by side in few rows: texts with the same beginning share its rows.

A prompt and its tails are a tree: the prompt's tokens stand there once, and each tail sees them and itself. Trees are
put into bins of one size, so that little of each layer's time goes into filling."""

from collections.abc import Sequence
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from models.dropout import dropout

UNSEEN = -1e30  # added to a score; finite, so that a row that sees nothing still gets numbers
BIN = 64  # rows of a bin at least: attention is computed within bins, and small ones are harder to fill
TREE = 96  # rows of a tree at most, unless one tail alone needs more
HELD = 16  # oneDNN compiles and keeps code for each number of rows
FILLING = -1  # the tree of rows that hold none


class PackedTrees:
    """Attention of each row to itself and the earlier rows of its own text. (An `Attention`.) The number of query heads
    may be a multiple of that of keys and values.

    On a CPU it takes half the time of PyTorch's own attention for texts of this length, and a tenth of it in bf16
    without dropout. seen (bins, bin, bin) bool: True where the first row of a bin attends to the second."""

    def __init__(self, seen: Tensor, dropout: float = 0.0) -> None:
        self.dropout = dropout
        self.bias = torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, UNSEEN)[:, None]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        bins, heads, keys = len(self.bias), query.shape[1], key.shape[1]
        query, key, value = (
            rows.unflatten(0, (bins, -1)).transpose(1, 2).flatten(0, 1)  # (bins * heads, bin, head_width)
            for rows in (query, key, value)
        )
        bias = self.bias.to(query.dtype).expand(-1, heads, -1, -1).flatten(0, 1)
        if heads > keys:  # neighbours among the queries' heads share a key
            query, bias = (rows.reshape(bins * keys, -1, rows.shape[-1]) for rows in (query, bias))
        scores = torch.baddbmm(bias, query, key.mT, alpha=query.shape[-1] ** -0.5)
        mixed = dropout(scores.softmax(-1), self.dropout) @ value
        return mixed.view(bins, heads, -1, mixed.shape[-1]).transpose(1, 2).flatten(0, 1)


class HeldRows:
    """The attention of PackedTrees among the rows in `packed.held` alone, so that other layers compute no others."""

    def __init__(self, packed: "Packed") -> None:
        self.held, self.rows = packed.held, len(packed.tokens)
        self.attention = PackedTrees(packed.seen)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        whole = (
            rows.new_zeros(self.rows, *rows.shape[1:]).index_copy(0, self.held, rows) for rows in (query, key, value)
        )
        return self.attention(layer, *whole).index_select(0, self.held)


class Packed(NamedTuple):
    """Prompts and tails as rows, some of which are filling."""

    tokens: Tensor  # (rows,) int
    positions: Tensor  # (rows,) int, in its text
    seen: Tensor  # (bins, bin, bin) bool: which row of a bin looks at which
    before: Tensor  # (tokens of all tails,) int: the row after which each of them comes
    held: Tensor  # int, rising: the rows that are no filling, filled up to a multiple of HELD

    def to(self, device: torch.device) -> "Packed":
        return Packed(*(tensor.to(device) for tensor in self))


class _Tree(NamedTuple):
    prompt: Sequence[int]
    tails: range  # their numbers
    rows: int


def pack(prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Packed:
    """Prompts and their tails, one each. Neighbours of the same prompt share its rows, so equal prompts are best given
    one after the other. A tail's last token is not read, as nothing comes after it."""
    trees = _trees(prompts, tails)
    size = max(BIN, -(-max(tree.rows for tree in trees) // 16) * 16)
    bins = _fit(trees, size)
    tokens, positions, branches = (np.zeros((len(bins), size), dtype=np.int64) for _ in range(3))
    owners = np.full((len(bins), size), FILLING)
    before: list[Sequence[int]] = [()] * len(tails)
    for number, content in enumerate(bins):
        at = 0
        for tree in content:
            begin = len(tree.prompt)
            owners[number, at : at + tree.rows] = tree.tails.start
            tokens[number, at : at + begin] = tree.prompt
            positions[number, at : at + begin] = np.arange(begin)
            last = number * size + at + begin - 1
            at += begin
            for branch, tail in enumerate(tree.tails, 1):
                read = len(tails[tail]) - 1
                tokens[number, at : at + read] = tails[tail][:-1]
                positions[number, at : at + read] = np.arange(begin, begin + read)
                branches[number, at : at + read] = branch
                before[tail] = (last, *range(number * size + at, number * size + at + read))
                at += read
    of_tree = owners[:, :, None] == owners[:, None]
    of_text = (branches[:, None] == 0) | (branches[:, :, None] == branches[:, None])
    seen = of_tree & of_text & np.tri(size, dtype=bool)
    rows = np.fromiter(chain.from_iterable(before), dtype=np.int64)
    filling = np.flatnonzero(owners == FILLING)
    held = np.delete(np.arange(owners.size), filling[-(owners.size - len(filling)) % HELD :])
    return Packed(*map(torch.from_numpy, (tokens.ravel(), positions.ravel(), seen, rows, held)))


def fill(rows: Tensor, multiple: int = 32) -> Tensor:
    """Rows (n,), with zeros added up to a multiple. Where tensors come in few sizes, freed memory fits the next."""
    return F.pad(rows, (0, -len(rows) % multiple))


def _trees(prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> list[_Tree]:
    """Runs of equal prompts, cut where a tree would be too large."""
    trees = []
    for _, run in groupby(range(len(prompts)), key=lambda text: tuple(prompts[text])):
        texts = list(run)
        begin, rows = texts[0], len(prompts[texts[0]])
        for text in texts:
            read = len(tails[text]) - 1
            if text > begin and rows + read > TREE:
                trees.append(_Tree(prompts[begin], range(begin, text), rows))
                begin, rows = text, len(prompts[text])
            rows += read
        trees.append(_Tree(prompts[begin], range(begin, texts[-1] + 1), rows))
    return trees


def _fit(trees: Sequence[_Tree], size: int) -> list[list[_Tree]]:
    """The bins of `size` rows: each tree, the largest first, goes into the first bin that has enough rows left."""
    bins: list[list[_Tree]] = []
    left: list[int] = []
    for tree in sorted(trees, key=lambda tree: -tree.rows):
        place = next((number for number, rows in enumerate(left) if rows >= tree.rows), len(bins))
        if place == len(bins):
            bins.append([])
            left.append(size)
        bins[place].append(tree)
        left[place] -= tree.rows
    return bins
