"""Memory and time of models, computed from their architecture: the tables of docs/models.md.

    python benchmarks/footprint.py              the tables
    python benchmarks/footprint.py --measure    and what one training step of GPT-1's size takes of memory here

Nothing is downloaded: the shapes are those of the published models, built without weights."""

import argparse
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BartConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    OpenAIGPTConfig,
    PreTrainedConfig,
    T5Config,
)

GIB = 2**30
WEIGHT, GRADIENT, ADAMW = 4, 4, 8  # bytes of a parameter that is trained, all in float32; AdamW keeps two moments
RANK = 8
ITERATIONS, BATCH = 100_000, 64
STEP_OF_GPT1 = 309e9  # FLOP of the matrix products, measured by benchmarks/train.py (RESULTS.md)
SHARE = 0.10  # of a GPU's peak that short texts in batches of 64 are assumed to reach
LAUNCHES = 15e-3  # seconds: 1,500 kernels of a step at 10 microseconds, below which none is assumed to come
GPUS: Mapping[str, float] = {  # dense bfloat16 with tensor cores, FLOP/s, from the makers' data sheets
    "RTX 3090": 71e12,
    "RTX 4090": 165e12,
    "A100": 312e12,
    "H100 SXM": 989e12,
}


def smollm2(width: int, layers: int, heads: int, keys: int, inner: int) -> LlamaConfig:
    """keys: heads of keys and values."""
    return LlamaConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=keys,
        intermediate_size=inner,
        vocab_size=49152,
        tie_word_embeddings=True,
    )


SHAPES: Mapping[str, PreTrainedConfig] = {
    "openai-community/openai-gpt": OpenAIGPTConfig(),
    "distilbert/distilgpt2": GPT2Config(n_layer=6),
    "openai-community/gpt2": GPT2Config(),
    "EleutherAI/pythia-160m": GPTNeoXConfig(
        hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, vocab_size=50304
    ),
    "EleutherAI/pythia-410m": GPTNeoXConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, vocab_size=50304
    ),
    "HuggingFaceTB/SmolLM2-135M": smollm2(576, 30, 9, 3, 1536),
    "HuggingFaceTB/SmolLM2-360M": smollm2(960, 32, 15, 5, 2560),
    "HuggingFaceTB/SmolLM2-1.7B": smollm2(2048, 24, 32, 32, 8192),
    "meta-llama/Llama-3.2-1B": LlamaConfig(
        hidden_size=2048,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        intermediate_size=8192,
        vocab_size=128256,
        tie_word_embeddings=True,
    ),
    "google-t5/t5-small": T5Config(),
    "facebook/bart-base": BartConfig(
        d_model=768,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
    ),
    "facebook/bart-large": BartConfig(),
}


class Footprint(NamedTuple):
    """Bytes, activations not counted."""

    parameters: int
    adapters: int  # parameters of low-rank adapters of rank RANK beside each linear layer but the head

    @property
    def probed(self) -> int:
        return WEIGHT * self.parameters

    @property
    def trained(self) -> int:
        """With all weights."""
        return (WEIGHT + GRADIENT + ADAMW) * self.parameters

    @property
    def adapted(self) -> int:
        """By low-rank adapters: the base has neither gradients nor moments."""
        return WEIGHT * self.parameters + (WEIGHT + GRADIENT + ADAMW) * self.adapters


def footprint(config: PreTrainedConfig) -> Footprint:
    """Of a model of this shape."""
    model = without_weights(config)
    counted = sum(parameter.numel() for parameter in model.parameters())
    head = model.get_output_embeddings()
    return Footprint(counted, sum(RANK * sum(sizes(layer)) for layer in model.modules() if layer is not head))


def sizes(layer: nn.Module) -> tuple[int, ...]:
    """The input and output sizes of a linear layer; none for another module."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    weight = getattr(layer, "weight", None)
    return tuple(weight.shape) if type(layer).__name__ == "Conv1D" and weight is not None else ()


def without_weights(config: PreTrainedConfig) -> Any:
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    with torch.device("meta"):
        return kind.from_config(config)


def seconds_a_step(peak: float) -> float:
    """Of GPT-1's size on a GPU of this peak."""
    return max(STEP_OF_GPT1 / (SHARE * peak), LAUNCHES)


def memory_table() -> str:
    lines = [
        "| model | parameters, million | probed | all weights trained | adapters of rank 8 trained |",
        "|---|---|---|---|---|",
    ]
    for name, config in SHAPES.items():
        found = footprint(config)
        cells = [f"{size / GIB:.1f}" for size in (found.probed, found.trained, found.adapted)]
        lines.append(f"| {name} | {found.parameters / 1e6:.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def hours_table() -> str:
    lines = ["| GPU | peak, TFLOP/s | ms a step | 100,000 steps, hours |", "|---|---|---|---|"]
    for name, peak in GPUS.items():
        step = seconds_a_step(peak)
        lines.append(f"| {name} | {peak / 1e12:.0f} | {1000 * step:.0f} | {ITERATIONS * step / 3600:.1f} |")
    return "\n".join(lines)


def measured() -> str:
    """The memory of the process after each part of a training step in float32, in bytes a parameter."""
    before = resident()
    model = AutoModelForCausalLM.from_config(SHAPES["openai-community/openai-gpt"])
    count = sum(parameter.numel() for parameter in model.parameters())
    held = [resident()]
    optimiser = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():  # as a backward pass leaves them, without its activations
        parameter.grad = torch.zeros_like(parameter).add_(1e-3)
    held.append(resident())
    optimiser.step()
    held.append(resident())
    parts = [(after - earlier) / count for earlier, after in zip([before, *held], held, strict=False)]
    named = ", ".join(f"{name} {size:.2f}" for name, size in zip(("weights", "gradients", "AdamW"), parts, strict=True))
    return f"GPT-1's size, {count / 1e6:.1f} million parameters, bytes each: {named}; together {sum(parts):.2f}"


def resident() -> int:
    """Bytes of memory that this process holds (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main(arguments: Sequence[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="also measure a training step here")
    given = parser.parse_args(arguments)
    said = "\n\n".join([memory_table(), hours_table(), *([measured()] if given.measure else [])])
    print(said)
    return said


if __name__ == "__main__":
    main()
