"""Stories of a small generator: drawn by each prompt's own chance, in whole sentences, going on after a kill."""

from pathlib import Path

import polars as pl
import pytest
import torch
from shown_steps import Steps
from small_models import save_llama, save_neox

from mitigate.errors import MitigateError
from mitigate.probe import stories as probing
from mitigate.probe.stories import Sampling, _check_length, chances_of, sample_stories
from mitigate.progress import listening
from mitigate.prompts import prompts
from mitigate.sentences import whole_sentences
from mitigate.store import PartFolder
from mitigate.targets import choose_targets
from models.language_model import LanguageModel
from models.sampling import Drawn, SentenceEnds, until

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


def test_the_number_that_is_drawn_decides_the_token() -> None:
    logits = torch.log(torch.tensor([[0.1, 0.5, 0.05, 0.35]] * 4))
    drawn = torch.zeros(4, 3, dtype=torch.long)  # a prompt of two tokens, and one drawn
    chances = torch.tensor([[0.0, 0.49], [0.0, 0.51], [0.0, 0.86], [0.0, 0.96]])
    assert Drawn(chances, 2, 1.0, 0)(drawn, logits).argmax(1).tolist() == [1, 3, 0, 2]  # .5, .85, .95, 1
    assert Drawn(chances, 2, 1.0, 2)(drawn, logits).argmax(1).tolist() == [1, 1, 3, 3]  # .5 / .85 = .59
    assert Drawn(chances, 2, 0.01, 0)(drawn, logits).argmax(1).tolist() == [1, 1, 1, 1]
    assert Drawn(torch.ones(4, 2), 2, 1.0, 0)(drawn, logits).argmax(1).tolist() == [2, 2, 2, 2]


def test_marks_in_a_row_end_one_sentence(model: LanguageModel) -> None:
    tokens = model.tokenizer(["people ...", "people . are .", "are"], add_special_tokens=False)["input_ids"]
    ends = SentenceEnds(model.tokenizer, model.model.config.vocab_size, ".!?", 1)
    counts = [int(ends.count(torch.tensor([[0, *text]]))) for text in tokens]
    assert counts == [1, 2, 0]
    assert until([5, 7, 2, 9], {2}) == [5, 7]


def test_chances_are_a_prompts_own() -> None:
    first, again, other = (chances_of(prompt, HOW) for prompt in ("a nurse", "a nurse", "a judge"))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, chances_of("a nurse", Sampling(seed=2, max_tokens=30)))
    assert len(first) == 30


def test_the_same_stories_whatever_else_is_asked(model: LanguageModel, tmp_path: Path, small_parts: None) -> None:
    told = sample_stories(model, ASKED, HOW, parts=PartFolder(tmp_path / "all"))
    assert told.columns == [*ASKED.columns, "story"]
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
    steps = Steps()
    with listening(steps):
        assert sample_stories(model, ASKED, HOW, parts=parts).equals(whole)
    (step,) = steps.begun
    assert (step.name, step.unit, step.total) == ("probe", "prompts", ASKED.height)
    assert (step.before, step.count, step.done) == (5, ASKED.height - 5, ASKED.height)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0}, "temperature=0 must be above 0"),
        ({"top_k": -1}, "top_k=-1 must be at least 1, or 0 for all tokens"),
        ({"max_tokens": 0}, "max_tokens=0 must be at least 1"),
        ({"fewest": 6}, "fewest=6 must be at least 1 and at most most=5 sentences"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, int], message: str) -> None:
    with pytest.raises(MitigateError, match=message):
        Sampling(seed=1, **settings)


def test_a_prompt_that_leaves_nothing_for_a_story() -> None:
    """Of ten tokens nine can be a prompt's, with a story of one."""
    _check_length(10, 9, 1)
    with pytest.raises(MitigateError, match=r"after a prompt of 9 tokens .* give recipe.max_tokens=1 or less"):
        _check_length(10, 9, 2)
    with pytest.raises(
        MitigateError, match="a prompt of 10 tokens leaves nothing of the 10 that this model reads for a story"
    ):
        _check_length(10, 10, 1)


def test_prompts_too_long_for_the_model(model: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="more than the 64 that this model reads; give recipe.max_tokens="):
        sample_stories(model, ASKED, Sampling(seed=1), parts=PartFolder(tmp_path))
