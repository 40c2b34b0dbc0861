"""Causal and sequence-to-sequence models of transformers: against their own plain forward pass, against `generate`
where stopping rules cannot differ."""

from functools import partial
from pathlib import Path

import pytest
import torch
from refusals import refuses
from small_models import save_bart, save_chat_llama, save_llama, save_neox, save_t5

from mitigate.models.beam import beam_search
from mitigate.models.hf import CachedReading, LanguageModel, Seq2Seq, prompt_of
from mitigate.train.base_model import class_of

TEXTS = ["a lawyer is capable of winning a case", "a church is used for worship", "a nurse desires to help people"] * 3
ASKED = (["lawyer", "a big church", "nurse", "judge", "a church"], ["is a", "is used for", "desires", "has a", "has a"])
NEVER = -1  # no token ends a tail
KINDS = {save_llama: LanguageModel, save_neox: LanguageModel, save_bart: Seq2Seq, save_t5: Seq2Seq}
causal = pytest.mark.parametrize("model", [save_llama, save_neox], indirect=True)
seq2seq = pytest.mark.parametrize("model", [save_bart, save_t5], indirect=True)


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel | Seq2Seq:
    """A causal one's END is made likelier than the best word after one of the prompts: tails end at several lengths."""
    torch.manual_seed(0)
    model = KINDS[request.param].load(request.param(tmp_path_factory.mktemp("model"), TEXTS))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
        if isinstance(model, LanguageModel):
            said = model.model(torch.tensor(model.prompts(["lawyer"], ["is a"])), output_hidden_states=True)
            hidden = said.hidden_states[-1][0, -1]
            end = 2 * hidden * said.logits[0, -1].max() / hidden.square().sum()
            model.model.get_output_embeddings().weight[model.end] = end
    return model


@causal
def test_a_prompt_and_a_tail_are_the_tokens_of_the_whole_text(model: LanguageModel) -> None:
    (prompt,), (tail,) = model.prompts(["lawyer"], ["is capable of"]), model.tails(["winning a case"])
    assert [*prompt, *tail[:-1]] == model.tokenizer("lawyer is capable of winning a case")["input_ids"]
    assert tail[-1] == model.end
    assert model.decode(tail) == "winning a case"
    assert model.tails([""]) == [[model.end]]
    assert len(model.tails(["worship " * 30])[0]) == 16


@seq2seq
def test_prompts_and_tails_are_what_the_tokenizer_makes_of_texts_and_targets(model: Seq2Seq) -> None:
    """The last prompt is that of COMET-ATOMIC 2020."""
    assert model.prompts(["lawyer"], ["is a"]) == [model.tokenizer("lawyer is a")["input_ids"]]
    (tail,) = model.tails(["winning a case"])
    assert [*model.before[1:], *tail] == model.tokenizer(text_target="winning a case")["input_ids"]
    assert model.before == ([2, 0] if model.model.config.model_type == "bart" else [0])
    assert model.decode(tail) == "winning a case"
    assert model.tails(["", "worship " * 30])[0] == [model.end]
    assert len(model.tails(["worship " * 30])[0]) == 16
    assert (model.prompts([], []), model.tails([])) == ([], [])
    asked = Seq2Seq(model.model, model.tokenizer, "name", "gen").prompts(["lawyer"], ["CapableOf"])
    assert asked == [model.tokenizer("lawyer CapableOf [GEN]")["input_ids"]]


def test_nll_is_that_of_each_text_alone(model: LanguageModel | Seq2Seq) -> None:
    prompts, tails = model.prompts(*ASKED), model.tails(["nurse", "a case", "", "winning", "help people to win"])
    alone = []
    for prompt, tail in zip(prompts, tails, strict=True):
        if isinstance(model, Seq2Seq):
            said = torch.tensor([[*model.before, *tail[:-1]]])
            logits = model.model(input_ids=torch.tensor([prompt]), decoder_input_ids=said).logits
            logits = logits[0, len(model.before) - 1 :]
        else:
            logits = model.model(torch.tensor([[*prompt, *tail]])).logits[0, len(prompt) - 1 : -1]
        alone.append(-logits.log_softmax(-1).gather(1, torch.tensor(tail)[:, None])[:, 0])
    torch.testing.assert_close(model.nll(prompts, tails), torch.cat(alone))


def test_at_fixed_length_lists_are_those_of_generate(model: LanguageModel | Seq2Seq) -> None:
    prompts, before = model.prompts(*ASKED), model.before
    reading = partial(CachedReading, model.model, model.before)
    found = beam_search(reading, prompts, end=NEVER, device=model.model.device, beams=6, max_length=5)
    how = {"num_beams": 6, "num_return_sequences": 6, "eos_token_id": None}
    for prompt, beams in zip(prompts, found, strict=True):
        said = model.model.generate(torch.tensor([prompt]), max_new_tokens=4 + len(before or [0]), **how)
        assert said[:, : len(before or prompt)].tolist() == [before or prompt] * 6
        assert [list(beam.tokens) for beam in beams] == said[:, len(before or prompt) :].tolist()
        assert not any(beam.ended for beam in beams)


def test_what_is_found_has_the_likelihood_it_is_given(model: LanguageModel | Seq2Seq) -> None:
    prompts = model.prompts(*ASKED)
    found = model.search(prompts, beams=6, max_length=5)
    assert [len(beams) for beams in found] == [6] * 5
    found += model.search(prompts, beams=1, max_length=5)
    if isinstance(model, LanguageModel):
        assert len({(len(beam.tokens), beam.ended) for beams in found for beam in beams}) > 2
    for prompt, beams in zip(prompts * 2, found, strict=True):
        for beam in beams:
            tail = [*beam.tokens, *[model.end] * beam.ended]
            assert len(tail) <= 5
            assert beam.log_prob == pytest.approx(-model.nll([prompt], [tail]).sum().item(), abs=1e-4)
            assert beam.score == pytest.approx(beam.log_prob / len(tail))
        assert [beam.score for beam in beams] == sorted((beam.score for beam in beams), reverse=True)
        assert len({beam.tokens for beam in beams}) == len(beams)


@seq2seq
def test_it_is_saved_and_gives_the_same_as_it_was_trained(model: Seq2Seq, tmp_path: Path) -> None:
    asked = Seq2Seq(model.model, model.tokenizer, "name", "gen")
    asked.save(tmp_path)
    again = Seq2Seq.load(tmp_path)
    assert (again.relation, again.prompt, class_of(tmp_path)) == ("name", "gen", Seq2Seq)
    assert again.search(again.prompts(*ASKED), beams=2) == asked.search(asked.prompts(*ASKED), beams=2)
    other = "model.prompt=phrase, but the COMeT in .* was trained with model.prompt=gen"
    refuses(ValueError, other, prompt_of, tmp_path, "phrase", Seq2Seq.PROMPTS)


def test_a_chat_template_asks_and_the_answer_begins_with_the_text(tmp_path: Path) -> None:
    folder = save_chat_llama(tmp_path / "llama", TEXTS)
    plain, chat = LanguageModel.load(folder), LanguageModel.load(folder, prompt="chat")
    text = "<|im_start|>user\nComplete the sentence in a few words: lawyer is a<|im_end|>\n"
    text += "<|im_start|>assistant\nlawyer is a"
    (prompt,) = chat.prompts(["lawyer"], ["is a"])
    assert prompt == chat.tokenizer(text)["input_ids"]
    assert prompt[: len("<|im_start|>")].count(1) == 1
    assert prompt[-len(plain.prompts(["lawyer"], ["is a"])[0]) :] == plain.prompts(["lawyer"], ["is a"])[0]
    assert chat.tails(["winning a case"]) == plain.tails(["winning a case"])
    chat.save(tmp_path / "trained")
    again = LanguageModel.load(tmp_path / "trained")
    assert (again.prompt, again.prompts(*ASKED)) == ("chat", chat.prompts(*ASKED))


@causal
def test_texts_beyond_the_positions_of_a_causal_model_are_refused(model: LanguageModel) -> None:
    """64 positions; the last token of a tail is never read."""
    limit = model.model.config.max_position_embeddings
    assert model.positions == limit
    prompt, tail = [1] * (limit - 5), [2] * 6
    assert len(model.nll([prompt], [tail])) == 6
    assert len(model.search([prompt], beams=2, max_length=6)[0]) == 2
    message = f"a prompt of {limit - 4} tokens with a tail of 6 needs {limit + 1} positions; the model has {limit}"
    refuses(ValueError, message, model.nll, [[2], [*prompt, 1]], [[2], tail])
    refuses(ValueError, message, model.search, [[2], [*prompt, 1]], max_length=6)
