"""One transformer decoder that is GPT-1, GPT-2 or a causal MiniLM by configuration.

It runs on flat rows, a token each, and leaves to an `Attention` which row attends to which: `Padded` texts in training,
or texts with a cache (`Cached`), which are continued a token at a time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from mitigate.models.stored_tensors import ANEW, CONFIG, WEIGHTS, read, read_facts, write_facts

MASKED = -1e30  # a masked score; finite, so that a row that attends to nothing still gets numbers
Kind = Literal["gpt1", "gpt2", "minilm"]
Attention = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""A function of the layer's number, queries, keys and values, (rows, heads, head_width) each, that returns for each row
the weighted sum of the values of the rows that it attends to, of the same shape."""


class Padded:
    """Attention among the rows of texts of one length. Each row attends to itself and the earlier rows of its text, or
    where a mask (texts, length, length) is True. (An `Attention`.)

    Plain products: on a CPU PyTorch's own attention takes 10 times as long in bf16 without dropout."""

    def __init__(self, texts: int, dropout: float, mask: Tensor | None = None) -> None:
        self.texts = texts
        self.dropout = dropout
        self.mask = mask

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (rows.unflatten(0, (self.texts, -1)).transpose(1, 2) for rows in (query, key, value))
        length, width = query.shape[2:]
        mask = torch.ones(length, length, device=query.device).tril() if self.mask is None else self.mask[:, None]
        scores = (query @ key.mT * width**-0.5).masked_fill(mask == 0, MASKED)
        mixed = F.dropout(scores.softmax(-1), self.dropout) @ value  # (texts, heads, length, head_width)
        return mixed.transpose(1, 2).flatten(0, 1)  # (rows, heads, head_width)


class Cached:
    """Attention of texts that are continued a token at a time, with a KV cache. (An `Attention`.)"""

    def __init__(self, bias: Tensor) -> None:
        self.bias = bias  # (texts, queries, keys), added to the scores
        self.keys: list[Tensor] = []  # by layer, (texts, heads, keys, head_width)
        self.values: list[Tensor] = []

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        texts = len(self.bias)
        query, key, value = (part.unflatten(0, (texts, -1)).transpose(1, 2) for part in (query, key, value))
        if layer == len(self.keys):
            self.keys.append(key)
            self.values.append(value)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key], 2)
            self.values[layer] = torch.cat([self.values[layer], value], 2)
        scores = query @ self.keys[layer].mT * query.shape[-1] ** -0.5 + self.bias[:, None].to(query.dtype)
        return (scores.softmax(-1) @ self.values[layer]).transpose(1, 2).flatten(0, 1)


@dataclass(frozen=True)
class DecoderConfig:
    """The shape of a decoder; the defaults are those of GPT-1.

    kind: gpt2 has norms before each sublayer and one at the end, the others after each sublayer's sum; minilm has a
    norm of the embeddings, an exact GELU in place of OpenAI's approximation, and a bias of the head."""

    kind: Kind = "gpt1"
    vocab_size: int = 40478
    positions: int = 512
    width: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072  # width between the two layers of the MLP
    dropout: float = 0.1
    eps: float = 1e-5


class Block(nn.Module):
    """Attention and MLP, each added to what went in."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm_first = config.kind == "gpt2"
        self.attention_in = nn.Linear(config.width, 3 * config.width)  # query, key and value
        self.attention_out = nn.Linear(config.width, config.width)
        self.attention_norm = nn.LayerNorm(config.width, eps=config.eps)
        self.mlp_in = nn.Linear(config.width, config.inner)
        self.gelu = nn.GELU(approximate="none" if config.kind == "minilm" else "tanh")
        self.mlp_out = nn.Linear(config.inner, config.width)
        self.mlp_norm = nn.LayerNorm(config.width, eps=config.eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: Tensor, layer: int, attention: Attention) -> Tensor:  # (rows, width)
        if self.norm_first:
            hidden = hidden + self._attention(self.attention_norm(hidden), layer, attention)
            return hidden + self._mlp(self.mlp_norm(hidden))
        hidden = self.attention_norm(hidden + self._attention(hidden, layer, attention))
        return self.mlp_norm(hidden + self._mlp(hidden))

    def _attention(self, hidden: Tensor, layer: int, attention: Attention) -> Tensor:
        query, key, value = self.attention_in(hidden).unflatten(1, (3, self.heads, -1)).unbind(1)
        return self.dropout(self.attention_out(attention(layer, query, key, value).flatten(1)))

    def _mlp(self, hidden: Tensor) -> Tensor:
        return self.dropout(self.mlp_out(self.gelu(self.mlp_in(hidden))))


class Decoder(nn.Module):
    """Tokens at positions to hidden states, and hidden states to logits over the next token."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        norm_first, is_minilm = config.kind == "gpt2", config.kind == "minilm"
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.width)
        self.position_embedding = nn.Embedding(config.positions, config.width)
        self.embedding_norm = nn.LayerNorm(config.width, eps=config.eps) if is_minilm else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.final_norm = nn.LayerNorm(config.width, eps=config.eps) if norm_first else None
        self.bias = nn.Parameter(torch.zeros(config.vocab_size)) if is_minilm else None
        self.dropout = nn.Dropout(config.dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor, positions: Tensor, attention: Attention) -> Tensor:
        """tokens (rows,), positions (rows,) -> hidden (rows, width)."""
        hidden = self.token_embedding(tokens) + self.position_embedding(positions)
        if self.embedding_norm is not None:
            hidden = self.embedding_norm(hidden)
        hidden = self.dropout(hidden)
        for layer, block in enumerate(self.blocks):
            hidden = block(hidden, layer, attention)
        return hidden if self.final_norm is None else self.final_norm(hidden)

    def logits(self, hidden: Tensor, tokens: Tensor | None = None) -> Tensor:
        """(rows, width) -> (rows, vocab_size), or (rows, len(tokens)) of these tokens alone."""
        weight, bias = self.token_embedding.weight, self.bias
        if tokens is None:
            return F.linear(hidden, weight, bias)
        return F.linear(hidden, F.embedding(tokens, weight), None if bias is None else bias[tokens])

    @torch.no_grad()
    def grow(self, vocab_size: int) -> None:
        """Add words up to vocab_size, with weights that depend on vocab_size alone. The old words keep theirs."""
        old, new = self.token_embedding.weight, vocab_size - self.config.vocab_size
        generator = torch.Generator().manual_seed(vocab_size)
        added = 0.02 * torch.randn(new, self.config.width, generator=generator).to(old)
        self.token_embedding = nn.Embedding(vocab_size, self.config.width, _weight=torch.cat([old, added]))
        if self.bias is not None:
            self.bias = nn.Parameter(F.pad(self.bias, (0, new)))
        self.config = replace(self.config, vocab_size=vocab_size)

    @classmethod
    def from_encoder(cls, folder: Path, dropout: float = 0.1) -> "Decoder":
        """A decoder that starts from the weights of all-MiniLM-L6-v2; its head is the word embeddings and a bias of 0.

        A decoder has no token types: the row of type 0, which the encoder adds to every position, is added to the
        position embeddings once and for all."""
        with torch.device("meta"):  # no random weights are drawn
            decoder = cls(DecoderConfig(**read_settings(folder, of_encoder=True) | {"dropout": dropout}))
        names = [name for name in decoder.state_dict() if name != "bias"]
        tensors = {**read_tensors(folder, "minilm", names), "bias": torch.zeros(decoder.config.vocab_size)}
        decoder.load_state_dict(tensors, assign=True)
        with safe_open(folder / WEIGHTS, "pt") as file:
            decoder.position_embedding.weight.data += file.get_tensor("embeddings.token_type_embeddings.weight")[0]
        return decoder

    @classmethod
    def load(cls, folder: Path, dropout: float | None = None) -> "Decoder":
        """The decoder of a Hugging Face folder of type openai-gpt, gpt2 or bert-generation, in float32. dropout: of
        training; None: as the folder has it.

        Raises ValueError for a folder of another type, and for weights that are absent, damaged or of another shape."""
        settings = read_settings(folder)
        settings |= {} if dropout is None else {"dropout": dropout}
        with torch.device("meta"):  # no random weights are drawn
            decoder = cls(DecoderConfig(**settings))
        tensors = read_tensors(folder, settings["kind"], decoder.state_dict())
        try:
            decoder.load_state_dict(tensors, assign=True)
        except RuntimeError as error:
            path, config, reason = folder / WEIGHTS, folder / CONFIG, " ".join(str(error).split())
            raise ValueError(f"the weights {path} are not those that {config} describes ({reason}); {ANEW}") from error
        return decoder.eval()

    def save(self, folder: Path, **facts: object) -> None:
        """Write config.json and model.safetensors as AutoModelForCausalLM reads them. facts: added to the config."""
        settings = vars(self.config)
        kind, layout = settings["kind"], LAYOUTS[settings["kind"]]
        config = {
            "model_type": layout.model_type,
            "architectures": [layout.architecture],
            **layout.fixed,
            **{theirs: settings[ours] for ours, theirs in layout.settings.items()},
            **dict.fromkeys(layout.dropouts, settings["dropout"]),
            "dtype": "float32",
            **facts,
        }
        stored = {}
        for name, tensor in self.state_dict().items():
            names = _stored_names(kind, name)
            for stored_name, part in zip(names, _transposed(kind, name, tensor.float()).chunk(len(names)), strict=True):
                stored[stored_name] = part.contiguous().clone()  # parts of one tensor share its memory
        write_facts(folder / CONFIG, config)
        save_file(stored, folder / WEIGHTS, metadata={"format": "pt"})


class DecoderReading:
    """The texts that a decoder has read. (A `Reading` of beam.py.)

    masked_token: a token that nothing attends to within a prompt: the padding between its parts; None: no token."""

    def __init__(self, decoder: Decoder, masked_token: int | None = None) -> None:
        self.decoder = decoder
        self.masked_token = -1 if masked_token is None else masked_token  # -1 is no token

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length) in one batch."""
        mask = (prompts != self.masked_token)[:, None].repeat(1, prompts.shape[1], 1).tril()  # (n, length, length)
        self.attention = Cached(torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, MASKED))
        self.positions = torch.arange(prompts.shape[1], device=prompts.device).expand_as(prompts)
        return self._read(prompts)

    def extend(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Append a token to each of the rows."""
        cached = self.attention
        cached.keys = [key[rows] for key in cached.keys]
        cached.values = [value[rows] for value in cached.values]
        # The token attends to all that the last one did, and to itself.
        cached.bias = F.pad(cached.bias[rows, -1:], (0, 1))
        self.positions = self.positions[rows, -1:] + 1
        return self._read(tokens[:, None])

    def _read(self, tokens: Tensor) -> Tensor:
        hidden = self.decoder(tokens.flatten(), self.positions.flatten(), self.attention)
        return self.decoder.logits(hidden.unflatten(0, tokens.shape)[:, -1])


# Hugging Face's names and shapes of weights and settings, for the three types that it can be saved as


def _named(ours: str, theirs: str) -> dict[str, str]:
    return dict(zip(ours.split(), theirs.split(), strict=True))


class Layout(NamedTuple):
    """One type of Hugging Face model. Names are ours: theirs."""

    settings: dict[str, str]
    dropouts: tuple[str, ...]  # one rate here, several there
    model_type: str
    architecture: str
    fixed: dict[str, Any]  # the only values of these settings that the decoder computes
    modules: dict[str, str]
    block: str
    block_modules: dict[str, str]
    prefix: str  # of all names but the head's; a file of a bare model lacks it
    transposed: bool  # whether the weights in blocks are (in, out) instead of (out, in)


_SIZES = "vocab_size positions width layers heads eps"
_BLOCK = "attention_in attention_out attention_norm mlp_in mlp_out mlp_norm"
_GPT1 = Layout(
    settings=_named(_SIZES, "vocab_size n_positions n_embd n_layer n_head layer_norm_epsilon"),
    dropouts=("resid_pdrop", "embd_pdrop", "attn_pdrop"),
    model_type="openai-gpt",
    architecture="OpenAIGPTLMHeadModel",
    fixed={"afn": "gelu", "tie_word_embeddings": True},
    modules=_named("token_embedding position_embedding", "tokens_embed positions_embed"),
    block="h",
    block_modules=_named(_BLOCK, "attn.c_attn attn.c_proj ln_1 mlp.c_fc mlp.c_proj ln_2"),
    prefix="transformer.",
    transposed=True,
)
_GPT2 = _GPT1._replace(
    settings=_GPT1.settings | {"inner": "n_inner"},
    model_type="gpt2",
    architecture="GPT2LMHeadModel",
    fixed={
        "tie_word_embeddings": True,
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
    },
    modules=_named("token_embedding position_embedding final_norm", "wte wpe ln_f"),
)
_MINILM = Layout(
    settings=_named(
        f"{_SIZES} inner",
        "vocab_size max_position_embeddings hidden_size num_hidden_layers num_attention_heads layer_norm_eps "
        "intermediate_size",
    ),
    dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
    model_type="bert-generation",
    architecture="BertGenerationDecoder",
    fixed={"hidden_act": "gelu", "is_decoder": True, "tie_word_embeddings": True},
    modules=_named(
        "token_embedding position_embedding embedding_norm",
        "embeddings.word_embeddings embeddings.position_embeddings embeddings.LayerNorm",
    ),
    block="encoder.layer",
    block_modules=_named(
        _BLOCK,
        "attention.self attention.output.dense attention.output.LayerNorm intermediate.dense output.dense "
        "output.LayerNorm",
    ),
    prefix="bert.",
    transposed=False,
)
LAYOUTS = {"gpt1": _GPT1, "gpt2": _GPT2, "minilm": _MINILM}


def unsupported(config: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """The settings of a Hugging Face config whose values the decoder does not compute, with those that it does."""
    return {name: value for name, value in layout.fixed.items() if config.get(name, value) != value}


def read_settings(folder: Path, *, of_encoder: bool = False) -> dict[str, Any]:
    """The settings of a decoder, from a folder's config.json; of_encoder: of one that a BERT-type encoder can become.

    Raises ValueError when its model is of another type, or of a kind of that type that the decoder is not."""
    config = read_facts(folder / CONFIG, ["model_type"])
    kinds = {"bert": "minilm"} if of_encoder else {layout.model_type: kind for kind, layout in LAYOUTS.items()}
    if config["model_type"] not in kinds:
        raise ValueError(f"{folder} holds a model of type {config['model_type']!r}; allowed: {', '.join(kinds)}")
    kind = kinds[config["model_type"]]
    layout = LAYOUTS[kind]
    for name, value in unsupported(config, layout).items():
        if not of_encoder:
            raise ValueError(f"{folder / CONFIG} has {name}={config[name]!r}; the decoder computes {name}={value!r}")
    shape = {name: config[theirs] for name, theirs in layout.settings.items() if config.get(theirs) is not None}
    if absent := [layout.settings[name] for name in _SIZES.split() if not shape.get(name)]:
        raise ValueError(f"{folder / CONFIG} lacks {', '.join(absent)}; {ANEW}")
    return {"kind": kind, "dropout": config.get(layout.dropouts[0], 0.1), "inner": 4 * shape["width"], **shape}


def read_tensors(folder: Path, kind: str, names: Iterable[str]) -> dict[str, Tensor]:
    """The tensors of the given names (ours) from a folder's model.safetensors, in float32. Raises ValueError for a file
    that is absent, damaged or without one of them."""
    stored, prefix = read(folder / WEIGHTS), LAYOUTS[kind].prefix
    if not any(name.startswith(prefix) for name in stored):
        stored = {prefix * (not name.startswith("lm_head")) + name: tensor for name, tensor in stored.items()}
    try:
        return {name: tensor_of(stored, kind, name) for name in names}
    except KeyError as error:
        raise ValueError(f"the weights {folder / WEIGHTS} lack {error}; {ANEW}") from error


def tensor_of(stored: Mapping[str, Tensor], kind: str, name: str) -> Tensor:
    """A decoder's tensor in float32, from Hugging Face's tensors. Raises KeyError where one is absent."""
    return _transposed(kind, name, torch.cat([stored[part].float() for part in _stored_names(kind, name)]))


def _stored_names(kind: str, name: str) -> list[str]:
    """Hugging Face's names of the parts of a decoder's tensor, in order: for BERT three where the decoder has query,
    key and value in one, otherwise one."""
    layout = LAYOUTS[kind]
    if name == "bias":
        return ["lm_head.bias"]
    module, parameter = name.rsplit(".", 1)
    if not module.startswith("blocks."):
        return [f"{layout.prefix}{layout.modules[module]}.{parameter}"]
    _, number, inside = module.split(".")
    theirs = f"{layout.prefix}{layout.block}.{number}.{layout.block_modules[inside]}"
    if kind == "minilm" and inside == "attention_in":
        return [f"{theirs}.{part}.{parameter}" for part in ("query", "key", "value")]
    return [f"{theirs}.{parameter}"]


def _transposed(kind: str, name: str, tensor: Tensor) -> Tensor:
    """A block's matrix, transposed where Hugging Face stores it as (in, out); any other tensor as it is."""
    is_transposed = LAYOUTS[kind].transposed and name.startswith("blocks.") and tensor.ndim == 2
    return tensor.T.contiguous() if is_transposed else tensor
