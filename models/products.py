"""Matrix products with weights that stay, laid out once as the processor's kernels read them.

A float32 matrix torch hands to MKL. On AMD with AVX-512 that is up to a third slower than oneDNN's kernels with a
weight in blocks of their own; with AVX2 alone it is faster, above all where GELU follows. A bfloat16 matrix oneDNN
brings into these blocks in every call."""

import copy
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.decoder import Block

ROWS = 16  # numbers of rows are filled up to multiples: oneDNN compiles and keeps a megabyte of code for each number


class Product(nn.Module):
    """A linear map for inference: what nn.Linear gives but for rounding, and GELU of it where `gelu` names one as
    nn.GELU does. On a CPU the weight is a copy, which does not see later changes."""

    def __init__(self, weight: Tensor, bias: Tensor | None, gelu: str | None = None) -> None:  # (out, in), (out,)
        super().__init__()
        self.laid_out = _has_kernels(weight)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach()) if self.laid_out else weight
        self.bias = bias
        self.gelu = gelu

    def forward(self, rows: Tensor) -> Tensor:  # (rows, in) -> (rows, out)
        if self.laid_out:
            after = "none" if self.gelu is None else "gelu"
            product = torch.ops.mkldnn._linear_pointwise(filled(rows), self.weight, self.bias, after, [], self.gelu)
            return product[: len(rows)]
        product = F.linear(rows, self.weight, self.bias)
        return product if self.gelu is None else F.gelu(product, approximate=self.gelu)


@singledispatch
def lay_out(decoder: Any) -> Any:
    """A copy for inference whose layers multiply by Products; all other parameters are those of the decoder. A
    network of another form registers a function of its own."""
    laid_out = copy.deepcopy(decoder, {id(parameter): parameter for parameter in decoder.parameters()})
    for block in laid_out.modules():
        if isinstance(block, Block):
            for name in ("attention_in", "attention_out", "mlp_in", "mlp_out"):
                linear = getattr(block, name)
                gelu = block.gelu.approximate if name == "mlp_in" else None
                block.register_module(name, Product(linear.weight, linear.bias, gelu))
            block.register_module("gelu", nn.Identity())
    return laid_out


def filled(rows: Tensor) -> Tensor:
    """Rows (rows, ...) with zeros behind them, up to a multiple of ROWS. To fill a pass once costs less than to fill
    what goes into each of its products."""
    missing = -len(rows) % ROWS
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows


def _has_kernels(weight: Tensor) -> bool:
    """Return whether oneDNN is available and multiplies by this weight faster than torch does without it."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.float32:
        return not (torch.backends.mkl.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX2")
    return weight.dtype == torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
