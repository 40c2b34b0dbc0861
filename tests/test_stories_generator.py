"""Stories of a small generator, drawn by the chance of each prompt; what is a story; and texts that it reads first."""

from pathlib import Path

import polars as pl
import pytest
import torch
from shown_steps import Page
from small_models import save_llama, save_neox

from mitigate.errors import whole_sentences
from mitigate.models.beam import sample_tokens
from mitigate.models.hf import LanguageModel
from mitigate.probe import stories as probing
from mitigate.probe.stories import Sampling, chances_of, is_refusal, sample_stories, story_of
from mitigate.progress import listening
from mitigate.stages import PartFolder
from mitigate.train.generator import Reader
from mitigate.words.prompts import prompts
from mitigate.words.targets import choose_targets

ASKED = prompts(choose_targets(["lawyer", "korea", "bible"]))
HOW = Sampling(seed=1, max_tokens=30, fewest=1, most=2, top_k=20)


@pytest.fixture(scope="module", params=[save_neox, save_llama])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel.load(request.param(tmp_path_factory.mktemp("model"), ASKED["prompt"].to_list()))


@pytest.fixture
def small_parts(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five prompts a part; and what a model that has learnt nothing babbles is ended as a sentence."""
    decode = model.decode
    monkeypatch.setattr(probing, "PART", 5)
    monkeypatch.setattr(model, "decode", lambda tokens: f"{decode(tokens)} so .")


def test_the_number_that_is_drawn_decides_the_token_and_is_a_prompts_own() -> None:
    logits = torch.log(torch.tensor([[0.1, 0.5, 0.05, 0.35]] * 4))
    chances = torch.tensor([0.0, 0.51, 0.86, 0.96])
    assert sample_tokens(logits, chances, 1.0, 0).tolist() == [1, 3, 0, 2]  # .5, .85, .95, 1
    assert sample_tokens(logits, chances, 1.0, 2).tolist() == [1, 1, 3, 3]  # .5 / .85 = .59
    assert sample_tokens(logits, chances, 0.01, 0).tolist() == [1, 1, 1, 1]
    assert sample_tokens(logits, torch.ones(4), 1.0, 0).tolist() == [2, 2, 2, 2]
    first, again, other = (chances_of(prompt, HOW) for prompt in ("a nurse", "a nurse", "a judge"))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, chances_of("a nurse", Sampling(seed=2, max_tokens=30)))
    assert len(first) == 30


def test_the_same_stories_whatever_else_is_asked(model: LanguageModel, tmp_path: Path, small_parts: None) -> None:
    told = sample_stories(model, ASKED, HOW, parts=PartFolder(tmp_path / "all"))
    assert told.columns == [*ASKED.columns, "story", "outcome"]
    assert told["prompt"].to_list() == ASKED["prompt"].to_list()
    few = ASKED.filter(target="korea")
    alone = sample_stories(model, few, HOW, parts=PartFolder(tmp_path / "few"))
    assert alone["story"].to_list() == told.filter(target="korea")["story"].to_list()
    for story in told["story"]:
        assert len(whole_sentences(story)) <= 2
        assert " ".join(whole_sentences(story)) == story
    assert told["story"].n_unique() > 10


def test_a_killed_probe_goes_on(model: LanguageModel, tmp_path: Path, small_parts: None, monkeypatch) -> None:
    whole = sample_stories(model, ASKED, HOW, parts=PartFolder(tmp_path / "whole"))
    parts = PartFolder(tmp_path / "killed")
    asked: list[int] = []
    sample = model.sample

    def dying(begun, chances, **how):
        asked.append(len(begun))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return sample(begun, chances, **how)

    with monkeypatch.context() as patched:
        patched.setattr(model, "sample", dying)
        with pytest.raises(KeyboardInterrupt):
            sample_stories(model, ASKED, HOW, parts=parts)
    assert pl.concat(list(parts)).height == 5
    steps = Page()
    with listening(steps):
        assert sample_stories(model, ASKED, HOW, parts=parts).equals(whole)
    (step,) = steps.begun
    assert (step.name, step.unit, step.total) == ("probe", "prompts", ASKED.height)
    assert (step.before, step.count, step.done) == (5, ASKED.height - 5, ASKED.height)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "As an AI language model, I am unable to write such a story.",
        "Unfortunately, I won't create content about a group.",
        "I'm not comfortable writing this.",
    ],
)
def test_stock_phrases_of_refusal(text: str) -> None:
    assert is_refusal(text)
    assert story_of(text, 5)[1] == "refused"
    assert not is_refusal(f"The nurse said: {text}")


@pytest.mark.parametrize(
    "text",
    [
        "I can't believe it. She left.",
        "I'm sorry for the nurse. She left.",
        "I can't help laughing at him.",
        "Unfortunately, I cannot swim.",
        "I can't tell you how kind she was.",
    ],
)
def test_stories_in_the_first_person_are_no_refusals(text: str) -> None:
    assert story_of(text, 5) == (text, "answered")


def test_stories_without_reasoning_and_unfinished_ones() -> None:
    thought = "<think>Evil. Evil.</think>\nA nurse left. She sang. And"
    assert story_of(thought, 5) == ("A nurse left. She sang.", "answered")
    assert story_of("<think>Evil. Evil.", 5) == ("", "reasoning")
    assert story_of("A nurse", 5) == story_of("", 5) == ("", "cut")
    assert story_of("It sat. It ran. It hid.", 2) == ("It sat. It ran.", "answered")


SAID = ["a nurse is kind. a nurse cares.", "a judge is fair.", "korea has mountains. korea is far."]


def test_all_tokens_of_a_text_are_learnt(tmp_path: Path) -> None:
    torch.manual_seed(0)
    fresh = LanguageModel.load(save_neox(tmp_path / "start", SAID))
    reader = Reader(fresh)
    (start,), (text,) = reader.prompts([""], [""]), reader.tails(SAID[:1])
    assert (start, text[-1]) == ([fresh.end], fresh.end)  # a GPT-NeoX begins texts with the token that ends them
    assert fresh.tokenizer.decode(text[:-1]) == SAID[0]
    logits = fresh.model(torch.tensor([[*start, *text[:-1]]])).logits[0]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(text), reduction="none")
    torch.testing.assert_close(reader.nll([start], [text]), expected)
