"""The main job on models of all kinds: how they are asked, and those that are probed as they are."""

import re
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, metrics_of
from small_models import save_gpt1, save_llama, save_original

from mitigate.models import original
from mitigate.models.comet import Comet
from mitigate.models.hf import LanguageModel
from mitigate.triples import PROBED
from mitigate.words.relations import prompt_phrases

AS_IT_IS = ["train=false", "policy=none"]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small random models: a Llama, GPT-1s of two widths, and a COMeT that was trained with the words of relations."""
    texts = files("mitigate").joinpath("data/sample/test.txt").read_text().splitlines()
    folder = tmp_path_factory.mktemp("bases")
    saved = {"LLAMA": save_llama(folder / "llama", texts), "GPT1": save_gpt1(folder / "gpt1", texts, width=128)}
    Comet.load(save_gpt1(folder / "narrow", texts), "packed", "words").save(folder / "comet")
    return saved | {"COMET": folder / "comet"}


@pytest.fixture
def run(job):
    def run(*overrides: str) -> Path:
        done = job(*SMALL, *overrides)
        assert done.status == 0
        return done.folder

    return run


def check(folder: Path, generator: Comet | LanguageModel, wording: str) -> None:
    """The run's beams and held-out triples have the likelihoods that the generator gives them, asked so."""
    asked = prompt_phrases(wording)
    probed = pl.read_parquet(folder / "probe.parquet")
    assert (probed.schema, probed.height) == (pl.Schema(PROBED), 3 * 3 * 10)
    whole = probed.filter(rank=1).with_columns(tail=pl.col("tail").str.strip_chars())
    prompts = generator.prompts(whole["target"].to_list(), [asked[relation] for relation in whole["relation"]])
    best = [beams[0] for beams in generator.search(prompts, max_length=6)]
    assert [generator.decode(beam.tokens) for beam in best] == whole["tail"].to_list()
    assert [beam.log_prob for beam in best] == pytest.approx(whole["log_prob"].to_list(), abs=1e-3)
    assert "not trained here: train it (train=true)" in (folder / "report.html").read_text()
    held_out = pl.read_parquet(folder / "likelihood.parquet").head(20)
    prompts = generator.prompts(held_out["head"].to_list(), [asked[relation] for relation in held_out["relation"]])
    tails = generator.tails(held_out["tail"].to_list())
    nll = [tokens.sum().item() for tokens in generator.nll(prompts, tails).split([len(tail) for tail in tails])]
    assert nll == pytest.approx(held_out["nll"].to_list(), abs=1e-3)


def test_a_language_model_of_hugging_faces(bases, job) -> None:
    """Takes over 3 s: the only job on a language model as it is."""
    done = job(*SMALL, "model=hf", f"model.base={bases['LLAMA']}", *AS_IT_IS)
    check(done.folder, LanguageModel.load(bases["LLAMA"]), "phrase")
    assert not (done.folder / "model").exists()
    assert "The model was not trained here" in (done.folder / "report.html").read_text(encoding="utf-8")
    assert re.search(r"  notes       .* on the page; verbose=true prints them", done.said)
    metrics = metrics_of(done.folder)
    assert metrics["model"] == "hf"
    assert metrics["quality/perplexity/all"] > 1


def test_an_original_comet(bases, run, tmp_path: Path) -> None:
    """Takes over 3 s: the only job on a checkpoint of the original."""
    checkpoint = save_original(tmp_path / "pretrained.pickle", bases["GPT1"], list(prompt_phrases("token")))
    at_hand = ["model=comet_original", f"model.init={checkpoint}", f"model.base={bases['GPT1']}"]
    folder, comet = run(*at_hand, *AS_IT_IS), original.load(checkpoint, bases["GPT1"])
    assert (comet.layout, comet.relation) == ("comet", "words")
    check(folder, comet, "words")


LLAMA = ["model=hf", "model.base=LLAMA"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.relation=verb"], "unknown model.relation 'verb'; allowed: phrase, words, token"),
        (["model.layout=slots"], "unknown model.layout 'slots'; allowed: packed, comet"),
        ([*LLAMA, "model.relation=token", *AS_IT_IS], "needs a token for each relation"),
        ([*LLAMA, "trainer=fsdp"], "trainer.strategy=fsdp (allowed: auto or ddp): only"),
        (["model=seq2seq", "model.base=.", "model.prompt=tail"], "unknown model.prompt 'tail'; allowed: phrase, chat"),
        ([*LLAMA, "policy=both", "train=false"], "policy=both changes training triples, and the model is not"),
        (
            ["model=comet_original", "model.base=.", "model.init=nowhere.pickle"],
            "nowhere.pickle is not a file; give the path of the original COMeT's",
        ),
        (["model=comet_original", "model.base=."], "model.init must be set: model.init=..."),
        (["model=comet_gpt1", "model.base=COMET", *AS_IT_IS], "trained with model.relation=words; give that, or null"),
    ],
)
def test_faults_are_named_before_anything_is_done(overrides: list[str], message: str, bases, job) -> None:
    for name, folder in bases.items():
        overrides = [part.replace(name, str(folder)) for part in overrides]
    refused = job(*overrides)
    assert refused.status == 2
    assert message in refused.complaint
    assert not refused.folder.exists()
