"""Causal and sequence-to-sequence models of transformers trained as COMeTs: from the command line, killed and
continued, and opened elsewhere."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import SMALL, metrics_of
from small_models import save_bart, save_llama, save_neox
from test_train_comet import EXAMPLES
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from mitigate.errors import MitigateError
from mitigate.models.hf import LanguageModel, Seq2Seq
from mitigate.train.base_model import class_of
from mitigate.train.comet import Fitted, Settings, fit, perplexity
from mitigate.train.generator import open_generator

TEXTS = [f"{h} {p} {t}" for h, p, t in zip(EXAMPLES.heads, EXAMPLES.phrases, EXAMPLES.tails, strict=True)]
QUICK = Settings(max_epochs=3, batch_size=8, lr=1e-2, precision="32-true")
Save = Callable[[Path, list[str]], Path]
Model = LanguageModel | Seq2Seq
ON_CPU: dict[str, Any] = {"fingerprint": "one", "accelerator": "cpu"}


def small_model(folder: Path, save: Save = save_llama) -> Model:
    torch.manual_seed(0)
    return (Seq2Seq if save is save_bart else LanguageModel).load(save(folder, TEXTS))


def train(folder: Path, settings: Settings = QUICK, save: Save = save_llama, **more: Any) -> tuple[Model, Fitted]:
    model = small_model(folder / "start", save)
    return model, fit(model, EXAMPLES, settings, folder, dev=EXAMPLES, **ON_CPU, **more)


def same(one: Any, other: Any) -> bool:
    theirs = other.state_dict()
    return all(torch.allclose(weights, theirs[name], rtol=0, atol=1e-6) for name, weights in one.state_dict().items())


@pytest.mark.parametrize(
    ("save", "settings", "asked", "text", "card"),
    [
        (save_neox, ["model=hf", "model.relation=token"], "<IsA>", "lawyer <IsA>", "base_model: base"),
        (save_bart, ["model=seq2seq", "model.prompt=gen"], "IsA", "lawyer IsA [GEN]", '("lawyer CapableOf [GEN]"'),
    ],
    ids=["causal", "seq2seq"],
)
def test_the_main_job_trains_it_on_what_the_policy_keeps(save, settings, asked, text, card, tmp_path, job) -> None:
    """The whole job at a small size takes over 3 s: the policy's triples, training, probe and later questions agree."""
    base = save(tmp_path / "base", files("mitigate").joinpath("data/sample/test.txt").read_text().splitlines())
    done = job(*SMALL, *settings, f"model.base={base}", "policy=both", "probe.max_length=4")
    assert done.status == 0
    metrics, model = metrics_of(done.folder), done.folder / "model"
    assert metrics["filter/dropped"] > 0
    assert metrics["statements"] == 3 * 3 * 10
    assert json.loads((done.folder / "train.json").read_text())["steps"] == 6
    kind, plain = (LanguageModel, AutoModelForCausalLM) if save is save_neox else (Seq2Seq, AutoModelForSeq2SeqLM)
    assert class_of(model) is kind
    assert card in (model / "README.md").read_text()
    assert f"{plain.__name__}.from_pretrained" in (model / "README.md").read_text()

    theirs, before, tokenizer = (
        made.from_pretrained(path) for made, path in ((plain, model), (plain, base), (AutoTokenizer, model))
    )
    old = before.get_input_embeddings().weight
    assert (theirs.get_input_embeddings().weight[: len(old)] - old).abs().max() > 1e-4
    prompt = tokenizer(text, return_tensors="pt")["input_ids"]
    start = open_generator(model)
    ours = start.load()
    assert start.phrases["IsA"] == asked
    assert ours.prompts(["lawyer"], [asked]) == prompt.tolist()
    probed = pl.read_parquet(done.folder / "probe.parquet").filter(relation="IsA", target="lawyer")
    (found,) = ours.search(prompt.tolist(), max_length=4)
    assert probed["log_prob"].to_list() == pytest.approx([beam.log_prob for beam in found], abs=1e-3)
    before = getattr(ours, "before", None)  # what a decoder begins with
    how = {"num_beams": 10, "num_return_sequences": 10, "eos_token_id": None}
    said = theirs.generate(prompt, max_new_tokens=3 + len(before or [0]), **how)
    ours.end = -1  # no token ends a tail
    (beams,) = ours.search(prompt.tolist(), max_length=4)
    assert [list(beam.tokens) for beam in beams] == said[:, len(before or prompt[0]) :].tolist()


@pytest.mark.parametrize(("save", "precision"), [(save_llama, "32-true"), (save_bart, "bf16-mixed")])
def test_it_learns(save: Save, precision: Any, tmp_path: Path) -> None:
    before = perplexity(small_model(tmp_path / "before", save), EXAMPLES)
    settings = Settings(max_epochs=20, batch_size=8, lr=1e-2, precision=precision)
    model, fitted = train(tmp_path, settings, save)
    assert fitted.dev_perplexity == pytest.approx(perplexity(model, EXAMPLES), rel=1e-4)
    assert perplexity(model, EXAMPLES) < before / 10
    assert not model.training
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}


def test_a_folder_is_opened_as_what_was_trained(tmp_path: Path) -> None:
    model = small_model(tmp_path / "start")
    model.relation = "words"
    model.model.config.comet_layout = "packed"  # as of one that was a COMeT before
    model.save(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert (config["comet_relation"], "comet_layout" in config) == ("words", False)
    start = open_generator(tmp_path / "saved")
    assert (start.code, start.prompt_format.relation) == (LanguageModel.load, "words")
    assert same(start.load(), model)
    with pytest.raises(MitigateError, match="trained with model.relation=words; give that, or null"):
        open_generator(tmp_path / "saved", relation="phrase")
