"""A language model of any kind reads texts whole: what it learns, and that a killed training comes to the same."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from small_models import save_neox

from mitigate.errors import MitigateError
from mitigate.tasks.stories.train import as_language_model, paragraphs
from mitigate.train import stories as training
from mitigate.train.comet import Settings
from mitigate.train.stories import Texts, fit
from models.comet import Comet
from models.language_model import LanguageModel
from models.minilm import locate
from models.reading import Reader

SAID = ["a nurse is kind. a nurse cares.", "a judge is fair.", "korea has mountains. korea is far."]
TEXTS = Texts(SAID * 4, np.ones(12))
SETTINGS = Settings(max_steps=8, max_epochs=9, batch_size=4, lr=3e-3, precision="32-true")
NOTHING = Texts([], np.array([]))


@pytest.fixture
def model(tmp_path: Path) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel.load(save_neox(tmp_path / "start", SAID))


def test_all_of_a_texts_tokens_are_learnt(model: LanguageModel) -> None:
    reader = Reader(model)
    (start,), (text,) = reader.prompts([""], [""]), reader.tails(SAID[:1])
    assert (start, text[-1]) == ([model.end], model.end)  # a GPT-NeoX begins texts with the token that ends them
    assert model.tokenizer.decode(text[:-1]) == SAID[0]
    logits = model.model(torch.tensor([[*start, *text[:-1]]])).logits[0]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(text), reduction="none")
    torch.testing.assert_close(reader.nll([start], [text]), expected)
    assert len(reader.tails(["kind " * 200])[0]) == 64  # as many positions as there are: a start, 63 tokens, END unread


def test_reading_makes_likelier_what_was_read(model: LanguageModel, tmp_path: Path) -> None:
    told: list[dict[str, float]] = []
    fitted = fit(
        model, TEXTS, SETTINGS, tmp_path, fingerprint="1", dev=TEXTS, accelerator="cpu", log=lambda v, _: told.append(v)
    )
    assert fitted.steps == 8
    assert fitted.dev_perplexity is not None
    assert fitted.dev_perplexity < 250  # of 400 tokens
    assert any("dev_perplexity" in values for values in told)
    model.save(tmp_path / "saved")
    again = LanguageModel.load(tmp_path / "saved")
    tokens = torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(again.model(tokens).logits, model.model(tokens).logits)


def test_a_killed_training_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> LanguageModel:
        torch.manual_seed(0)
        return LanguageModel.load(save_neox(tmp_path / "start", SAID))

    whole = fit(start(), TEXTS, SETTINGS, tmp_path / "whole", fingerprint="1", dev=NOTHING, accelerator="cpu")
    often = Settings(**{**vars(SETTINGS), "checkpoint_every": 1e-6})
    step = training.TailModule.training_step

    def dying(self, batch, batch_idx):
        if self.global_step == 5:
            raise RuntimeError("killed")
        return step(self, batch, batch_idx)

    with monkeypatch.context() as patched:
        patched.setattr(training.TailModule, "training_step", dying)
        with pytest.raises(RuntimeError, match="killed"):
            fit(start(), TEXTS, often, tmp_path / "killed", fingerprint="1", dev=NOTHING, accelerator="cpu")
    went_on: list[int] = []

    def counted(self, batch, batch_idx):
        went_on.append(self.global_step)
        return step(self, batch, batch_idx)

    monkeypatch.setattr(training.TailModule, "training_step", counted)
    resumed = fit(start(), TEXTS, often, tmp_path / "killed", fingerprint="1", dev=NOTHING, accelerator="cpu")
    assert went_on == [5, 6, 7]
    assert resumed.train_loss == pytest.approx(whole.train_loss, rel=1e-5)
    with pytest.raises(MitigateError, match="is of another training"):
        fit(start(), TEXTS, often, tmp_path / "killed", fingerprint="2", dev=NOTHING, accelerator="cpu")


def test_what_cannot_be_read(model: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="nothing is left to read"):
        fit(model, NOTHING, SETTINGS, tmp_path, fingerprint="1", dev=NOTHING)
    best = Settings(keep="best")
    with pytest.raises(MitigateError, match="say trainer.keep=last"):
        fit(model, TEXTS, best, tmp_path, fingerprint="1", dev=NOTHING)


def test_what_is_said_of_one_head_is_one_text() -> None:
    heads = ["nurse", "judge", *["nurse"] * 5]
    rows = pl.DataFrame({"head": heads, "weight": [1.0, 0.5, 1.0, 1.0, 1.0, 0.0, 3.0]}).with_columns(
        statement=pl.format("{} is {}", "head", pl.int_range(pl.len()))
    )
    texts = paragraphs(rows)
    assert texts.texts == [
        "nurse is 0. nurse is 2. nurse is 3. nurse is 4. nurse is 5.",
        "judge is 1.",
        "nurse is 6.",
    ]
    assert texts.weights.tolist() == [0.8, 0.5, 3.0]


def test_the_encoder_of_the_demonstration_goes_on_with_a_text() -> None:
    """A COMeT's decoder, saved and opened as a language model, computes what it computed."""
    comet = Comet.from_encoder(locate())
    model = as_language_model(comet)
    (prompt,), (tail,) = comet.prompts(["people are discussing"], ["about korea"]), comet.tails(["it is far"])
    assert model.encode(["people are discussing about korea"]) == [prompt]
    torch.testing.assert_close(model.nll([prompt], [tail]), comet.nll([prompt], [tail]), rtol=1e-4, atol=1e-4)
