"""A Llama of transformers on flat rows, a token each, on a CPU: the same numbers but for rounding, in less time.

The weights stay those of the model, so that transformers and peft load, adapt and save it. Which row looks at which is
left to an `Attention`, as in decoder.py. Under autocast each weight is cast once a step, the matrices that read the
same rows are multiplied together, and the sum of the layers stays in float32."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import LlamaForCausalLM

from models.decoder import Attention
from models.packing import HeldRows, fill, pack
from models.products import Product, lay_out
from models.top_tokens import LOG2_E

ROPES = ("default", "linear", "llama3", "yarn")  # whose angles do not depend on the length of a text
ROWS, PART = 512, 16  # rows of logits that are computed, and turned into probabilities, at a time

Multiply = Callable[[Tensor], Tensor]
"""Rows (rows, in) to (rows, out)."""

Join = Callable[[Sequence[Any]], Multiply]
"""A function that makes one for linear modules that read the same rows, whose outputs stand side by side."""


def fits(model: Any) -> bool:
    """Return whether this module computes a model of transformers, with adapters or without."""
    base = _base(model)
    if type(base) is not LlamaForCausalLM or base.device.type != "cpu":
        return False
    config = base.config
    plain = type(base.lm_head) is nn.Linear and type(base.model.embed_tokens) is nn.Embedding
    other = config.attention_bias or config.mlp_bias or config.attention_dropout or config.hidden_act != "silu"
    return plain and not other and base.model.rotary_emb.rope_type in ROPES


class Shape(NamedTuple):
    """The sizes that an `Attention` needs."""

    layers: int
    heads: int  # of keys and values
    width: int  # of a row's keys, all heads together
    positions: int
    group: int  # queries that share a key


class Llama:
    """A model's layers by `join`. (What beam_search calls a `Network`.)"""

    def __init__(self, model: Any, join: Join | None = None) -> None:
        base = _base(model)
        self.model, self.config = base, _shape(base.config)
        self.training = base.training
        self.words, self.bias = base.lm_head, None
        self.layers = [_Layer(layer, self.config, join or joined) for layer in base.model.layers]
        # Made anew, as its angles are wrong by up to a percent in a model that was cast to bfloat16.
        self.rotary = type(base.model.rotary_emb)(base.config)

    def __call__(self, tokens: Tensor, positions: Tensor, attention: Attention) -> Tensor:
        """tokens (rows,), positions (rows,) -> hidden (rows, width)."""
        hidden = self._states(F.embedding(tokens, self.model.model.embed_tokens.weight), positions, attention)
        return _norm(self.model.model.norm, hidden, self.words.weight.dtype)

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Comet.nll of this model. The logits of a prompt's last row are computed once for all its tails."""
        packed, dtype = pack(prompts, tails), _computed_in(self.words.weight)
        tokens, positions = packed.tokens[packed.held], packed.positions[packed.held]
        before, places = torch.searchsorted(packed.held, packed.before).unique(return_inverse=True)
        said = torch.tensor(list(chain.from_iterable(tails)))
        embedding = self.model.model.embed_tokens.weight
        if self.words.weight is embedding:
            hidden, head = _Tied.apply(embedding, tokens, dtype)
        else:
            hidden, head = F.embedding(tokens, embedding), self.words.weight.to(dtype)
        hidden = self._states(hidden, positions, HeldRows(packed)).index_select(0, fill(before))
        return _Nll.apply(_norm(self.model.model.norm, hidden, dtype), head, places, said)

    def _states(self, hidden: Tensor, positions: Tensor, attention: Attention) -> Tensor:
        """hidden (rows, width), after the embedding and after the last layer."""
        turns = [turn[0, :, None] for turn in self.rotary(hidden.float(), positions[None])]  # (rows, 1, head_width)
        dtype = _computed_in(hidden)
        for number, layer in enumerate(self.layers):
            if layer.saving and torch.is_grad_enabled():
                hidden = checkpoint(layer, hidden, number, turns, attention, dtype, use_reentrant=False)
            else:
                hidden = layer(hidden, number, turns, attention, dtype)
        return hidden


class _Layer:
    def __init__(self, layer: Any, shape: Shape, join: Join) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.saving = layer.gradient_checkpointing and layer.training
        queries = shape.heads * shape.group
        self.heads, self.width = (queries, shape.heads, shape.heads), shape.width // shape.heads
        self.attention_norm, self.mlp_norm = layer.input_layernorm, layer.post_attention_layernorm
        self.attention_in = join([attention.q_proj, attention.k_proj, attention.v_proj])
        self.attention_out, self.mlp_out = join([attention.o_proj]), join([mlp.down_proj])
        self.mlp_in = join([mlp.gate_proj, mlp.up_proj])

    def __call__(
        self, hidden: Tensor, number: int, turns: Sequence[Tensor], attention: Attention, dtype: torch.dtype
    ) -> Tensor:
        rows = self.attention_in(_norm(self.attention_norm, hidden, dtype)).unflatten(1, (-1, self.width))
        turned, value = rows.split([sum(self.heads[:2]), self.heads[2]], dim=1)
        query, key = _Turn.apply(turned, *turns).split(self.heads[:2], dim=1)
        hidden = hidden + self.attention_out(attention(number, query, key, value).flatten(1))
        return hidden + self.mlp_out(_SwiGlu.apply(self.mlp_in(_norm(self.mlp_norm, hidden, dtype))))


@lay_out.register
def _(network: Llama) -> Llama:
    return Llama(network.model, _laid_out)


def _laid_out(linears: Sequence[Any]) -> Multiply:
    if all(type(linear) is nn.Linear for linear in linears):
        return Product(torch.cat([linear.weight for linear in linears]), None)
    return joined(linears)


def joined(linears: Sequence[Any]) -> Multiply:
    """A product that can be trained."""
    if all(type(linear) is nn.Linear for linear in linears):
        return lambda rows: _Joined.apply(rows, *(linear.weight for linear in linears))
    return lambda rows: torch.cat([linear(rows) for linear in linears], 1)  # adapters compute what they add themselves


def _base(model: Any) -> Any:
    """A model of transformers without what peft has put around it."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _shape(config: Any) -> Shape:
    heads, head_width = config.num_key_value_heads, config.head_dim
    group = config.num_attention_heads // heads
    return Shape(config.num_hidden_layers, heads, heads * head_width, config.max_position_embeddings, group)


def _computed_in(weight: Tensor) -> torch.dtype:
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype


def _norm(norm: Any, hidden: Tensor, dtype: torch.dtype) -> Tensor:
    return _RmsNorm.apply(hidden, norm.weight, norm.variance_epsilon, dtype)


class _Joined(Function):
    """Rows by several weights side by side, cast to the rows' numbers."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, *weights: Tensor) -> Tensor:
        ctx.sizes = [len(weight) for weight in weights]
        weight = rows.new_empty(sum(ctx.sizes), rows.shape[1])
        for part, given in zip(weight.split(ctx.sizes), weights, strict=True):
            part.copy_(given)
        ctx.save_for_backward(rows, weight)
        return F.linear(rows, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        of_rows = grad @ weight if ctx.needs_input_grad[0] else None
        if not any(ctx.needs_input_grad[1:]):
            return of_rows, *[None for _ in ctx.sizes]
        return of_rows, *(grad.T @ rows).split(ctx.sizes)


class _Tied(Function):
    """Rows of an embedding, and the whole of it as the head, whose gradients so are added in place."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, tokens: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(tokens)
        return weight[tokens], weight.to(dtype)

    @staticmethod
    def backward(ctx: Any, of_rows: Tensor, of_head: Tensor) -> tuple[Tensor, None, None]:
        return of_head.float().index_add_(0, ctx.saved_tensors[0], of_rows.float()), None, None


class _RmsNorm(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        exact = rows.float()
        scale = (exact.square().mean(1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(rows, weight, scale)
        return (exact * scale * weight).to(dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        rows, weight, scale = ctx.saved_tensors
        normed = rows.float() * scale
        product = grad * normed
        of_weight = product.sum(0) if ctx.needs_input_grad[1] else None
        mean = (product @ weight.float() / rows.shape[1])[:, None]
        of_rows = (grad * weight.float()).addcmul_(normed, mean, value=-1).mul_(scale)
        return of_rows.to(rows.dtype), of_weight, None, None


class _Turn(Function):
    """Rotary positions. rows (rows, heads, head_width); cos and sin (rows, 1, head_width)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turned(rows, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turned(grad, cos, -sin), None, None


def _turned(rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = rows.float().chunk(2, dim=-1)
    (cos, _), (sin, _) = cos.chunk(2, dim=-1), sin.chunk(2, dim=-1)  # both halves are equal
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(rows.dtype)


class _SwiGlu(Function):
    """silu of the first half of each row's entries times the second half."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        gate, up = rows.chunk(2, dim=1)
        activated = F.silu(gate)
        ctx.save_for_backward(rows, activated)
        return activated * up

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        rows, activated = ctx.saved_tensors
        gate, up = rows.chunk(2, dim=1)
        of_gate, of_up = (found := torch.empty_like(rows)).chunk(2, dim=1)
        torch.ops.aten.silu_backward.grad_input(grad * up, gate, grad_input=of_gate)
        torch.mul(grad, activated, out=of_up)
        return found


def _normaliser(logits: Tensor) -> Tensor:
    """torch's log_softmax takes less than half the time of its logsumexp."""
    return logits[:, 0] - logits.log_softmax(1)[:, 0]


class _Nll(Function):
    """hidden (rows, width), head (words, width); of each token its row and its word (tokens,) -> (tokens,)."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, places: Tensor, said: Tensor) -> Tensor:
        kept, normalisers, chosen = [], [], places.new_empty(len(said), dtype=torch.float32)
        for start in range(0, len(hidden), ROWS):
            logits = F.linear(hidden[start : start + ROWS], head)
            normalisers += [_normaliser(part.float()) for part in logits.split(PART)]
            here = (places >= start) & (places < start + ROWS)
            chosen[here] = logits[places[here] - start, said[here]].float()
            if any(ctx.needs_input_grad):  # without gradients only a part is held at a time
                kept.append(logits)
        normaliser = torch.cat(normalisers)
        ctx.save_for_backward(hidden, head, places, said, normaliser, *kept)
        return normaliser[places] - chosen

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        hidden, head, places, said, normaliser, *kept = ctx.saved_tensors
        weight = torch.zeros_like(normaliser).index_add_(0, places, grad)  # of each row's probabilities
        order = places.argsort()
        counts = places.bincount(minlength=len(hidden)).tolist()
        of_logits = torch.cat(kept) if len(kept) > 1 else kept[0]
        ends = torch.tensor([0, *counts]).cumsum(0).tolist()
        for start in range(0, len(hidden), PART):
            part = slice(start, start + PART)
            found = (of_logits[part].float() - normaliser[part, None]).mul_(LOG2_E).exp2_().mul_(weight[part, None])
            tokens = order[ends[start] : ends[min(start + PART, len(hidden))]]
            found.index_put_((places[tokens] - start, said[tokens]), -grad[tokens], accumulate=True)
            of_logits[part] = found
        of_head = of_logits.T @ hidden if ctx.needs_input_grad[1] else None
        return of_logits @ head, of_head, None, None
