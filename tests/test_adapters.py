"""Low-rank adapters: what they change, and what opens a model that was trained by them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import SMALL, here
from peft import AutoPeftModelForCausalLM
from small_models import save_bart, save_llama, save_neox
from test_hub import Touches
from test_train_comet import EXAMPLES
from test_train_language_model import QUICK, TEXTS
from transformers import AutoModelForCausalLM

from mitigate.errors import MitigateError
from mitigate.tasks.start import Start, find_start
from mitigate.tasks.train import train_generator
from mitigate.train.comet import Settings
from models.language_model import LanguageModel
from models.seq2seq import Seq2Seq

ROWS = pl.DataFrame(
    {"head": EXAMPLES.heads, "relation": "CapableOf", "tail": EXAMPLES.tails, "split": "train", "weight": 1.0}
)
LORA = {"rank": 4, "alpha": 8, "dropout": 0.1, "targets": None, "save": "merged", "base": None}


def start(folder: Path, kind: Any = LanguageModel, save: Callable = save_llama, **options: Any) -> Start:
    torch.manual_seed(0)
    return find_start(kind.load, folder if folder.exists() else save(folder, TEXTS), options=options)


def trained(begun: Start, model: Path, settings: Settings = QUICK, **more: Any) -> Path:
    train_generator(ROWS, begun, settings, model=model, **more)
    return model


def same(one: Any, other: Any) -> bool:
    theirs = other.state_dict()
    return all(torch.equal(weights, theirs[name]) for name, weights in one.state_dict().items())


@pytest.mark.parametrize(("kind", "save"), [(LanguageModel, save_neox), (Seq2Seq, save_bart)])
def test_merged_and_alone_are_one_model(kind: Any, save: Callable, tmp_path: Path) -> None:
    base = start(tmp_path / "base", kind, save)
    merged = kind.load(trained(start(base.folder, kind, lora=LORA), tmp_path / "merged"))
    alone = trained(start(base.folder, kind, lora=LORA | {"save": "adapter"}), tmp_path / "alone")
    assert not list(alone.glob("model*.safetensors"))
    assert json.loads((alone / "adapter_config.json").read_text())["base_model_name_or_path"] == str(base.folder)
    again = kind.load(alone)
    for name, weights in merged.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], weights)
    moved = {
        name
        for name, weights in base.load().state_dict().items()
        if not torch.equal(weights, merged.state_dict()[name])
    }
    assert moved
    assert not [name for name in moved if "embed" in name or "norm" in name or "head" in name or "bias" in name]


def test_a_pickled_adapter_is_not_run(tmp_path: Path) -> None:
    base, touched = start(tmp_path / "base"), tmp_path / "touched"
    alone = trained(start(base.folder, lora=LORA | {"save": "adapter"}), tmp_path / "alone")
    (alone / "adapter_model.safetensors").unlink()
    torch.save({"weight": Touches(touched)}, alone / "adapter_model.bin")
    with pytest.raises(ValueError, match="alone has its weights as adapter_model.bin alone, a pickle"):
        LanguageModel.load(alone)
    assert not touched.exists()


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft uses an older name
def test_plain_transformers_and_peft_open_it(tmp_path: Path) -> None:
    base = start(tmp_path / "base").folder
    merged = trained(start(base, lora=LORA), tmp_path / "merged")
    alone = trained(start(base, lora=LORA | {"save": "adapter", "base": str(base)}), tmp_path / "alone")
    tokens = torch.tensor([[1, 5, 6, 7]])
    expected = LanguageModel.load(merged).model(tokens).logits
    torch.testing.assert_close(AutoModelForCausalLM.from_pretrained(merged)(tokens).logits, expected)
    torch.testing.assert_close(AutoPeftModelForCausalLM.from_pretrained(alone)(tokens).logits, expected)


class StoppedError(Exception):
    pass


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    begun = start(tmp_path / "base", lora=LORA)
    often = Settings(**vars(QUICK) | {"checkpoint_every": 1e-9, "max_epochs": 20})

    def stop(values: dict[str, float], step: int) -> None:
        if step == 20:
            raise StoppedError

    how = {"checkpoints": tmp_path / "checkpoints", "fingerprint": "one"}
    with pytest.raises(StoppedError):
        trained(begun, tmp_path / "model", often, log=stop, **how)
    resumed = LanguageModel.load(trained(begun, tmp_path / "model", often, **how))
    assert same(resumed, LanguageModel.load(trained(begun, tmp_path / "whole", often)))


def test_checkpointing_changes_memory_and_not_the_weights(tmp_path: Path) -> None:
    base = start(tmp_path / "base").folder
    plain = LanguageModel.load(trained(start(base), tmp_path / "plain"))
    saving = LanguageModel.load(trained(start(base, gradient_checkpointing=True), tmp_path / "saving"))
    assert start(base, gradient_checkpointing=True).load().learning.checkpointing
    for name, weights in plain.state_dict().items():
        torch.testing.assert_close(saving.state_dict()[name], weights)


def test_the_main_job_leaves_an_adapter_with_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = save_llama(tmp_path / "base", TEXTS * 20)
    asked = ["model=hf", f"model.base={base}", "model.lora.rank=2", "model.lora.save=adapter", "policy=both"]
    asked += ["model.gradient_checkpointing=true", "tracking=none", f"paths.outputs={tmp_path / 'out'}"]
    assert here(monkeypatch, *SMALL, *asked, "probe.max_length=3") == 0
    (folder,) = (tmp_path / "out").iterdir()
    card = (folder / "model" / "README.md").read_text()
    assert 'library_name: "peft"' in card
    assert "from peft import AutoPeftModelForCausalLM" in card
    assert f"the weights that it is added to are those of {base}" in card
    assert json.loads((folder / "metrics.json").read_text())["statements"] == 3 * 3 * 10


def test_what_cannot_be_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = start(tmp_path / "base", lora=LORA | {"targets": ["nowhere"]})
    with pytest.raises(MitigateError, match=r"model.lora.targets=\['nowhere'\]: "):
        trained(begun, tmp_path / "model")
    asked = ["model=hf", f"model.base={begun.folder}", "model.lora.rank=2", f"paths.outputs={tmp_path / 'out'}"]
    assert here(monkeypatch, *asked, "tracking=none", "model.relation=token") == 2
    assert "adds words to the vocabulary, which adapters do not train" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.setattr("mitigate.tasks.train.find_spec", lambda name: None)
    assert here(monkeypatch, *asked, "tracking=none") == 2
    assert "need the library peft: pip install 'mitigate[lora]', or say model.lora.rank=0" in capsys.readouterr().err
    with pytest.raises(MitigateError, match="low-rank adapters need the library peft"):
        trained(begun, tmp_path / "model")
