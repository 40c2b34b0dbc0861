"""Hugging Face's names and shapes of a decoder's weights and settings, for the three types that it can be saved as."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from models.stored_tensors import ANEW, check, read, read_facts, write_facts

if TYPE_CHECKING:
    from torch import Tensor

CONFIG, WEIGHTS = "config.json", "model.safetensors"
ADAPTER = "adapter_config.json"  # in the place of config.json in a folder that has adapters alone


class Layout(NamedTuple):
    """One type of Hugging Face model. Names are ours: theirs."""

    settings: dict[str, str]
    dropouts: tuple[str, ...]  # one rate here, several there
    fixed: dict[str, Any]  # what the decoder takes for granted
    modules: dict[str, str]
    block: str
    block_modules: dict[str, str]
    prefix: str  # of all names but the head's; a file of a bare model lacks it
    transposed: bool  # whether the weights in blocks are (in, out) instead of (out, in)


_GPT1 = Layout(
    settings={
        "vocab_size": "vocab_size",
        "positions": "n_positions",
        "width": "n_embd",
        "layers": "n_layer",
        "heads": "n_head",
        "eps": "layer_norm_epsilon",
    },
    dropouts=("resid_pdrop", "embd_pdrop", "attn_pdrop"),
    fixed={"model_type": "openai-gpt", "architectures": ["OpenAIGPTLMHeadModel"], "afn": "gelu"},
    modules={"token_embedding": "tokens_embed", "position_embedding": "positions_embed"},
    block="h",
    block_modules={
        "attention_in": "attn.c_attn",
        "attention_out": "attn.c_proj",
        "attention_norm": "ln_1",
        "mlp_in": "mlp.c_fc",
        "mlp_out": "mlp.c_proj",
        "mlp_norm": "ln_2",
    },
    prefix="transformer.",
    transposed=True,
)
_GPT2 = _GPT1._replace(
    settings=_GPT1.settings | {"inner": "n_inner"},
    fixed={
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
    },
    modules={"token_embedding": "wte", "position_embedding": "wpe", "final_norm": "ln_f"},
)
_MINILM = Layout(
    settings={
        "vocab_size": "vocab_size",
        "positions": "max_position_embeddings",
        "width": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "inner": "intermediate_size",
        "eps": "layer_norm_eps",
    },
    dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
    fixed={
        "model_type": "bert-generation",
        "architectures": ["BertGenerationDecoder"],
        "hidden_act": "gelu",
        "is_decoder": True,
    },
    modules={
        "token_embedding": "embeddings.word_embeddings",
        "position_embedding": "embeddings.position_embeddings",
        "embedding_norm": "embeddings.LayerNorm",
    },
    block="encoder.layer",
    block_modules={
        "attention_in": "attention.self",
        "attention_out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "mlp_in": "intermediate.dense",
        "mlp_out": "output.dense",
        "mlp_norm": "output.LayerNorm",
    },
    prefix="bert.",
    transposed=False,
)
LAYOUTS = {"gpt1": _GPT1, "gpt2": _GPT2, "minilm": _MINILM}


def is_adapter(folder: Path) -> bool:
    """Return whether a folder has the configuration of an adapter."""
    return (folder / ADAPTER).is_file()


def base_of(folder: Path) -> str:
    """The name or folder of the model that the adapter of a folder belongs to."""
    return str(read_facts(folder / ADAPTER, ["base_model_name_or_path"])["base_model_name_or_path"])


def read_settings(folder: Path) -> dict[str, Any]:
    """The settings of a decoder, from a folder's config.json.

    Raises ValueError when its model is of another type, or of a kind of that type that the decoder is not."""
    config = read_facts(folder / CONFIG, ["model_type"])
    kinds = {layout.fixed["model_type"]: kind for kind, layout in LAYOUTS.items()}
    if config["model_type"] not in kinds:
        raise ValueError(f"{folder} holds a model of type {config['model_type']!r}; allowed: {', '.join(kinds)}")
    kind = kinds[config["model_type"]]
    layout = LAYOUTS[kind]
    for name, value in layout.fixed.items():
        if name != "architectures" and config.get(name, value) != value:
            raise ValueError(f"{folder / CONFIG} has {name}={config[name]!r}; the decoder computes {name}={value!r}")
    return {"kind": kind, "dropout": config.get(layout.dropouts[0], 0.1), **_shape(layout, config, folder)}


def read_encoder_settings(folder: Path) -> dict[str, Any]:
    """The settings of the decoder that a BERT-type encoder can become."""
    config = read_facts(folder / CONFIG, ["model_type"])
    if config["model_type"] != "bert":
        raise ValueError(f"{folder} holds a model of type {config['model_type']!r}, not a BERT-type encoder")
    return {"kind": "minilm", **_shape(_MINILM, config, folder)}


def read_tensors(folder: Path, kind: str, names: Iterable[str]) -> "dict[str, Tensor]":
    """The tensors of the given names (ours) from a folder's model.safetensors, in float32. Raises ValueError for a file
    that is absent, damaged or without one of them."""
    import torch

    path = folder / WEIGHTS
    stored = read(path)
    prefix = LAYOUTS[kind].prefix
    bare = not any(name.startswith(prefix) for name in stored)
    tensors = {}
    for name in names:
        theirs = [other.removeprefix(prefix) if bare else other for other in _their_names(kind, name)]
        check(path, stored, theirs)
        parts = [stored[other].float() for other in theirs]
        tensors[name] = _turned(kind, name, torch.cat(parts) if len(parts) > 1 else parts[0])
    return tensors


def write(folder: Path, settings: Mapping[str, Any], tensors: "Mapping[str, Tensor]", facts: Mapping[str, Any]) -> None:
    """Write config.json, with facts added, and model.safetensors."""
    from safetensors.torch import save_file

    kind, layout = settings["kind"], LAYOUTS[settings["kind"]]
    config = {
        **layout.fixed,
        **{theirs: settings[ours] for ours, theirs in layout.settings.items()},
        **dict.fromkeys(layout.dropouts, settings["dropout"]),
        "tie_word_embeddings": True,
        "dtype": "float32",
        **facts,
    }
    stored = {}
    for name, tensor in tensors.items():
        theirs = _their_names(kind, name)
        for other, part in zip(theirs, _turned(kind, name, tensor.float()).chunk(len(theirs)), strict=True):
            stored[other] = part.contiguous().clone()  # parts of one tensor share its memory
    write_facts(folder / CONFIG, config)
    save_file(stored, folder / WEIGHTS, metadata={"format": "pt"})


def _shape(layout: Layout, config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The sizes of a decoder by a config.json, under this project's names. Raises ValueError where a size is absent or
    no positive number."""
    sizes: dict[str, Any] = {theirs: config.get(theirs) for theirs in layout.settings.values()}
    optional = {"n_inner"}  # null, or left out, in configs of GPT
    for name, size in sizes.items():
        if not (name in optional and size is None) and not _is_size(size, name == layout.settings["eps"]):
            raise ValueError(f"{folder / CONFIG} has {name}={size!r}; a positive number is needed; {ANEW}")
    shape = {ours: sizes[theirs] for ours, theirs in layout.settings.items() if sizes[theirs] is not None}
    return {"inner": 4 * shape["width"], **shape}


def _is_size(value: object, fractional: bool) -> bool:
    return isinstance(value, (int, float) if fractional else int) and not isinstance(value, bool) and value > 0


def _their_names(kind: str, name: str) -> list[str]:
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


def _turned(kind: str, name: str, tensor: "Tensor") -> "Tensor":
    """A block's matrix, transposed where Hugging Face stores it as (in, out); any other tensor as it is."""
    return tensor.T.contiguous() if _is_turned(kind, name, tensor.ndim) else tensor


def _is_turned(kind: str, name: str, dimensions: int) -> bool:
    return LAYOUTS[kind].transposed and name.startswith("blocks.") and dimensions == 2
