"""Low-rank adapters: what they change, and what their checkpoints hold."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from small_models import save_bart, save_llama, save_neox
from test_train_comet import EXAMPLES
from test_train_language_model import QUICK, TEXTS, same

from mitigate.models.hf import LanguageModel, Seq2Seq
from mitigate.train.base_model import Start, find_start
from mitigate.train.comet import Settings
from mitigate.train.generator import train_generator

ROWS = pl.DataFrame(
    {"head": EXAMPLES.heads, "relation": "CapableOf", "tail": EXAMPLES.tails, "split": "train", "weight": 1.0}
)
WITH_DEV = pl.concat([ROWS, ROWS.with_columns(split=pl.lit("dev"))])
LORA = {"rank": 4}


def start(folder: Path, kind: Any = LanguageModel, save: Callable = save_llama, **options: Any) -> Start:
    torch.manual_seed(0)
    return find_start(kind.load, folder if folder.exists() else save(folder, TEXTS), options=options)


def trained(begun: Start, model: Path, settings: Settings = QUICK, **more: Any) -> Path:
    train_generator(WITH_DEV, begun, settings, model=model, **more)
    return model


@pytest.mark.parametrize(("kind", "save"), [(LanguageModel, save_neox), (Seq2Seq, save_bart)])
def test_linear_layers_alone_are_trained_and_merged(kind: Any, save: Callable, tmp_path: Path) -> None:
    base = start(tmp_path / "base", kind, save)
    merged = kind.load(trained(start(base.folder, kind, lora=LORA), tmp_path / "merged")).state_dict()
    moved = {name for name, weights in base.load().state_dict().items() if not torch.equal(weights, merged[name])}
    assert moved
    assert not [name for name in moved if "embed" in name or "norm" in name or "head" in name or "bias" in name]


class StoppedError(Exception):
    pass


def stopped(begun: Start, checkpoints: Path, settings: Settings = QUICK) -> dict[str, Any]:
    """The last checkpoint of a training that was stopped at the end of its first epoch; it has one of every step."""

    def stop(values: dict[str, float], step: int) -> None:
        raise StoppedError

    settings = replace(settings, checkpoint_every=1e-9)
    with pytest.raises(StoppedError):
        trained(begun, checkpoints / "none", settings, log=stop, checkpoints=checkpoints, fingerprint="one")
    return torch.load(checkpoints / "last.ckpt", weights_only=True)


@pytest.mark.parametrize(("kind", "save"), [(LanguageModel, save_llama), (Seq2Seq, save_bart)])
def test_checkpoints_hold_what_is_trained(kind: Any, save: Callable, tmp_path: Path) -> None:
    """Frozen weights have two names in a BART, whose words are also its head; its final_logits_bias is a buffer."""
    begun = start(tmp_path / "base", kind, save, lora=LORA)
    written = stopped(begun, tmp_path / "checkpoints")
    names = [name for name in written["state_dict"] if not name.endswith("final_logits_bias")]
    assert all(".lora_" in name for name in names)
    assert len(names) == len(written["optimizer_states"][0]["state"]) > 0
    how = {"checkpoints": tmp_path / "checkpoints", "fingerprint": "one"}
    resumed = kind.load(trained(begun, tmp_path / "model", **how))
    assert same(resumed, kind.load(trained(begun, tmp_path / "whole")))


def test_what_cannot_be_is_said_before_the_first_stage(tmp_path: Path, job, monkeypatch) -> None:
    folder = save_llama(tmp_path / "base", TEXTS)
    asked = ["model=hf", f"model.base={folder}", "model.lora.rank=2"]
    refused = job(*asked, "model.relation=token")
    assert refused.status == 2
    assert "adds tokens to the vocabulary, which adapters do not train" in refused.complaint
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.setattr("mitigate.train.generator.find_spec", lambda name: None)
    refused = job(*asked)
    assert refused.status == 2
    assert "need the library peft: pip install 'mitigate[lora]', or set model.lora.rank=0" in refused.complaint
