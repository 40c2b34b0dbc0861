"""Beam search with a transformers model's cache: against `generate` where stopping rules cannot differ, and against the
rule in plain words."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from small_models import save_llama, save_neox

from models.cached_search import CausalReading, cached_search
from models.language_model import LanguageModel
from models.top_tokens import largest

TEXTS = ["a lawyer is capable of winning a case", "a church is used for worship", "a nurse desires to help people"] * 3
ASKED = (["lawyer", "a big church", "nurse", "judge", "a church"], ["is a", "is used for", "desires", "has a", "has a"])
NEVER = -1  # no token ends a tail


@pytest.fixture(scope="module", params=[save_llama, save_neox])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    torch.manual_seed(0)
    save: Callable[[Path, list[str]], Path] = request.param
    model = LanguageModel.load(save(tmp_path_factory.mktemp(save.__name__), TEXTS))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
    return model


def test_at_fixed_length_lists_are_those_of_generate(model: LanguageModel) -> None:
    prompts = model.prompts(*ASKED)
    found = cached_search(
        partial(CausalReading, model.model), prompts, end=NEVER, device=model.model.device, beams=6, max_length=5
    )
    for prompt, beams in zip(prompts, found, strict=True):
        said = model.model.generate(
            torch.tensor([prompt]), num_beams=6, num_return_sequences=6, max_new_tokens=5, eos_token_id=None
        )
        assert [list(beam.tokens) for beam in beams] == said[:, len(prompt) :].tolist()
        assert not any(beam.ended for beam in beams)


def test_a_prompt_is_read_once_and_only_live_beams_go_on(model: LanguageModel) -> None:
    rows: list[int] = []

    class Counted(CausalReading):
        def _read(self, tokens: torch.Tensor) -> torch.Tensor:
            rows.append(len(tokens))
            return super()._read(tokens)

    prompt = model.prompts(["lawyer"], ["is a"])
    logits = model.model(torch.tensor(prompt)).logits[0, -1]
    likeliest = int(logits.argmax())
    (beams,) = cached_search(
        partial(Counted, model.model), prompt, end=likeliest, device=model.model.device, beams=4, max_length=3
    )
    assert rows[:2] == [1, 3]  # the likeliest of four first tokens is the end
    assert max(rows[1:]) <= 4
    assert any(beam.ended and not beam.tokens for beam in beams) or beams[0].score > logits.log_softmax(0).max()


@pytest.mark.parametrize("width", [641, 1000, 8001])
def test_the_largest_of_many_are_those_of_a_stable_sort(width: int) -> None:
    """Also where values are equal, within a block and beyond, and where most are impossible."""
    torch.manual_seed(1)
    fine = torch.randn(30, width)
    for values in (fine, (2 * fine).round(), torch.zeros(3, width), fine.masked_fill(fine < 3, -torch.inf)):
        expected = values.sort(dim=1, descending=True, stable=True).indices[:, :10]
        assert torch.equal(largest(values, 10), expected)
