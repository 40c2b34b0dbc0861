"""Linear layers in 8-bit integers: twice the products a second of bfloat16 on processors with VNNI instructions.

A weight has one scale for each of its outputs, found once; an activation one for each token, found as it comes, so
that what is said of a text does not depend on the texts it shares a batch with."""

import torch
from torch import Tensor, nn

ROWS = 512  # tokens multiplied at a time: their 32-bit products stay in the cache
LARGEST = 127


class Int8Linear(nn.Module):
    """A trained linear layer, its products in int8 and everything else in float32; gives what type it is given."""

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        integers, scale = quantized(weight)
        self.register_buffer("weight", integers.t())  # (in, out)
        self.register_buffer("scale", scale[:, 0])  # (out,)
        bias = torch.zeros(len(weight)) if linear.bias is None else linear.bias.detach().float()
        self.register_buffer("bias", bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        rows = states.flatten(0, -2)
        result = rows.new_empty(len(rows), len(self.scale))
        for here, part in zip(result.split(ROWS), rows.split(ROWS), strict=True):
            integers, scale = quantized(part)
            products = torch._int_mm(integers, self.weight) * scale
            here.copy_(torch.addcmul(self.bias, products, self.scale, out=products))
        return result.unflatten(0, states.shape[:-1])


def quantized(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (n, width) as int8 and their scales (n, 1): a row is its integers times its scale, to half a scale."""
    scale = rows.abs().amax(1, keepdim=True).float().clamp_(min=1e-12).div_(LARGEST)
    return (rows / scale).round_().to(torch.int8), scale


def quantize(module: nn.Module) -> None:
    """Replace every linear layer by an Int8Linear, except those of a few labels' width, which would gain nothing."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and min(child.in_features, child.out_features) >= 16:
            setattr(module, name, Int8Linear(child))
        else:
            quantize(child)
