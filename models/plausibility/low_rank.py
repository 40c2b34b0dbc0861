"""A linear layer with a trained low-rank change beside it. Its weight gets no gradient, which is a third less work
than to train it, or to train a change that is added to it."""

import torch
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    """x -> (weight + up @ down) x + bias, of which up, down and bias are trained; nothing changes before training."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.layer.weight.requires_grad = False
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.normal_(self.down.weight, std=rank**-0.5)
        nn.init.zeros_(self.up.weight)

    def forward(self, states: Tensor) -> Tensor:
        """(..., in) to (..., out)."""
        return self.layer(states) + self.up(self.down(states))

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The layer with the change in its weight."""
        self.layer.weight += self.up.weight @ self.down.weight
        return self.layer


def change(module: nn.Module, rank: int) -> None:
    """Puts such a change beside every linear layer of a module."""
    for name, layer in list(module.named_modules()):
        if isinstance(layer, nn.Linear):
            module.set_submodule(name, LowRankLinear(layer, rank))


def merge(module: nn.Module) -> None:
    """Makes plain layers of all that have a change."""
    for name, layer in list(module.named_modules()):
        if isinstance(layer, LowRankLinear):
            module.set_submodule(name, layer.merged())
