"""Any causal language model, asked through `generate`: against its own plain forward pass, and against our decoder."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_models import save_gpt1, save_llama, save_neox
from transformers import AutoModelForCausalLM

from models.comet import Comet
from models.decoder import Decoder, DecoderConfig
from models.encoding import Encoding
from models.language_model import LanguageModel
from models.minilm import locate

TEXTS = ["a lawyer is capable of winning a case", "a church is used for worship", "a nurse desires to help people"] * 3


@pytest.fixture(scope="module", params=[save_llama, save_neox])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    save: Callable[[Path, list[str]], Path] = request.param
    return save(tmp_path_factory.mktemp(save.__name__), TEXTS)


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    """END is made likelier than the best word after one of the prompts, so that tails end at several lengths."""
    model = LanguageModel.load(folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
        said = model.model(torch.tensor(model.prompts(["lawyer"], ["is a"])), output_hidden_states=True)
        hidden = said.hidden_states[-1][0, -1]
        model.model.get_output_embeddings().weight[model.end] = (
            2 * hidden * said.logits[0, -1].max() / hidden.square().sum()
        )
    return model


def test_a_prompt_and_a_tail_are_the_tokens_of_the_whole_text(model: LanguageModel) -> None:
    (prompt,) = model.prompts(["lawyer"], ["is capable of"])
    (tail,) = model.tails(["winning a case"])
    assert [*prompt, *tail[:-1]] == model.tokenizer("lawyer is capable of winning a case")["input_ids"]
    assert tail[-1] == model.end
    assert model.decode(tail) == "winning a case"
    assert model.tails([""]) == [[model.end]]
    assert len(model.tails(["worship " * 30])[0]) == 16


def test_nll_is_that_of_each_text_alone(model: LanguageModel) -> None:
    prompts, tails = (
        model.prompts(["lawyer", "a big church"], ["is a", "is used for"]),
        model.tails(["nurse", "a case"]),
    )
    alone = []
    for prompt, tail in zip(prompts, tails, strict=True):
        logits = model.model(torch.tensor([[*prompt, *tail]])).logits[0, len(prompt) - 1 : -1]
        alone.append(-logits.log_softmax(-1).gather(1, torch.tensor(tail)[:, None])[:, 0])
    torch.testing.assert_close(model.nll(prompts, tails), torch.cat(alone))


def test_what_is_found_has_the_likelihood_it_is_given(model: LanguageModel) -> None:
    prompts = model.prompts(["lawyer", "a big church", "nurse"], ["is a", "is used for", "desires"])
    found = model.search(prompts, beams=6, max_length=5)
    assert [len(beams) for beams in found] == [6, 6, 6]
    found += model.search(prompts, beams=1, max_length=5)
    assert len({(len(beam.tokens), beam.ended) for beams in found for beam in beams}) > 2
    for prompt, beams in zip(prompts * 2, found, strict=True):
        for beam in beams:
            tail = [*beam.tokens, *[model.end] * beam.ended]
            assert len(tail) <= 5
            assert beam.log_prob == pytest.approx(-model.nll([prompt], [tail]).sum().item(), abs=1e-4)
            assert beam.score == pytest.approx(beam.log_prob / len(tail))
        assert [beam.score for beam in beams] == sorted((beam.score for beam in beams), reverse=True)
        assert len({beam.tokens for beam in beams}) == len(beams)


def test_company_does_not_matter(model: LanguageModel) -> None:
    prompts = model.prompts(["lawyer", "a big church", "nurse"], ["is a", "is used for", "desires"])
    together = model.search(prompts, beams=4, max_length=5)
    alone = model.search(prompts, beams=4, max_length=5, rows=1)
    assert [[beam.tokens for beam in beams] for beams in together] == [[b.tokens for b in beams] for beams in alone]


def test_it_goes_to_another_process_as_a_file(folder: Path, tmp_path: Path) -> None:
    model = LanguageModel.load(folder)
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", mmap=True, weights_only=False)
    prompts = model.prompts(["lawyer"], ["is a"])
    assert again.prompts(["lawyer"], ["is a"]) == prompts
    assert again.search(prompts, beams=2, max_length=4) == model.search(prompts, beams=2, max_length=4)


def test_settings_of_the_models_own_for_generation_are_not_used(model: LanguageModel, folder: Path) -> None:
    other = AutoModelForCausalLM.from_pretrained(folder)
    other.load_state_dict(model.model.state_dict())
    other.generation_config.update(do_sample=True, repetition_penalty=5.0, suppress_tokens=[5, 6, 7])
    prompts = model.prompts(["lawyer"], ["is a"])
    assert LanguageModel(other, model.tokenizer).search(prompts, max_length=4) == model.search(prompts, max_length=4)


def test_a_comet_of_ours_is_the_same_asked_this_way(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = DecoderConfig("minilm", vocab_size=30522, positions=40, width=16, layers=2, heads=4, inner=32)
    comet = Comet(Decoder(config), Encoding.of_encoder(locate())).eval()
    comet.save(tmp_path)
    model = LanguageModel.load(tmp_path)
    asked = ["lawyer", "church"], ["is capable of", "is used for"]
    assert model.prompts(*asked) == comet.prompts(*asked)
    assert model.tails(["win a case", "worship"]) == comet.tails(["win a case", "worship"])
    prompts, tails = comet.prompts(*asked), comet.tails(["win a case", "worship"])
    torch.testing.assert_close(model.nll(prompts, tails), comet.nll(prompts, tails))
    ours, theirs = comet.search(prompts, beams=3, max_length=3), model.search(prompts, beams=3, max_length=3)
    assert [[beam.tokens for beam in beams] for beams in ours] == [[beam.tokens for beam in beams] for beams in theirs]


def test_one_without_an_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no end token"):
        LanguageModel.load(save_gpt1(tmp_path, TEXTS))


def test_one_in_fixed_slots_is_refused(tmp_path: Path) -> None:
    config = DecoderConfig("minilm", vocab_size=30522, positions=40, width=16, layers=1, heads=4, inner=32)
    Comet(Decoder(config), Encoding.of_encoder(locate()), "comet", "words").save(tmp_path)
    with pytest.raises(
        ValueError, match=r"model.layout=packed, but the COMeT in .* was trained with model.layout=comet"
    ):
        LanguageModel.load(tmp_path)


def test_texts_beyond_the_positions_are_refused(model: LanguageModel) -> None:
    """64 positions; the last token of a tail is never read."""
    limit = model.model.config.max_position_embeddings
    assert model.positions == limit
    prompt, tail = [1] * (limit - 5), [2] * 6
    assert len(model.nll([prompt], [tail])) == 6
    assert len(model.search([prompt], beams=2, max_length=6)[0]) == 2
    message = f"a prompt of {limit - 4} tokens with a tail of 6 needs {limit + 1} positions; the model has {limit}"
    with pytest.raises(ValueError, match=message):
        model.nll([[2], [*prompt, 1]], [[2], tail])
    with pytest.raises(ValueError, match=message):
        model.search([[2], [*prompt, 1]], max_length=6)
