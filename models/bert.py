"""A BERT encoder that reads texts: the mean token state of each, as transformers' BertModel computes it.

Each command loads classifiers, and importing BertModel takes five seconds. It still trains them: its dropout draws
other random numbers than another implementation would."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from models.stored_tensors import read_facts

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TOKENS = 2048  # in one batch; beyond it the activations of a small encoder no longer fit the cache of a core
GPU_TOKENS = 65_536  # of a batch on a GPU


def token_batches(lengths: Sequence[int], tokens: int = TOKENS, one_length: bool = False) -> Iterator[np.ndarray]:
    """Indices of texts, shortest first, in batches of at most `tokens` tokens once they are padded to the longest; a
    longer text is a batch of its own. one_length: a batch has texts of one length, which need no padding."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end, index in enumerate(order):
        is_other = one_length and lengths[index] != lengths[order[start]]
        if end > start and (is_other or (end + 1 - start) * lengths[index] > tokens):
            yield order[start:end]
            start = end
    if len(order):
        yield order[start:]


def pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor | None]:
    """Token ids (batch, longest) and their mask (batch, longest), None when nothing had to be padded."""
    longest = max(map(len, rows))
    tokens = torch.full((len(rows), longest), padding)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
    if min(map(len, rows)) == longest:
        return tokens, None
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, (torch.arange(longest) < lengths[:, None]).long()


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
    width) float32. bert: a Bert or a BertModel; rows: the token ids of each text."""
    kept, words = [*layers] or [len(bert.encoder.layer) - 1], bert.embeddings.word_embeddings.weight
    found = torch.zeros(len(rows), len(kept), words.shape[1])
    for indices in token_batches([len(row) for row in rows], GPU_TOKENS if words.is_cuda else TOKENS):
        tokens, mask = pad([rows[index] for index in indices], 0)
        tokens = tokens.to(words.device)
        present = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask.to(words.device).bool()
        seen = None if mask is None else present[:, None, None, :]  # (batch, heads, queries, keys)
        shares = (present / present.sum(1, keepdim=True))[:, :, None]
        states = _embed(bert.embeddings, tokens)
        for number in range(max(kept) + 1):
            states = _layer(bert.encoder.layer[number], states, seen, bert.config.num_attention_heads)
            if number in kept:
                found[indices, kept.index(number)] = (states.float() * shares).sum(1).cpu()
    return found


def _embed(embeddings: Any, tokens: Tensor) -> Tensor:
    """The embeddings of tokens (batch, length), of their places and of the first segment, (batch, length, width)."""
    words = embeddings.word_embeddings(tokens) + embeddings.token_type_embeddings.weight[0]
    return embeddings.LayerNorm(words + embeddings.position_embeddings.weight[: tokens.shape[1]])


def _layer(layer: Any, states: Tensor, seen: Tensor | None, heads: int) -> Tensor:
    """States (batch, length, width) -> the same shape: attention to the tokens that are `seen`, then the perceptron."""
    attention = layer.attention.self
    parts = (attention.query, attention.key, attention.value)
    query, key, value = (part(states).unflatten(2, (heads, -1)).transpose(1, 2) for part in parts)
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=seen).transpose(1, 2).flatten(2)
    states = layer.attention.output.LayerNorm(layer.attention.output.dense(mixed) + states)
    inner = gelu(layer.intermediate.dense(states))
    return layer.output.LayerNorm(layer.output.dense(inner) + states)


def _module(**children: nn.Module) -> nn.Module:
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


def _embedding(rows: int, width: int) -> nn.Embedding:
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))
