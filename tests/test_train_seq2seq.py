"""Sequence-to-sequence models trained as COMeTs: from the command line, killed and continued, and opened elsewhere."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import SMALL, here
from small_models import save_bart
from test_train_comet import EXAMPLES
from test_train_language_model import QUICK, TEXTS, train_until_killed
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import mitigate
from mitigate.errors import MitigateError
from mitigate.tasks.generator import open_generator
from mitigate.train.comet import Examples, Fitted, Settings, fit, perplexity
from models.seq2seq import Seq2Seq


def small_model(folder: Path) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq.load(save_bart(folder, TEXTS))


def train(folder: Path, settings: Settings = QUICK, **more: Any) -> tuple[Seq2Seq, Fitted]:
    model = small_model(folder / "start")
    found = fit(model, EXAMPLES, settings, folder, fingerprint="one", accelerator="cpu", dev=EXAMPLES, **more)
    return model, found


def same(one: Seq2Seq, other: Seq2Seq) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_the_main_job_trains_it_on_what_the_policy_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = files("mitigate").joinpath("data/sample/test.txt").read_text().splitlines()
    base = save_bart(tmp_path / "base", texts)
    asked = ["model=seq2seq", f"model.base={base}", "model.prompt=gen", "policy=both", "probe.max_length=4"]
    assert here(monkeypatch, *SMALL, *asked, "tracking=none", f"paths.outputs={tmp_path / 'out'}") == 0
    (folder,) = (tmp_path / "out").iterdir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["filter/dropped"] > 0
    assert metrics["statements"] == 3 * 3 * 10
    card = (folder / "model" / "README.md").read_text()
    assert "AutoModelForSeq2SeqLM.from_pretrained" in card
    assert 'tokenizer("lawyer CapableOf [GEN]"' in card

    theirs, tokenizer = (kind.from_pretrained(folder / "model") for kind in (AutoModelForSeq2SeqLM, AutoTokenizer))
    before = AutoModelForSeq2SeqLM.from_pretrained(base)
    assert not torch.equal(theirs.get_input_embeddings().weight, before.get_input_embeddings().weight)
    prompt = tokenizer("lawyer IsA [GEN]", return_tensors="pt")["input_ids"]
    start = open_generator(folder / "model")
    ours = start.load()
    assert start.asked["IsA"] == "IsA"
    assert ours.prompts(["lawyer"], ["IsA"]) == prompt.tolist()
    said = theirs.generate(prompt, num_beams=10, num_return_sequences=10, max_new_tokens=5, eos_token_id=None)
    ours.end = -1  # no token ends a tail
    (beams,) = ours.search(prompt.tolist(), max_length=4)
    assert [list(beam.tokens) for beam in beams] == said[:, 2:].tolist()
    probed = pl.read_parquet(folder / "probe.parquet").filter(relation="IsA", target="lawyer")
    (found,) = start.load().search(prompt.tolist(), max_length=4)
    assert probed["log_prob"].to_list() == pytest.approx([beam.log_prob for beam in found], abs=1e-3)
    assert mitigate.open_run(folder).tails("a tall lawyer", "IsA").height == 10  # not probed: the model answers now


def test_heads_that_are_too_long_are_told_before_the_first_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """64 positions, and a head of 80 words."""
    base, long = save_bart(tmp_path / "base", TEXTS), " ".join(["lawyer"] * 80)
    (tmp_path / "mine.csv").write_text(f"head,relation,tail\n{long},IsA,person\nnurse,IsA,person\n")
    asked = ["model=seq2seq", f"model.base={base}", "data=triples", f"data.path={tmp_path / 'mine.csv'}"]
    kept = ["policy=none", "data.columns={split: null}", "probe.relations=[IsA]", "probe.targets=[nurse]"]
    assert here(monkeypatch, *asked, *kept, "tracking=none", f"paths.outputs={tmp_path / 'out'}") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"the model in {base} has 64 positions, too few for 1 of the heads with their relation" in said
    assert "'lawyer lawyer" in said
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine.csv").write_text("head,relation,tail\njudge,IsA,person\nnurse,IsA,person\n")
    assert here(monkeypatch, *asked, *kept, "probe.max_length=70", "tracking=none", f"paths.outputs={tmp_path}/o") == 2
    assert "probe.max_length=70 must be at most 63: 71 positions are needed for" in capsys.readouterr().err


def test_texts_that_are_too_long_are_told_before_the_first_step(tmp_path: Path) -> None:
    examples = Examples(["lawyer", "a " * 80], ["is a"] * 2, ["person"] * 2)
    with pytest.raises(MitigateError, match=r"the model has 64\. The prompt begins: a a a .*Shorten such heads"):
        fit(small_model(tmp_path / "start"), examples, QUICK, tmp_path, fingerprint="one", accelerator="cpu")


def test_it_learns(tmp_path: Path) -> None:
    before = perplexity(small_model(tmp_path / "before"), EXAMPLES)
    model, fitted = train(tmp_path, Settings(max_epochs=20, batch_size=8, lr=1e-2, precision="bf16-mixed", keep="best"))
    assert fitted.dev_perplexity == pytest.approx(perplexity(model, EXAMPLES), rel=1e-4)
    assert perplexity(model, EXAMPLES) < before / 10


@pytest.mark.thorough
def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    """BART's dropout included: each step has random numbers of its own."""
    train_until_killed("test_train_seq2seq", tmp_path / "killed")
    resumed, fitted = train(tmp_path / "killed")
    whole, uninterrupted = train(tmp_path / "whole")
    assert same(resumed, whole)
    assert not same(whole, small_model(tmp_path / "untrained"))
    assert fitted.train_loss == uninterrupted.train_loss


def test_stories_need_a_model_that_goes_on_with_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base = f"model.base={save_bart(tmp_path / 'base', TEXTS)}"
    asked = ["recipe=stories", "model=seq2seq", base, "policy=none", "tracking=none", f"paths.outputs={tmp_path / 'o'}"]
    for trained in ("true", "false"):
        assert here(monkeypatch, *asked, f"recipe.post_train={trained}") == 2
        assert "stories go on with the words of a prompt" in capsys.readouterr().err
