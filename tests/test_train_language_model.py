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
from command import SMALL
from small_models import save_bart, save_llama, save_neox
from test_train_comet import EXAMPLES
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

import mitigate
from mitigate.errors import MitigateError
from mitigate.train.base_model import kind_of
from mitigate.train.comet import Fitted, Settings, fit, perplexity
from mitigate.train.generator import open_generator
from models.hf import LanguageModel, Seq2Seq

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
    metrics, model = json.loads((done.folder / "metrics.json").read_text()), done.folder / "model"
    assert metrics["filter/dropped"] > 0
    assert metrics["statements"] == 3 * 3 * 10
    assert json.loads((done.folder / "train.json").read_text())["steps"] == 6
    kind, plain = (LanguageModel, AutoModelForCausalLM) if save is save_neox else (Seq2Seq, AutoModelForSeq2SeqLM)
    assert kind_of(model) is kind
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
    assert mitigate.open_run(done.folder).tails("a tall lawyer", "IsA").height == 10  # not probed: the model answers


@pytest.mark.parametrize(
    ("save", "precision", "keep"),
    [(save_llama, "32-true", "last"), (save_llama, "bf16-mixed", "best"), (save_bart, "bf16-mixed", "best")],
)
def test_it_learns_and_can_keep_the_best_weights(save: Save, precision: Any, keep: Any, tmp_path: Path) -> None:
    before = perplexity(small_model(tmp_path / "before", save), EXAMPLES)
    settings = Settings(max_epochs=20, batch_size=8, lr=1e-2, precision=precision, keep=keep)
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
    assert (start.code, start.regimen.relation) == (LanguageModel.load, "words")
    assert same(start.load(), model)
    with pytest.raises(MitigateError, match="trained with model.relation=words; give that, or null"):
        open_generator(tmp_path / "saved", relation="phrase")


def test_texts_that_are_too_long_are_named_before_the_first_stage(tmp_path: Path, job) -> None:
    """64 positions, and a head of 80 words, or 70 tokens of a tail."""
    base = f"model.base={save_bart(tmp_path / 'base', TEXTS)}"
    asked = ["model=seq2seq", base, "data=triples", "policy=none", f"data.path={tmp_path / 'mine.csv'}"]
    asked += ["data.columns={split: null}", "probe.relations=[IsA]", "probe.targets=[nurse]"]
    for head, longest, messages in (
        ("lawyer " * 80, 5, [f"{tmp_path / 'base'} has 64 positions, too few for 1 of the heads", "'lawyer lawyer"]),
        ("judge", 70, ["probe.max_length=70 must be at most 63: 71 positions are needed for"]),
    ):
        (tmp_path / "mine.csv").write_text(f"head,relation,tail\n{head.strip()},IsA,person\nnurse,IsA,person\n")
        refused = job(*asked, f"probe.max_length={longest}")
        assert refused.status == 2
        assert [message for message in messages if message not in " ".join(refused.complaint.split())] == []
        assert not refused.folder.exists()


def test_recipes_that_such_a_model_does_not_fit_are_refused(tmp_path: Path, job) -> None:
    bart, llama = (save(tmp_path / save.__name__, TEXTS) for save in (save_bart, save_llama))
    stories = ["recipe=stories", "model=seq2seq", "policy=none", f"model.base={bart}"]
    for settings, message in (
        (["model=hf", f"model.base={llama}", "model.layout=comet"], "model.layout=comet does not apply to"),
        ([*stories, "recipe.post_train=true"], "stories continue a prompt, which a sequence-to-sequence"),
        ([*stories, "recipe.post_train=false"], "stories continue a prompt, which a sequence-to-sequence"),
    ):
        refused = job(*settings)
        assert refused.status == 2
        assert message in refused.complaint
