"""Models of transformers trained as COMeTs: from the command line, killed and continued, and opened elsewhere."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import SMALL, here
from small_models import save_llama, save_neox
from test_train_comet import EXAMPLES
from transformers import AutoModelForCausalLM, AutoTokenizer

import mitigate
from mitigate.errors import MitigateError
from mitigate.relations import asked_with
from mitigate.tasks.generator import open_generator
from mitigate.train import launch
from mitigate.train.comet import Examples, Fitted, Settings, fit, perplexity
from models.kinds import kind_of
from models.language_model import LanguageModel
from models.learning import Learning

TEXTS = [f"{h} {p} {t}" for h, p, t in zip(EXAMPLES.heads, EXAMPLES.phrases, EXAMPLES.tails, strict=True)]
QUICK = Settings(max_epochs=3, batch_size=8, lr=1e-2, precision="32-true")
Save = Callable[[Path, list[str]], Path]


def small_model(folder: Path, save: Save = save_llama) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel.load(save(folder, TEXTS))


def train(folder: Path, settings: Settings = QUICK, **more: Any) -> tuple[LanguageModel, Fitted]:
    model = small_model(folder / "start")
    found = fit(model, EXAMPLES, settings, folder, fingerprint="one", accelerator="cpu", dev=EXAMPLES, **more)
    return model, found


def same(one: LanguageModel, other: LanguageModel) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("save", [save_llama, save_neox])
def test_the_main_job_trains_it_on_what_the_policy_keeps(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = files("mitigate").joinpath("data/sample/test.txt").read_text().splitlines()
    base = save(tmp_path / "base", texts)
    asked = ["model=hf", f"model.base={base}", "policy=both", "tracking=none", f"paths.outputs={tmp_path / 'out'}"]
    relation = "token" if save is save_neox else "phrase"
    assert here(monkeypatch, *SMALL, *asked, f"model.relation={relation}", "probe.max_length=4") == 0
    (folder,) = (tmp_path / "out").iterdir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["filter/dropped"] > 0
    assert metrics["statements"] == 3 * 3 * 10
    assert json.loads((folder / "train.json").read_text())["steps"] == 6
    assert kind_of(folder / "model") is LanguageModel
    assert 'base_model: "' in (folder / "model" / "README.md").read_text()

    theirs, tokenizer = (kind.from_pretrained(folder / "model") for kind in (AutoModelForCausalLM, AutoTokenizer))
    before = AutoModelForCausalLM.from_pretrained(base)
    rows = len(before.get_input_embeddings().weight)
    moved = theirs.get_input_embeddings().weight[:rows] - before.get_input_embeddings().weight
    assert moved.abs().max() > 1e-4
    phrase = asked_with(relation)["IsA"]
    prompt = tokenizer(f"lawyer {phrase}", return_tensors="pt")["input_ids"]
    if relation == "token":
        assert tokenizer.convert_ids_to_tokens(prompt[0])[-1] == "<IsA>"
    said = theirs.generate(prompt, num_beams=10, num_return_sequences=10, max_new_tokens=4, eos_token_id=None)
    ours = LanguageModel.load(folder / "model")
    assert ours.relation == relation
    assert ours.prompts(["lawyer"], [phrase]) == prompt.tolist()
    ours.end = -1  # no token ends a tail
    (beams,) = ours.search(prompt.tolist(), max_length=4)
    assert [list(beam.tokens) for beam in beams] == said[:, prompt.shape[1] :].tolist()
    probed = pl.read_parquet(folder / "probe.parquet").filter(relation="IsA", target="lawyer", rank=1)
    (best,) = LanguageModel.load(folder / "model").search(prompt.tolist(), max_length=4)
    assert probed["log_prob"][0] == pytest.approx(best[0].log_prob, abs=1e-3)
    assert mitigate.open_run(folder).tails("a tall lawyer", "IsA").height == 10  # not probed: the model answers now


def test_it_learns(tmp_path: Path) -> None:
    before = perplexity(small_model(tmp_path / "before"), EXAMPLES)
    model, fitted = train(tmp_path, Settings(max_epochs=20, batch_size=8, lr=1e-2, precision="32-true"))
    assert fitted.dev_perplexity == pytest.approx(perplexity(model, EXAMPLES))
    assert perplexity(model, EXAMPLES) < before / 10
    assert not model.training


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_the_best_weights_can_be_kept(precision: Any, tmp_path: Path) -> None:
    settings = Settings(max_epochs=3, batch_size=8, lr=1e-2, precision=precision, keep="best")
    model, fitted = train(tmp_path, settings)
    assert perplexity(model, EXAMPLES) == pytest.approx(fitted.dev_perplexity, rel=1e-4)
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from {module} import QUICK, Settings, train
def die(numbers, step):
    if step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
train(Path({folder!r}), Settings(**vars(QUICK) | {{"checkpoint_every": 1e-9}}), log=die)
"""


def train_until_killed(module: str, folder: Path) -> None:
    """By the function `train` of a test module, in a process of its own, killed at step 5; the checkpoint is of 4."""
    code = KILLED.format(tests=str(Path(__file__).parent), module=module, folder=str(folder))
    root = Path(__file__).parents[1]
    killed = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert torch.load(folder / "last.ckpt", weights_only=True)["global_step"] == 4


@pytest.mark.thorough
def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    """Killed in the last epoch but one, whose end it tells at step 5; the checkpoint is of step 4."""
    train_until_killed("test_train_language_model", tmp_path / "killed")
    resumed, fitted = train(tmp_path / "killed")
    whole, uninterrupted = train(tmp_path / "whole")
    assert same(resumed, whole)
    assert not same(whole, small_model(tmp_path / "untrained"))
    assert fitted.train_loss == uninterrupted.train_loss
    assert fitted.dev_perplexity == uninterrupted.dev_perplexity


@pytest.mark.thorough
def test_two_processes_train_as_one(tmp_path: Path) -> None:
    """A Llama has no dropout; only the order of additions differs."""
    one, expected = train(tmp_path / "one")
    two = small_model(tmp_path / "start")
    how = {"fingerprint": "one", "dev": EXAMPLES, "accelerator": "cpu", "devices": 2, "strategy": "ddp"}
    fitted = launch.fit(two, EXAMPLES, QUICK, tmp_path / "two", **how)
    assert fitted.train_loss == pytest.approx(expected.train_loss, abs=1e-4)
    torch.testing.assert_close(two.state_dict(), one.state_dict(), atol=1e-3, rtol=0)


@pytest.mark.thorough
def test_two_processes_train_with_checkpointing(tmp_path: Path) -> None:
    one, two = (small_model(tmp_path / name) for name in ("one", "two"))
    how = {"fingerprint": "one", "accelerator": "cpu", "devices": 2, "strategy": "ddp"}
    launch.fit(one, EXAMPLES, QUICK, tmp_path / "plain", **how)
    two.learning = Learning(checkpointing=True)
    launch.fit(two, EXAMPLES, QUICK, tmp_path / "saving", **how)
    torch.testing.assert_close(two.state_dict(), one.state_dict())


def test_relations_get_tokens_of_their_own(tmp_path: Path) -> None:
    model, again = small_model(tmp_path / "one"), small_model(tmp_path / "two")
    rows = len(model.tokenizer)
    for each in (model, again):
        each.add(["<CapableOf>", "<UsedFor>"])
        each.add(["<CapableOf>"])  # which is there
    assert same(model, again)
    assert len(model.model.get_input_embeddings().weight) == len(model.tokenizer) == rows + 2
    (prompt,) = model.prompts(["lawyer"], ["<UsedFor>"])
    assert prompt == [*model.encode(["lawyer"])[0], rows + 1]
    model.save(tmp_path / "saved")
    assert LanguageModel.load(tmp_path / "saved").prompts(["lawyer"], ["<UsedFor>"]) == [prompt]


def test_a_folder_is_opened_as_what_was_trained(tmp_path: Path) -> None:
    model = small_model(tmp_path / "start")
    model.relation = "words"
    model.model.config.comet_layout = "packed"  # as of one that was a COMeT before
    model.save(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert (config["comet_relation"], "comet_layout" in config) == ("words", False)
    start = open_generator(tmp_path / "saved")
    assert (start.code, start.regimen.relation) == (LanguageModel.load, "words")
    assert same(start.load(), model)
    with pytest.raises(MitigateError, match="trained with model.relation=words; give that, or null"):
        open_generator(tmp_path / "saved", relation="phrase")


def test_the_places_of_the_original_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    base = save_llama(tmp_path / "base", ["a lawyer reads", "a nurse sings"] * 3)
    asked = ["model=hf", f"model.base={base}", "model.layout=comet", "tracking=none", f"paths.outputs={tmp_path}"]
    assert here(monkeypatch, *SMALL, *asked) == 2
    assert "model.layout=comet has fixed places" in capsys.readouterr().err


def test_ways_that_only_our_decoder_has_are_refused(tmp_path: Path) -> None:
    model = small_model(tmp_path / "start")
    how = {"fingerprint": "one", "accelerator": "cpu"}
    with pytest.raises(MitigateError, match=re.escape("trainer.vocabulary=tails (allowed: auto or all): only the")):
        fit(model, EXAMPLES, Settings(vocabulary="tails"), tmp_path, **how)
    with pytest.raises(MitigateError, match=re.escape("trainer.compile=true (allowed: auto or false)")):
        fit(model, EXAMPLES, Settings(), tmp_path, compile=True, **how)
    with pytest.raises(MitigateError, match="no triple is left to train on"):
        fit(model, Examples([], [], []), Settings(), tmp_path, **how)
