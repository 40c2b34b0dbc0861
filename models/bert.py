"""A BERT encoder as transformers' BertModel computes it for labelling: eager attention, no dropout, no pooler. The same
weights under the same names give the same numbers.

Classifiers are loaded in each command, and importing BertModel takes five seconds of a processor; training still uses
BertModel, whose dropout draws other random numbers than another implementation would."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from models.stored_tensors import read_facts

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Embeddings(nn.Module):
    """The embeddings of tokens, (batch, length) -> (batch, length, width): of word, place and the first segment."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.word_embeddings = _embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = _embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = _embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, tokens: Tensor) -> Tensor:
        places = self.position_embeddings.weight[: tokens.shape[1]]
        return self.LayerNorm(self.word_embeddings(tokens) + self.token_type_embeddings.weight[0] + places)


class SelfAttention(nn.Module):
    """Multi-head attention, states (batch, length, width) -> the same shape."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.heads, self.width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (
            part(states).unflatten(2, (self.heads, self.width)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        weights = query @ key.transpose(2, 3) * self.width**-0.5  # (batch, heads, length, length)
        weights = (weights if mask is None else weights + mask).softmax(-1)
        return (weights @ value).transpose(1, 2).flatten(2)


class Sum(nn.Module):
    """A linear layer with a residual connection and layer normalisation."""

    def __init__(self, config: SimpleNamespace, inner: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, states: Tensor, before: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(states) + before)


class Attention(nn.Module):
    """Self-attention and its sum."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = Sum(config, config.hidden_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(states, mask), states)


class Intermediate(nn.Module):
    """The wide layer of the perceptron."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(self, states: Tensor) -> Tensor:
        return nn.functional.gelu(self.dense(states))


class Layer(nn.Module):
    """Attention, then the perceptron."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Sum(config, config.intermediate_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        states = self.attention(states, mask)
        return self.output(self.intermediate(states), states)


class Encoder(nn.Module):
    """The layers, in their order."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Bert(nn.Module):
    """A BERT encoder with BertModel's call, which returns `last_hidden_state` alone."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Any:
        """input_ids (batch, length); attention_mask the same shape, 0 where there is padding."""
        states, mask = self.embeddings(input_ids), None
        if attention_mask is not None:
            least = torch.finfo(states.dtype).min
            mask = torch.zeros_like(attention_mask, dtype=states.dtype)
            mask = mask.masked_fill(attention_mask == 0, least)[:, None, None, :]
        for layer in self.encoder.layer:
            states = layer(states, mask)
        return SimpleNamespace(last_hidden_state=states)

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


def _embedding(rows: int, width: int) -> nn.Embedding:
    """An embedding with uninitialised weights, which are loaded afterwards, so that none need to be drawn."""
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))
