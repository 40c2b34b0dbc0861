"""The main job on models of all kinds: how they are asked, and those that are probed as they are."""

import json
import re
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, here
from small_models import save_gpt1, save_llama, save_original

from mitigate.relations import asked_with
from mitigate.triples import PROBED
from models import original
from models.comet import Comet
from models.language_model import LanguageModel

AS_IT_IS = ["train=false", "policy=none"]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return files("mitigate").joinpath("data/sample/test.txt").read_text().splitlines()


def run(monkeypatch: pytest.MonkeyPatch, outputs: Path, *overrides: str) -> Path:
    assert here(monkeypatch, *SMALL, "tracking=none", f"paths.outputs={outputs}", *overrides) == 0
    (folder,) = outputs.iterdir()
    return folder


def check(folder: Path, generator: Comet | LanguageModel, wording: str) -> None:
    """The run's beams and held-out triples have the likelihoods that the generator gives them, asked so."""
    asked = asked_with(wording)
    probed = pl.read_parquet(folder / "probe.parquet")
    assert probed.schema == pl.Schema(PROBED)
    assert probed.height == 3 * 3 * 10
    whole = probed.filter(rank=1).with_columns(tail=pl.col("tail").str.strip_chars())
    prompts = generator.prompts(whole["target"].to_list(), [asked[relation] for relation in whole["relation"]])
    best = [beams[0] for beams in generator.search(prompts, max_length=6)]
    assert [generator.decode(beam.tokens) for beam in best] == whole["tail"].to_list()
    assert [beam.log_prob for beam in best] == pytest.approx(whole["log_prob"].to_list(), abs=1e-3)
    held_out = pl.read_parquet(folder / "likelihood.parquet").head(20)
    prompts = generator.prompts(held_out["head"].to_list(), [asked[relation] for relation in held_out["relation"]])
    tails = generator.tails(held_out["tail"].to_list())
    nll = [tokens.sum().item() for tokens in generator.nll(prompts, tails).split([len(tail) for tail in tails])]
    assert nll == pytest.approx(held_out["nll"].to_list(), abs=1e-3)


def test_a_language_model_of_hugging_faces(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_llama(tmp_path / "llama", texts)
    folder = run(monkeypatch, tmp_path / "out", "model=hf", f"model.base={model}", *AS_IT_IS)
    check(folder, LanguageModel.load(model), "phrase")
    assert not (folder / "model").exists()
    assert "The model was probed as it is" in (folder / "report.html").read_text(encoding="utf-8")
    assert re.search(r"  notes       .* on the page; verbose=true prints them", capsys.readouterr().out)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["model"] == "hf"
    assert metrics["quality/perplexity/all"] > 1
    assert metrics["quality/bits_per_char/all"] > 0


def test_an_original_comet(texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpt1 = save_gpt1(tmp_path / "gpt1", texts, width=128)
    checkpoint = save_original(tmp_path / "pretrained.pickle", gpt1, list(asked_with("token")))
    at_hand = ["model=comet_original", f"model.init={checkpoint}", f"model.base={gpt1}"]
    folder = run(monkeypatch, tmp_path / "out", *at_hand, *AS_IT_IS)
    comet = original.load(checkpoint, gpt1)
    assert (comet.layout, comet.relation) == ("comet", "words")
    check(folder, comet, "words")


def test_a_comet_is_asked_as_it_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained in slots and with tokens for relations; then probed again as it is, with the same result."""
    ways = ["model.layout=comet", "model.relation=token", "policy=none"]
    folder = run(monkeypatch, tmp_path / "trained", *ways)
    comet = Comet.load(folder / "model")
    assert (comet.layout, comet.relation) == ("comet", "token")
    assert len(comet.prompts(["lawyer"], ["<UsedFor>"])[0]) == 15
    check(folder, comet, "token")
    again = run(monkeypatch, tmp_path / "again", "model=comet", f"model.base={folder / 'model'}", *AS_IT_IS)
    for table in ("probe", "likelihood"):
        assert pl.read_parquet(again / f"{table}.parquet").equals(pl.read_parquet(folder / f"{table}.parquet"))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.relation=verb"], "unknown model.relation 'verb'; allowed: phrase, words, token"),
        (["model.layout=slots"], "unknown model.layout 'slots'; allowed: packed, comet"),
        (
            ["model=tails", "model.path=x.tsv", "train=true"],
            "model=tails is probed as it is and cannot be trained here",
        ),
        (
            ["model=hf", "model.base=LLAMA", "model.relation=token", *AS_IT_IS],
            "asks with a word of each relation's own",
        ),
        (
            ["model=hf", "model.base=LLAMA", "trainer.vocabulary=tails"],
            "trainer.vocabulary=tails (allowed: auto or all): only",
        ),
        (
            ["model=hf", "model.base=LLAMA", "trainer.compile=true", "trainer.vocabulary=tails"],
            "trainer.vocabulary=tails (allowed: auto or all), trainer.compile=true (allowed: auto or false): only the "
            "project's own decoder",
        ),
        (["model=hf", "model.base=LLAMA", "trainer=fsdp"], "trainer.strategy=fsdp (allowed: auto or ddp): only"),
        (
            ["model=hf", "model.base=LLAMA", "policy=erase"],
            "policy=erase changes what the project's own decoder generates, and this model is another",
        ),
        (["model=seq2seq", "model.base=.", "model.prompt=tail"], "unknown model.prompt 'tail'; allowed: phrase, gen"),
        (
            ["model=hf", "model.base=LLAMA", "policy=both", "train=false"],
            "policy=both filters what a model is trained on, and this one is not trained",
        ),
        (
            ["model=comet_original", "model.base=.", "model.init=nowhere.pickle"],
            "nowhere.pickle is no checkpoint: there is no such file; give the path of the original COMeT's",
        ),
        (["model=comet_original", "model.base=."], "model.init must be given: model.init=..."),
    ],
)
def test_faults_are_named_before_anything_is_done(
    overrides: list[str],
    message: str,
    tmp_path: Path,
    texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "model.base=LLAMA" in overrides:
        overrides = [part.replace("LLAMA", str(save_llama(tmp_path / "base", texts))) for part in overrides]
    assert here(monkeypatch, "tracking=none", f"paths.outputs={tmp_path / 'out'}", *overrides) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_comet_is_not_asked_another_way(
    tmp_path: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    comet = Comet.load(save_gpt1(tmp_path / "gpt1", texts), "packed", "words")
    comet.save(tmp_path / "comet")
    base = f"model.base={tmp_path / 'comet'}"
    assert here(monkeypatch, "model=comet_gpt1", base, f"paths.outputs={tmp_path / 'out'}", *AS_IT_IS) == 2
    assert "was trained with model.relation=words; give that, or null" in capsys.readouterr().err
