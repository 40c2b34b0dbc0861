"""Llamas computed on rows: the numbers, gradients and lists of transformers."""

import copy
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
from small_models import save_llama
from torch import Tensor
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from models.adapters import Adapters, begin_adapters
from models.language_model import LONGEST, LanguageModel
from models.llama import Llama, fits
from models.trainable import Learning

SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48, "vocab_size": 90}
HEADS = [
    {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": True},
    {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 24, "tie_word_embeddings": False},
]
ASKED = sorted(product([[3, 4], [5, 6, 7], [8]], [[9, 10, 2], [11, 2], [2]]))  # tails of each prompt
PROMPTS, TAILS = [prompt for prompt, _ in ASKED], [tail for _, tail in ASKED]
OUTPUT = torch.linspace(1, 2, sum(map(len, TAILS)))  # how much each token counts


def small(**settings: object) -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**{**SHAPE, **HEADS[0], **settings}))
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model.eval()


def one_by_one(model: LlamaForCausalLM) -> Tensor:
    """What transformers makes of each text by itself."""
    found = []
    for prompt, tail in zip(PROMPTS, TAILS, strict=True):
        logits = model(torch.tensor([[*prompt, *tail]])).logits[0, len(prompt) - 1 : -1]
        found.append(F.cross_entropy(logits.float(), torch.tensor(tail), reduction="none"))
    return torch.cat(found)


def gradients(model: LlamaForCausalLM, nll: Callable[[], Tensor]) -> dict[str, Tensor]:
    model.zero_grad()
    (nll() * OUTPUT).sum().backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("heads", HEADS, ids=["grouped and tied", "neither"])
def test_losses_and_gradients_are_those_of_transformers(heads: dict[str, object]) -> None:
    model = small(**heads)
    assert fits(model)
    torch.testing.assert_close(Llama(model).nll(PROMPTS, TAILS), one_by_one(model))
    expected = gradients(model, lambda: one_by_one(model))
    found = gradients(model, lambda: Llama(model).nll(PROMPTS, TAILS))
    torch.testing.assert_close(found, expected)
    assert set(found) == {name for name, _ in model.named_parameters()}
    Learning(checkpointing=True).begin_steps(model.train())
    torch.testing.assert_close(gradients(model, lambda: Llama(model).nll(PROMPTS, TAILS)), expected)


def test_in_bf16_losses_and_gradients_are_near_those_of_float32() -> None:
    """As near as those of transformers under autocast."""
    model = small()
    exact = gradients(model, lambda: one_by_one(model))
    with torch.autocast("cpu", torch.bfloat16):
        found, theirs = Llama(model).nll(PROMPTS, TAILS), one_by_one(model)
    torch.testing.assert_close(found, theirs, atol=0.03, rtol=0.01)
    assert found.dtype == torch.float32
    gaps = []
    for nll in (lambda: Llama(model).nll(PROMPTS, TAILS), lambda: one_by_one(model)):
        with torch.autocast("cpu", torch.bfloat16):
            rough = gradients(model, nll)
        gaps.append({name: float((rough[name] - exact[name]).norm() / exact[name].norm()) for name in exact})
    assert max(gaps[0].values()) < 1.5 * max(gaps[1].values()) < 0.1


def test_adapters_learn_the_same() -> None:
    model = begin_adapters(small(), Adapters(rank=2, targets=["q_proj", "down_proj"]))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight += 0.1
    assert fits(model)
    expected = gradients(model, lambda: one_by_one(model))
    assert expected
    assert all("lora" in name for name in expected)
    torch.testing.assert_close(gradients(model, lambda: Llama(model).nll(PROMPTS, TAILS)), expected)


@pytest.mark.parametrize("heads", HEADS, ids=["grouped and tied", "neither"])
def test_at_fixed_length_lists_are_those_of_generate(heads: dict[str, object], tmp_path: Path) -> None:
    model = LanguageModel(small(**heads), LanguageModel.load(save_llama(tmp_path, ["a lawyer"])).tokenizer)
    model.end = -1  # which no token is
    found = model.search(PROMPTS[::3], beams=6, max_length=5)
    how = {"num_beams": 6, "num_return_sequences": 6, "eos_token_id": None, "max_new_tokens": 5}
    for prompt, beams in zip(PROMPTS[::3], found, strict=True):
        said = model.model.generate(torch.tensor([prompt]), **how)[:, len(prompt) :]
        assert [list(beam.tokens) for beam in beams] == said.tolist()
    rough = copy.deepcopy(model).bfloat16().search(PROMPTS[:1], beams=2, max_length=2)
    assert rough[0][0].log_prob == pytest.approx(model.search(PROMPTS[:1], beams=2, max_length=2)[0][0].log_prob, 0.02)


def test_other_forms_and_long_texts_are_computed_by_transformers(tmp_path: Path) -> None:
    assert not fits(small(attention_bias=True))
    assert not fits(small(mlp_bias=True))
    assert not fits(small(attention_dropout=0.1))
    assert not fits(small(hidden_act="gelu"))
    assert not fits(small(rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}))
    tokenizer = LanguageModel.load(save_llama(tmp_path, ["a lawyer"])).tokenizer
    model = LanguageModel(small(max_position_embeddings=2 * LONGEST), tokenizer)
    prompt, tail = [3] * LONGEST, [4, 5, 2]
    assert model.nll([prompt, [3]], [tail, tail])[3:].tolist() == pytest.approx(
        model.nll([[3]], [tail]).tolist(), abs=1e-5
    )
