"""Transformers' progress bars: none on standard error when our models are loaded or saved, and its state is left."""

from pathlib import Path

import pytest
from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from small_models import save_classifier, save_neox
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from models.bars import no_bars
from models.language_model import LanguageModel
from models.regard.sequence import SequenceClassifier


@pytest.fixture(autouse=True)
def bars_on() -> None:
    logging.enable_progress_bar()


def test_models_are_loaded_and_saved_without_bars(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    save_neox(tmp_path / "neox", ["a lawyer is a person"] * 3)
    save_classifier(tmp_path / "classifier", ["negative", "neutral", "positive"])
    AutoModelForCausalLM.from_pretrained(tmp_path / "neox")
    assert "Loading weights" in capfd.readouterr().err  # what there is to switch off
    LanguageModel.load(tmp_path / "neox").save(tmp_path / "again")
    SequenceClassifier.load(str(tmp_path / "classifier"))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("downloads", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_a_sessions_own_choices_are_left(weights: bool, downloads: bool) -> None:
    try:
        (logging.enable_progress_bar if weights else logging.disable_progress_bar)()
        (enable_progress_bars if downloads else disable_progress_bars)()
        with no_bars():
            assert not logging.is_progress_bar_enabled()
            assert are_progress_bars_disabled() is not downloads
        assert logging.is_progress_bar_enabled() is weights
        assert are_progress_bars_disabled() is not downloads
    finally:
        logging.enable_progress_bar()
