"""A form filled in by a small random model, held against plain forward passes over whole texts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import save_gpt1

from models.decoder import Padded
from models.form import NO, UNKNOWN, YES, Example, Field, Form, fill_in

FIELDS = [
    Field("rude", None, ("[rN]", "[rY]", "[rU]")),
    Field("about", "rude", ("[aN]", "[aY]", "[aU]")),
    Field("who", "about"),
    Field("what", "about"),
    Field("own", "about", ("[oN]", "[oY]", "[oU]")),
]
TEXTS = ["a lawyer wins", "the nurse", "a lawyer wins a long case and a lawyer wins"]


@pytest.fixture(params=["left", "both"])
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Form:
    torch.manual_seed(3)
    folder = save_gpt1(tmp_path / "gpt", TEXTS)
    made = Form.from_language_model(
        folder, FIELDS, reads=request.param, known=["rude", "about", "own"], longest=12, longest_text=4
    ).eval()
    with torch.no_grad():
        made.decoder.token_embedding.weight *= 12  # or all choices are near a half
        made.decoder.token_embedding.weight[made.end] *= 0.1  # or a text ends at once
    return made


def log_probs(form: Form, tokens: list[int], prefix: int) -> torch.Tensor:
    """Of all next tokens after each token, by a plain pass over the whole text, (tokens, vocab_size)."""
    length = len(tokens)
    seen = torch.ones(1, length, length, dtype=torch.bool).tril()
    if form.reads == "both":
        seen[:, :prefix, :prefix] = True
    with torch.no_grad():
        hidden = form.decoder(torch.tensor(tokens), torch.arange(length), Padded(1, 0.0, seen))
    return form.decoder.logits(hidden).detach()


def test_what_is_filled_in_is_what_a_plain_pass_finds_likeliest(form: Form) -> None:
    texts = form.read(TEXTS)
    together = fill_in(form, texts, always=True)
    for text, filled in zip(texts, together, strict=True):
        said = [*text]
        for number, name in enumerate(("rude", "about")):
            pair = log_probs(form, said, len(text))[-1][form.ids[name][:2]].log_softmax(0)
            if not np.isnan(filled.log_probs[number]).any():
                np.testing.assert_allclose(filled.log_probs[number], pair, atol=1e-4)
                assert filled.choices[number] == int(pair.argmax())
            said.append(form.ids[name][filled.choices[number]])
        said.append(form.end)
        total = 0.0
        for tokens in filled.texts:
            for place, token in enumerate([*tokens, form.end]):
                found = log_probs(form, said, len(text))[-1][form.allowed].log_softmax(0)
                expected = form.end if place == form.longest_text else form.words[int(found.argmax())]
                assert token == expected
                total += float(found[form.words.index(token)])
                said.append(token)
        assert filled.text_log_prob == pytest.approx(total, abs=1e-3)
        alone = fill_in(form, [text], always=True)[0]
        assert (alone.choices, alone.texts) == (filled.choices, filled.texts)


def test_alternatives_are_learnt_as_if_each_stood_alone(form: Form) -> None:
    (text,) = form.read(["a lawyer wins"])
    who, what, other = (form.encoding.encode([words])[0] for words in ("lawyer", "wins", "case"))
    branches = [([who, what], NO, True), ([who, other], YES, True)]
    choices = {"text": text, "choices": [YES, YES], "learnt": [False, False]}
    with torch.no_grad():
        both = form.loss([Example(**choices, alternatives=branches)])
        each = [form.loss([Example(**choices, alternatives=[branch])]) for branch in branches]
    assert [len(who), len(what), len(other)] == [len(who)] + 2 * [len(what)]  # or the mean is no mean of means
    assert float(both) == pytest.approx(float(sum(each)) / 2, abs=1e-4)


def test_the_loss_is_that_of_a_plain_pass(form: Form) -> None:
    (text,) = form.read(["the nurse"])
    who = form.encoding.encode(["a lawyer"])[0]
    example = Example(text, [YES, UNKNOWN], [True, False], [([who, []], UNKNOWN, False)])
    said = [*text, form.ids["rude"][YES], form.ids["about"][UNKNOWN], form.end, *who, form.end]
    found = log_probs(form, said, len(text))
    choice = found[len(text) - 1][form.ids["rude"][:2]].log_softmax(0)[YES]
    after = len(text) + 2
    tokens = [found[after + place][form.allowed].log_softmax(0) for place in range(len(who) + 1)]
    likely = [float(row[form.words.index(token)]) for row, token in zip(tokens, [*who, form.end], strict=True)]
    with torch.no_grad():
        padded = form.loss([example, Example(form.read([TEXTS[2]])[0], [NO, NO], [False, False])])
    assert float(padded) == pytest.approx(-float(choice) - sum(likely) / len(likely), abs=1e-4)


def test_below_a_negative_parent_nothing_is_asked(form: Form) -> None:
    found = fill_in(form, form.read(TEXTS * 4))
    for filled in found:
        rude, about, _ = filled.choices
        if rude == NO:
            assert about == NO
            assert np.isnan(filled.log_probs[1]).all()
        if NO in (rude, about):
            assert filled.texts == ((), ())
            assert np.isnan(filled.log_probs[2]).all()
            assert filled.text_log_prob == 0


def test_equal_chances_draw_equal_texts_and_a_saved_form_fills_in_the_same(form: Form, tmp_path: Path) -> None:
    texts = form.read(TEXTS)
    chances = np.random.default_rng(1).random((len(texts), 2 * (form.longest_text + 1)))
    drawn = fill_in(form, texts, chances=chances, always=True)
    assert [one.texts for one in drawn] != [one.texts for one in fill_in(form, texts, always=True)]
    assert fill_in(form, texts[:1], chances=chances[:1], always=True)[0].texts == drawn[0].texts
    form.save(tmp_path / "saved")
    again = Form.load(tmp_path / "saved")
    assert [one.texts for one in fill_in(again, texts, chances=chances, always=True)] == [one.texts for one in drawn]
    assert (again.reads, again.known, again.words) == (form.reads, form.known, form.words)
