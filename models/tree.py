"""Attention over trees of tokens: each token sees its ancestors, and nothing is moved when branches die.

Every tree has a slot; a token's key and value are appended to its slot once, as a node, and which nodes a token
sees is a mask."""

import torch
from torch import Tensor

from models.decoder import DecoderConfig


class TreeAttention:
    """The keys and values of all nodes, and the rows of the forward pass at hand (an `Attention`)."""

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
