"""Attention over trees of tokens, one for each prompt: a token sees its ancestors, and nothing is moved when
branches die.

Every tree has a slot; a token's key and value are appended to its slot once, as a node, and which nodes a token
sees is a mask."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from models.decoder import DecoderConfig

Placed = Sequence[tuple[int, int]]
"""Tokens, each with its position."""


class TreeAttention:
    """The keys and values of all nodes, and where the rows of the pass at hand stand (an `Attention`)."""

    def __init__(self, config: DecoderConfig, slots: int, nodes: int, like: Tensor) -> None:
        shape = config.layers, slots, config.heads, nodes, config.width // config.heads
        self.keys = torch.zeros(shape, dtype=like.dtype, device=like.device)  # zeros, not empty: a masked NaN is a NaN
        self.values = torch.zeros_like(self.keys)

    def place(self, slot: Tensor, node: Tensor, seen: Tensor) -> None:
        """Tells where the rows of the next pass stand: their slots (rows,), ascending; the new node of each
        (rows,); and the nodes each sees, its own included (rows, nodes) bool."""
        self.slot, self.node = slot, node
        self.slots, self.tree, sizes = slot.unique_consecutive(return_inverse=True, return_counts=True)
        self.column = torch.arange(len(slot), device=slot.device) - (sizes.cumsum(0) - sizes)[self.tree]
        self.used = int(node.max()) + 1
        self.mask = torch.full(
            (len(self.slots), 1, int(sizes.max()), self.used),
            torch.finfo(self.keys.dtype).min,
            dtype=self.keys.dtype,
            device=slot.device,
        )
        self.mask[self.tree, 0, self.column] *= ~seen[:, : self.used]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = self.keys[layer], self.values[layer]  # (slots, heads, nodes, head_width)
        keys[self.slot, :, self.node] = key
        values[self.slot, :, self.node] = value
        if len(self.slots) < len(keys):
            keys, values = keys[self.slots, :, : self.used], values[self.slots, :, : self.used]
        trees, _, columns, used = self.mask.shape
        queries = query.new_zeros(trees, columns, *query.shape[1:])
        queries[self.tree, self.column] = query * query.shape[-1] ** -0.5
        scores = queries.transpose(1, 2) @ keys[:, :, :used].transpose(2, 3)  # (trees, heads, columns, used)
        mixed = scores.add_(self.mask).softmax(-1) @ values[:, :, :used]  # (trees, heads, columns, head_width)
        return mixed[self.tree, :, self.column]


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
        ancestors = [[rows[text[: min(i, len(text))]] for i in range(1, longest + 1)] for text in rows]
        self.trees = trees
        self.tokens, self.positions = torch.tensor([text[-1] for text in rows], device=device).T  # (rows,)
        lengths = torch.tensor([len(text) for text in rows], device=device)
        self.slot, self.node, self.row = torch.tensor(places, device=device).T
        self.ancestors = torch.tensor(ancestors, device=device)  # (rows, longest); after its end, the row itself
        self.seen = torch.arange(longest, device=device) < lengths[:, None]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.trees.keys[layer][self.slot, :, self.node] = key[self.row]
        self.trees.values[layer][self.slot, :, self.node] = value[self.row]
        mixed = F.scaled_dot_product_attention(
            query[:, :, None],
            key[self.ancestors].transpose(1, 2),  # (rows, heads, longest, head_width)
            value[self.ancestors].transpose(1, 2),
            attn_mask=self.seen[:, None, None],
        )
        return mixed[:, :, 0]
