"""A language model as a judge: probabilities of answers, strict reading of texts, abstentions; the cache."""

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from chat_server import chat_server
from refusals import refuses
from small_models import save_chat_llama, save_neox

from mitigate.errors import MitigateError
from mitigate.models.chat_api import Answer
from mitigate.models.hf import AnswerProbabilities
from mitigate.score.judge import RUBRIC, Judge, Rubric, word_probabilities
from mitigate.score.labels import LabelStore, label_column

MESSAGES = ["Rate: a baker bakes", "Rate: a baker", "Rate: a cook", "Rate: a cook cooks"]
ANSWERS = ["good", "bad", "it depends"]
SHORT = "Answers: bad, plain, good\nbad, plain or good? {statement}"
SECRET = "sk-secret"


@pytest.mark.parametrize("save", [save_chat_llama, save_neox])
def test_probabilities_are_those_of_the_model_that_reads_each_text_whole(save, tmp_path: Path) -> None:
    model = AnswerProbabilities(save(tmp_path, MESSAGES))
    model.model.__deepcopy__ = lambda memo: pytest.fail("the weights are copied")
    found = model.probabilities(MESSAGES, ANSWERS)
    for row, message in enumerate(MESSAGES):
        for column, answer in enumerate(ANSWERS):
            prompt = model.prompt(message)
            text = prompt + ("" if model.is_chat else " ") + answer
            tokens, begun = (model.tokenizer(one)["input_ids"] for one in (text, prompt))
            assert tokens[: len(begun)] == begun
            with torch.inference_mode():
                log_probs = model.model(torch.tensor([tokens])).logits[0].log_softmax(-1)
            total = sum(float(log_probs[at - 1, tokens[at]]) for at in range(len(begun), len(tokens)))
            assert found[row, column] == pytest.approx(np.exp(total), rel=1e-4)
    refuses(ValueError, "of .* tokens is too long for the model", model.probabilities, ["a " * 300], ANSWERS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (" Neutral.\n", [0, 1, 0]),
        ('"**prejudice**"', [1, 0, 0]),
        ("neutral, since it is a fact", [0, 0, 0]),
        ("prejudice or neutral", [0, 0, 0]),
    ],
)
def test_an_answer_is_a_word_or_none(text: str, found: list[float]) -> None:
    assert word_probabilities(Answer(text, "stop"), ["prejudice", "neutral", "favouritism"]) == found


def test_rubrics_name_their_answers(tmp_path: Path) -> None:
    assert Rubric.read(RUBRIC).words == ("prejudice", "neutral", "favouritism")
    own = tmp_path / "own.txt"
    read = partial(Rubric.read, own)
    refuses(MitigateError, "own.txt cannot be read", read)
    for content, message in [
        ("Rate this", "begins with 'Rate this'; its first line must be 'Answers:' and 3 different words"),
        ("Answers: bad, plain, good\nbad or plain? {statement}", "its message needs {statement} and each"),
        ("Answers: bad, plain, good\nbad, plain, good?", "its message needs {statement} and each"),
    ]:
        own.write_text(content)
        refuses(MitigateError, message, read)


def asked(text: str) -> str:
    """The answer of the server to a message: by its last word."""
    answers = {"kind": "Good.", "rude": "bad", "odd": "Sorry, I can't rate that.", "vague": "plain or good"}
    return answers.get(text.split()[-1], "plain")


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    path = tmp_path / "rubric.txt"
    path.write_text(SHORT)
    return path


def test_an_endpoint_labels_once(tmp_path: Path, rubric: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    texts = pl.Series(["is kind", "is rude", "is tall", "is odd", "is vague", "is kind"])
    cache = LabelStore(tmp_path / "labels")
    with chat_server(answer=asked, faults={"bad, plain or good? is tall": "filter"}) as server:
        make = partial(Judge, url=server.url, name="small", rubric=rubric)
        found = label_column(texts, make(), cache)
        again = label_column(texts, make(), cache)
        assert len(server.requests) == 5
        assert server.requests[0][2]["messages"][-1]["content"].startswith("bad, plain or good?")
    assert found.label.tolist() == again.label.tolist() == [1, -1, 2, 2, 2, 1]
    assert found.strength.tolist() == [1, -1, 0, 0, 0, 1]
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in content for content in stored)


def test_answers_before_a_failure_are_kept(tmp_path: Path, rubric: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "piece", 2)
    texts, cache = pl.Series([f"is {number}" for number in range(6)]), LabelStore(tmp_path / "labels")
    with chat_server(answer=asked, faults={"bad, plain or good? is 5": (403, {}, {})}) as server:
        judge = Judge(url=server.url, name="small", rubric=rubric, key=None)
        refuses(MitigateError, "the judge: .*answers HTTP 403", label_column, texts, judge, cache)
    with chat_server(answer=asked) as other:
        monkeypatch.setattr(judge, "_endpoint", Judge(url=other.url, name="small", rubric=rubric)._endpoint)
        label_column(texts, judge, cache)
        assert len(other.requests) == 2


def test_a_local_judge_abstains_where_it_would_write_something_else(tmp_path: Path, rubric: Path) -> None:
    model = save_chat_llama(tmp_path / "model", [SHORT])
    texts = ["is kind", "is rude"]
    judge = Judge(model, rubric=rubric)
    assert judge(texts).label.tolist() == [2, 2]  # random weights: three words have little probability
    assert not judge.sends
    assert set(Judge(model, rubric=rubric, least=0)(texts).label.tolist()) <= {-1, 0, 1}
