"""Attention over trees of tokens, one for each prompt: a token sees its ancestors, and nothing is moved when
branches die.

Every tree has a slot; a token's key and value are written to it once, as a node, and which nodes a token sees is a
mask. A node of a branch that has died may be given to another token."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

STEP = 32
"""The number of nodes by which trees grow. Keys of a part of the nodes would be copied in each layer where they are
bfloat16, and softmax is twice as slow between multiples of this."""

Placed = Sequence[tuple[int, int]]
"""Tokens, each with its position."""


class TreeAttention:
    """The keys and values of all nodes, and where the rows of the pass at hand stand (an `Attention`).

    config is that of a decoder, slots the number of trees. Memory for their nodes grows with what is placed there, in
    steps of STEP."""

    def __init__(self, config: Any, slots: int, like: Tensor) -> None:
        self.keys = like.new_zeros(config.layers, slots, config.heads, 0, config.width // config.heads)
        self.values = self.keys

    def reserve(self, nodes: int) -> None:
        """Reserve memory for at least this number of nodes in each tree."""
        there = self.keys.shape[3]
        if nodes > there:
            more = nodes + -nodes % STEP - there
            # Zeros, not whatever memory holds: a masked NaN is a NaN.
            self.keys, self.values = (F.pad(kept, (0, 0, 0, more)) for kept in (self.keys, self.values))

    def place(self, slot: Tensor, node: Tensor, seen: Tensor) -> None:
        """Set the places of the rows of the next pass: their slots (rows,), ascending; the node of each (rows,), a new
        one or one that no row sees any more; and the nodes each sees, its own included (rows, nodes) bool."""
        self.reserve(int(node.max()) + 1)
        _, slots, heads, nodes, _ = self.keys.shape
        busy, tree, sizes = slot.unique_consecutive(return_inverse=True, return_counts=True)
        column = torch.arange(len(slot), device=slot.device) - (sizes.cumsum(0) - sizes)[tree]
        few = 2 * len(busy) < slots  # so few that to copy theirs in each layer costs less than to multiply all
        self.busy = busy if few else None
        tree, trees = (tree, len(busy)) if few else (slot, slots)
        self.slot, self.node, self.columns = slot, node, int(sizes.max())
        place = tree * self.columns + column
        self.source = place.new_zeros(trees * self.columns)  # of each tree and column, the row that stands there
        self.source[place] = torch.arange(len(slot), device=slot.device)
        self.place_of = place
        unseen = ~F.pad(seen, (0, nodes - seen.shape[1]))
        mask = self.keys.new_zeros(trees, self.columns, nodes)
        mask[tree, column] = unseen.to(mask) * torch.finfo(mask.dtype).min
        self.mask = mask.repeat_interleave(heads, 0)  # (trees * heads, columns, nodes)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = self.keys[layer], self.values[layer]  # (slots, heads, nodes, head_width)
        keys[self.slot, :, self.node] = key
        values[self.slot, :, self.node] = value
        if self.busy is not None:
            keys, values = keys.index_select(0, self.busy), values.index_select(0, self.busy)
        heads, width = key.shape[1:]
        queries = query.index_select(0, self.source).view(-1, self.columns, heads, width)
        queries = queries.transpose(1, 2).reshape(-1, self.columns, width)
        scores = torch.baddbmm(self.mask, queries, keys.flatten(0, 1).transpose(1, 2), alpha=width**-0.5)
        mixed = scores.softmax(-1) @ values.flatten(0, 1)  # (trees * heads, columns, head_width)
        mixed = mixed.view(-1, heads, self.columns, width).transpose(1, 2).reshape(-1, heads, width)
        return mixed.index_select(0, self.place_of)


class SharedPrefixes:
    """The rows of prompts' prefixes, each distinct beginning once and remembered in every tree that has it (an
    `Attention`): 34 relations are asked about one head, which saves a twentieth of a probe's time."""

    def __init__(self, trees: TreeAttention, slots: Sequence[int], prefixes: Sequence[Placed]) -> None:
        rows: dict[tuple[tuple[int, int], ...], int] = {}
        places = []  # (slot, node, row)
        for slot, prefix in zip(slots, prefixes, strict=True):
            for node in range(len(prefix)):
                row = rows.setdefault(tuple(prefix[: node + 1]), len(rows))
                places.append((slot, node, row))
        device, longest = trees.keys.device, max(map(len, prefixes))
        texts = list(rows)
        ancestors = [[rows[text[: min(i, len(text))]] for i in range(1, longest + 1)] for text in texts]
        trees.reserve(longest)
        self.trees = trees
        self.tokens, self.positions = torch.tensor([text[-1] for text in texts], device=device).T  # (rows,)
        lengths = torch.tensor([len(text) for text in texts], device=device)
        self.slot, self.node, self.row = torch.tensor(places, device=device).T
        self.ancestors = torch.tensor(ancestors, device=device)  # (rows, longest); after its end, the row itself
        self.seen = torch.arange(longest, device=device) < lengths[:, None]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.trees.keys[layer][self.slot, :, self.node] = key.index_select(0, self.row)
        self.trees.values[layer][self.slot, :, self.node] = value.index_select(0, self.row)
        mixed = F.scaled_dot_product_attention(
            query[:, :, None],
            key[self.ancestors].transpose(1, 2),  # (rows, heads, longest, head_width)
            value[self.ancestors].transpose(1, 2),
            attn_mask=self.seen[:, None, None],
        )
        return mixed[:, :, 0]
