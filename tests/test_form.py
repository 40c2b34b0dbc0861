"""A form filled in by `generate`, and its loss, held against plain forward passes of a small random model."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from frames_corpus import save_gpt2

from mitigate.models.decoder import Decoder, Padded
from mitigate.models.form import CHOICES, NO, PARENTS, UNKNOWN, YES, Form, fill_in, open_form
from mitigate.studies.frames import Row, Training, examples, loss, untrained

POSTS = ["the nurses cook", "the lawyers", "the farmers walk well and the nurses cook well"]
KNOWN = ["lewd", "offensive", "targeted", "ingroup"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an untrained form that knows no intent."""
    torch.manual_seed(5)
    texts = {"groups": [["nurses", "lawyers"]] * 2, "implied": [["are lazy", "lazy"]] * 2}
    posts = pl.DataFrame({name: [True, False] for name in KNOWN} | {"intent": [True, True]} | texts)
    training = Training("model", "", 0.0, epochs=1, lr=1e-3, batch_size=4, seed=1)
    decoder, form = untrained(posts, training, save_gpt2(tmp_path / "gpt"))
    form.longest, form.longest_text = 12, 4
    with torch.no_grad():
        decoder.token_embedding.weight *= 12  # or all choices are near a half
        decoder.token_embedding.weight[form.end] *= 0.1  # or a text ends at once
    decoder.save(tmp_path / "form", bos_token_id=form.start, eos_token_id=form.end, pad_token_id=form.encoding.pad)
    form.save(tmp_path / "form")
    return tmp_path / "form"


def log_probs(decoder: Decoder, tokens: list[int], among: list[int]) -> torch.Tensor:
    """Of these next tokens after each token, by a plain pass over the whole text, (tokens, among)."""
    with torch.no_grad():
        hidden = decoder(torch.tensor(tokens), torch.arange(len(tokens)), Padded(1, 0.0))
    return decoder.logits(hidden, torch.tensor(among)).log_softmax(1).detach()


def test_what_is_filled_in_is_what_a_plain_pass_finds_likeliest(folder: Path) -> None:
    decoder, (form, network) = Decoder.load(folder), open_form(folder)
    together, ids = fill_in(form, network, POSTS, always=True), form.ids.tolist()
    for place, read in enumerate(form.read(POSTS)):
        said = [*read]
        for number, name in enumerate(CHOICES[:-1]):
            pair = log_probs(decoder, said, ids[number][:UNKNOWN])[-1]
            value, found = together.choices[place, number], together.log_probs[place, number]
            is_below = any(together.choices[place, CHOICES.index(one)] == NO for one in PARENTS.get(name, []))
            if name == "intent" or is_below:
                assert value == (UNKNOWN if name == "intent" else NO)
                assert np.isnan(found).all()
            else:
                np.testing.assert_allclose(found, pair, atol=1e-4)
                assert value == int(pair.argmax())
            said.append(ids[number][value])
        said.append(form.end)
        for text in together.texts[place]:
            tokens = []
            for step in range(form.longest_text + 1):
                next_ones = log_probs(decoder, said, form.words)[-1]
                said.append(form.end if step == form.longest_text else form.words[int(next_ones.argmax())])
                if said[-1] == form.end:
                    break
                tokens.append(said[-1])
            assert text == form.encoding.decode(tokens)
        alone = fill_in(form, network, POSTS[place : place + 1], always=True)
        assert (alone.choices[0].tolist(), alone.texts[0]) == (together.choices[place].tolist(), together.texts[place])
    assert any(map(any, together.texts))


def test_the_loss_is_that_of_a_plain_pass(folder: Path) -> None:
    """A post that is offensive and targets nurses, with two statements, beside one that is not offensive."""
    decoder, form = Decoder.load(folder), Form.load(folder)
    post = {"post": POSTS[0], "lewd": None, "offensive": True, "intent": None, "targeted": True, "ingroup": False}
    texts = {"groups": ["nurses"], "implied": ["are lazy", "lazy"], "implied_groups": ["nurses", None]}
    other = dict.fromkeys(CHOICES) | {"post": POSTS[2], "offensive": False, "groups": [], "implied": []}
    found = examples(form, pl.DataFrame([post | texts, other | {"implied_groups": []}], infer_schema_length=None))
    assert [len(rows) for rows in found] == [2, 1]
    ids, choices, said = form.ids.tolist(), [], []
    read, other_read = form.read([POSTS[0], POSTS[2]])
    chosen = [ids[0][UNKNOWN], ids[1][YES], ids[2][UNKNOWN], ids[3][YES]]
    for number, one in enumerate((("nurses", "are lazy"), ("", "lazy"))):
        tokens, learnt = [*read, *chosen, form.end], []
        for words in form.encoding.encode(one):
            learnt += [(len(tokens) + at - 1, token) for at, token in enumerate([*words, form.end]) if words]
            tokens += [*words, form.end]
        plain = log_probs(decoder, tokens, form.words)
        said += [float(plain[at, form.words.index(token)]) for at, token in learnt]
        places = {1: len(read), 3: len(read) + 2} if number == 0 else {}
        for choice, at in [*places.items(), (4, len(tokens) - 1)]:
            pair = log_probs(decoder, tokens, ids[choice][:UNKNOWN])[at]
            choices.append(float(pair[NO if choice == 4 else YES]))
    tokens = [*other_read, ids[0][UNKNOWN]]
    choices.append(float(log_probs(decoder, tokens, ids[1][:UNKNOWN])[-1][NO]))
    rows: list[Row] = [row for rows in found for row in rows]
    with torch.no_grad():
        assert float(loss(decoder, form, rows)) == pytest.approx(-np.mean(choices) - np.mean(said), abs=1e-4)
