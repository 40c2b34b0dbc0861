"""Low-rank adapters: what they change, and what opens a model that was trained by them."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import SMALL
from peft import AutoPeftModelForCausalLM
from refusals import refuses
from small_models import save_bart, save_llama, save_neox
from test_hub import Touches
from test_train_comet import EXAMPLES
from test_train_language_model import QUICK, TEXTS, same
from transformers import AutoModelForCausalLM

from mitigate.models.hf import LanguageModel, Seq2Seq
from mitigate.train.base_model import Start, find_start
from mitigate.train.comet import Settings
from mitigate.train.generator import train_generator
from mitigate.words.relations import prompt_phrases

ROWS = pl.DataFrame(
    {"head": EXAMPLES.heads, "relation": "CapableOf", "tail": EXAMPLES.tails, "split": "train", "weight": 1.0}
)
WITH_DEV = pl.concat([ROWS, ROWS.with_columns(split=pl.lit("dev"))])
LORA = {"rank": 4, "save": "merged", "base": None}


def start(folder: Path, kind: Any = LanguageModel, save: Callable = save_llama, **options: Any) -> Start:
    torch.manual_seed(0)
    return find_start(kind.load, folder if folder.exists() else save(folder, TEXTS), options=options)


def trained(begun: Start, model: Path, settings: Settings = QUICK, **more: Any) -> Path:
    train_generator(WITH_DEV, begun, settings, model=model, **more)
    return model


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with base/, and what its adapters have become: merged/ and alone/."""
    folder = tmp_path_factory.mktemp("llama")
    base = start(folder / "base").folder
    trained(start(base, lora=LORA), folder / "merged")
    trained(start(base, lora=LORA | {"save": "adapter", "base": str(base)}), folder / "alone")
    return folder


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


def test_a_pickled_adapter_is_not_run(llama: Path, tmp_path: Path) -> None:
    alone, touched = shutil.copytree(llama / "alone", tmp_path / "alone"), tmp_path / "touched"
    (alone / "adapter_model.safetensors").unlink()
    torch.save({"weight": Touches(touched)}, alone / "adapter_model.bin")
    refuses(ValueError, "alone has its weights as adapter_model.bin alone, a pickle", LanguageModel.load, alone)
    assert not touched.exists()


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft uses an older name
def test_plain_transformers_and_peft_open_it(llama: Path) -> None:
    tokens = torch.tensor([[1, 5, 6, 7]])
    expected = LanguageModel.load(llama / "merged").model(tokens).logits
    for kind, folder in ((AutoModelForCausalLM, "merged"), (AutoPeftModelForCausalLM, "alone")):
        torch.testing.assert_close(kind.from_pretrained(llama / folder)(tokens).logits, expected)


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


def test_the_main_job_leaves_an_adapter_with_a_card(tmp_path: Path, job) -> None:
    """The whole job takes over 3 s: training of adapters and the probe of what they give meet nowhere else."""
    base = save_llama(tmp_path / "base", TEXTS * 20)
    asked = ["model=hf", f"model.base={base}", "model.lora.rank=2", "model.lora.save=adapter", "policy=both"]
    done = job(*SMALL, *asked, "probe.max_length=3")
    assert done.status == 0
    card = (done.folder / "model" / "README.md").read_text()
    assert "library_name: peft\n" in card
    assert "from peft import AutoPeftModelForCausalLM" in card
    assert f"the weights that it is added to are those of {base.name}" in card
    assert str(tmp_path) not in card
    assert json.loads((done.folder / "metrics.json").read_text())["statements"] == 3 * 3 * 10
    probed = pl.read_parquet(done.folder / "probe.parquet").filter(relation="IsA", target="lawyer")
    model = LanguageModel.load(done.folder / "model")
    (found,) = model.search(model.prompts(["lawyer"], [prompt_phrases("phrase")["IsA"]]), max_length=3)
    assert probed["log_prob"].to_list() == pytest.approx([beam.log_prob for beam in found], abs=1e-3)


def test_what_cannot_be_is_said_before_the_first_stage(llama: Path, tmp_path: Path, job, monkeypatch) -> None:
    folder = llama / "base"
    asked = ["model=hf", f"model.base={folder}", "model.lora.rank=2"]
    refused = job(*asked, "model.relation=token")
    assert refused.status == 2
    assert "adds tokens to the vocabulary, which adapters do not train" in refused.complaint
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.setattr("mitigate.train.generator.find_spec", lambda name: None)
    refused = job(*asked)
    assert refused.status == 2
    assert "need the library peft: pip install 'mitigate[lora]', or set model.lora.rank=0" in refused.complaint
