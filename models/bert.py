"""A BERT encoder that reads texts: the mean token state of each, as transformers' BertModel computes it with eager
attention.

Every pass has the same number of tokens. Matrix products with different numbers of rows can use different kernels,
whose results differ in the last bits, so that a text's label would depend on the texts beside it. Texts of all lengths
share a pass, one after the other; only attention separates them.

Each command loads classifiers, and importing BertModel takes five seconds. It still trains them: its dropout draws
other random numbers than another implementation would."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import gelu

from models.batching import passes
from models.stored_tensors import read_facts

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TOKENS, HALF_TOKENS, GPU_TOKENS = 256, 1024, 65_536
"""The tokens of a pass in float32, in half precision and on a GPU. Larger passes are slower for a few texts, smaller
ones for many."""
Group = tuple[slice, int]
"""The rows of a pass that texts of one length take, and the number of these texts."""


class Unset(nn.Linear):
    """A linear layer without initial weights, which are loaded afterwards; drawing them takes 0.1 s. PyTorch's "meta"
    device draws none either, but imports SymPy: 1.2 s."""

    def reset_parameters(self) -> None:
        pass


class Bert(nn.Module):
    """The weights of a BERT encoder, under the names of BertModel's."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        width, inner = config.hidden_size, config.intermediate_size

        def norm() -> nn.LayerNorm:
            return nn.LayerNorm(width, eps=config.layer_norm_eps)

        def layer() -> nn.Module:
            heads = _module(**{name: Unset(width, width) for name in ("query", "key", "value")})
            output = _module(dense=Unset(width, width), LayerNorm=norm())
            return _module(
                attention=_module(self=heads, output=output),
                intermediate=_module(dense=Unset(width, inner)),
                output=_module(dense=Unset(inner, width), LayerNorm=norm()),
            )

        self.embeddings = _module(
            word_embeddings=_embedding(config.vocab_size, width),
            position_embeddings=_embedding(config.max_position_embeddings, width),
            token_type_embeddings=_embedding(config.type_vocab_size, width),
            LayerNorm=norm(),
        )
        self.encoder = _module(layer=nn.ModuleList(layer() for _ in range(config.num_hidden_layers)))

    @classmethod
    def load(cls, folder: Path) -> "Bert":
        """The encoder in a Hugging Face folder of type bert, in float32. Raises ValueError for one of another type or
        activation."""
        config = SimpleNamespace(**read_facts(folder / CONFIG))
        if (config.model_type, config.hidden_act) != ("bert", "gelu"):
            raise ValueError(
                f"{folder} holds a model of type {config.model_type} with {config.hidden_act}; bert with gelu is needed"
            )
        encoder = cls(config)
        stored = load_file(folder / WEIGHTS)  # has a pooler and position numbers besides, which are not used
        encoder.load_state_dict({name: stored[name] for name in encoder.state_dict()}, assign=True)
        return encoder.eval()


@torch.no_grad()
def mean_states(bert: Any, rows: Sequence[Sequence[int]], layers: Sequence[int] = ()) -> Tensor:
    """The mean token states of n texts after each of `layers` (numbers from 0; none: after the last), (n, layers,
    width) float32, the same bits for a text whatever the other texts are. bert: a Bert or a BertModel; rows: the token
    ids of each text."""
    kept, words = [*layers] or [len(bert.encoder.layer) - 1], bert.embeddings.word_embeddings.weight
    found = torch.zeros(len(rows), len(kept), words.shape[1])
    size = GPU_TOKENS if words.is_cuda else TOKENS if words.dtype == torch.float32 else HALF_TOKENS
    for indices in passes([len(row) for row in rows], size):
        tokens, places, groups = _pack([rows[index] for index in indices], size)
        states = _embed(bert.embeddings, tokens.to(words.device), places.to(words.device))
        for number in range(max(kept) + 1):
            states = _layer(bert.encoder.layer[number], states, groups, bert.config.num_attention_heads)
            if number in kept:
                found[indices, kept.index(number)] = torch.cat([_means(states, *group) for group in groups]).cpu()
    return found


def _pack(rows: Sequence[Sequence[int]], size: int) -> tuple[Tensor, Tensor, list[Group]]:
    """The tokens of texts, shortest first, and their positions within their texts, both padded with 0 to `size`; and
    the groups of texts."""
    groups, places, start = [], [], 0
    for length, texts in zip(*np.unique([len(row) for row in rows], return_counts=True), strict=True):
        groups.append((slice(start, start + int(length * texts)), int(texts)))
        places.append(torch.arange(length).repeat(texts))
        start = groups[-1][0].stop
    filled = torch.zeros(2, max(start, size), dtype=torch.long)
    filled[0, :start] = torch.tensor([token for row in rows for token in row])
    filled[1, :start] = torch.cat(places)
    return filled[0], filled[1], groups


def _embed(embeddings: Any, tokens: Tensor, places: Tensor) -> Tensor:
    """The embeddings of tokens, of their places and of the first segment, (tokens, width)."""
    words = embeddings.word_embeddings(tokens) + embeddings.token_type_embeddings.weight[0]
    return embeddings.LayerNorm(words + embeddings.position_embeddings(places))


def _layer(layer: Any, states: Tensor, groups: Sequence[Group], heads: int) -> Tensor:
    """States (tokens, width) -> the same shape: attention within each text, then the perceptron."""
    attention = layer.attention.self
    parts = [part(states).unflatten(1, (heads, -1)) for part in (attention.query, attention.key, attention.value)]
    mixed = torch.zeros_like(parts[0])
    for rows, texts in groups:
        # Contiguous, as products of several texts make them anyway; one text alone would use another kernel.
        query, key, value = (part[rows].unflatten(0, (texts, -1)).transpose(1, 2).contiguous() for part in parts)
        weights = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5  # (texts, heads, length, length)
        mixed[rows] = (weights.softmax(-1) @ value).transpose(1, 2).flatten(0, 1)
    states = layer.attention.output.LayerNorm(layer.attention.output.dense(mixed.flatten(1)) + states)
    inner = gelu(layer.intermediate.dense(states))
    return layer.output.LayerNorm(layer.output.dense(inner) + states)


def _means(states: Tensor, rows: slice, texts: int) -> Tensor:
    return states[rows].unflatten(0, (texts, -1)).float().mean(1)


def _module(**children: nn.Module) -> nn.Module:
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


def _embedding(rows: int, width: int) -> nn.Embedding:
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))
