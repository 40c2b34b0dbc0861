"""Hugging Face's names and shapes of a decoder's weights and settings, for the three types that it can be saved as."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mitigate.models.stored_tensors import ANEW, read, read_facts, write_facts

if TYPE_CHECKING:
    from torch import Tensor

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def _named(ours: str, theirs: str) -> dict[str, str]:
    return dict(zip(ours.split(), theirs.split(), strict=True))


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


_SIZES = "vocab_size positions width layers heads eps"
_BLOCK = "attention_in attention_out attention_norm mlp_in mlp_out mlp_norm"
_GPT1 = Layout(
    settings=_named(_SIZES, "vocab_size n_positions n_embd n_layer n_head layer_norm_epsilon"),
    dropouts=("resid_pdrop", "embd_pdrop", "attn_pdrop"),
    fixed={"model_type": "openai-gpt", "architectures": ["OpenAIGPTLMHeadModel"], "afn": "gelu"},
    modules=_named("token_embedding position_embedding", "tokens_embed positions_embed"),
    block="h",
    block_modules=_named(_BLOCK, "attn.c_attn attn.c_proj ln_1 mlp.c_fc mlp.c_proj ln_2"),
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
    modules=_named("token_embedding position_embedding final_norm", "wte wpe ln_f"),
)
_MINILM = Layout(
    settings=_named(
        f"{_SIZES} inner",
        "vocab_size max_position_embeddings hidden_size num_hidden_layers num_attention_heads layer_norm_eps "
        "intermediate_size",
    ),
    dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
    fixed={
        "model_type": "bert-generation",
        "architectures": ["BertGenerationDecoder"],
        "hidden_act": "gelu",
        "is_decoder": True,
    },
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


def read_settings(folder: Path, *, of_encoder: bool = False) -> dict[str, Any]:
    """The settings of a decoder, from a folder's config.json; of_encoder: of one that a BERT-type encoder can become.

    Raises ValueError when its model is of another type, or of a kind of that type that the decoder is not."""
    config = read_facts(folder / CONFIG, ["model_type"])
    ours = {"bert": "minilm"} if of_encoder else {layout.fixed["model_type"]: kind for kind, layout in LAYOUTS.items()}
    if config["model_type"] not in ours:
        raise ValueError(f"{folder} holds a model of type {config['model_type']!r}; allowed: {', '.join(ours)}")
    kind = ours[config["model_type"]]
    layout = LAYOUTS[kind]
    for name, value in layout.fixed.items():
        if not of_encoder and name != "architectures" and config.get(name, value) != value:
            raise ValueError(f"{folder / CONFIG} has {name}={config[name]!r}; the decoder computes {name}={value!r}")
    shape = {name: config[theirs] for name, theirs in layout.settings.items() if config.get(theirs) is not None}
    if absent := [layout.settings[name] for name in _SIZES.split() if not shape.get(name)]:
        raise ValueError(f"{folder / CONFIG} lacks {', '.join(absent)}; {ANEW}")
    return {"kind": kind, "dropout": config.get(layout.dropouts[0], 0.1), "inner": 4 * shape["width"], **shape}


def read_tensors(folder: Path, kind: str, names: Iterable[str]) -> "dict[str, Tensor]":
    """The tensors of the given names (ours) from a folder's model.safetensors, in float32. Raises ValueError for a file
    that is absent, damaged or without one of them."""
    stored, prefix = read(folder / WEIGHTS), LAYOUTS[kind].prefix
    if not any(name.startswith(prefix) for name in stored):
        stored = {prefix * (not name.startswith("lm_head")) + name: tensor for name, tensor in stored.items()}
    try:
        return {name: tensor_of(stored, kind, name) for name in names}
    except KeyError as error:
        raise ValueError(f"the weights {folder / WEIGHTS} lack {error}; {ANEW}") from error


def tensor_of(stored: "Mapping[str, Tensor]", kind: str, name: str) -> "Tensor":
    """A decoder's tensor in float32, by Hugging Face's tensors. Raises KeyError where one is absent."""
    import torch

    return _turned(kind, name, torch.cat([stored[other].float() for other in _their_names(kind, name)]))


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
    is_turned = LAYOUTS[kind].transposed and name.startswith("blocks.") and tensor.ndim == 2
    return tensor.T.contiguous() if is_turned else tensor
