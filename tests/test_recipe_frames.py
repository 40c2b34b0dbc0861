"""recipe=frames from the command line, on a made-up corpus written as files; and the scorer that it leaves."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command import here, killed, metrics_of
from frames_corpus import write_corpus, write_published
from page_elements import Elements

from mitigate.models.form import CHOICES
from mitigate.score.frames import Frames
from mitigate.triples import NEUTRAL, OTHER, PREJUDICE

pytest.importorskip("sacrebleu", reason="the extra `frames` is not installed")
pytest.importorskip("rouge_score", reason="the extra `frames` is not installed")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, which takes over 3 s and is read by most tests."""
    outputs = tmp_path_factory.mktemp("outputs")
    with pytest.MonkeyPatch.context() as patch:
        assert here(patch, "recipe=frames", *corpus, f"paths.outputs={outputs}") == 0
    (folder,) = outputs.glob("frames-*")
    return folder


def test_a_run_leaves_its_figures_page_and_scorer(run: Path) -> None:
    metrics = metrics_of(run)
    assert metrics["offensive/model/posts"] == 36
    assert metrics["offensive/model/positive"] == pytest.approx(100 * 24 / 36)
    assert metrics["offensive/always yes/recall"] == 100
    assert metrics["offensive/always yes/f1"] == pytest.approx(100 * 48 / 60)
    assert metrics["offensive/tf-idf/f1"] > metrics["offensive/always yes/f1"]
    assert json.loads((run / "base.json").read_text())["train_loss"] < 2  # about 0.7 + log(40) before
    assert metrics["lewd/model/f1"] is None
    assert metrics["f1"] == pytest.approx((metrics["offensive/model/f1"] + metrics["targeted/model/f1"]) / 2)
    page = (run / "frames.html").read_text()
    Elements(page).check()
    assert "These posts have no values of: lewd, intent" in page
    order = ("Offensive: 36 test posts", "published: SBF-GPT2-gdy", "content warning")
    assert sorted(order, key=page.index) == list(order)
    assert {path.name for path in (run / "models").iterdir()} == {"base", *(f"fold_{fold}" for fold in range(5))}
    assert not list(run.glob("checkpoints/*"))
    table = pl.read_parquet(run / "predict.parquet")
    assert {*CHOICES, "group", "implied", "p_offensive", "key"} <= set(table.columns)
    assert table["p_lewd"].is_null().all()
    assert table["key"].is_unique().all()
    common = pl.read_parquet(run / "texts.parquet").filter(variable="group", system="commonest").row(0, named=True)
    assert common["posts"] == 12
    assert common["distinct"] <= 100 * 5 / 12  # one constant a fold
    assert common["rouge_l"] == common["bleu2"]  # groups of one word: right or wrong


@pytest.mark.thorough
def test_a_killed_training_goes_on_to_the_same_figures(run: Path, corpus, tmp_path: Path, monkeypatch) -> None:
    mine = ["recipe=frames", *corpus, f"paths.outputs={tmp_path}", "++frames.checkpoint_every=0.2"]
    killed(lambda: any(tmp_path.rglob("checkpoints/**/last.ckpt")), *mine)
    assert here(monkeypatch, *mine) == 0
    (folder,) = tmp_path.glob("frames-*")
    mine, other = (metrics_of(one) for one in (folder, run))
    assert mine == other


def test_the_scorer_labels_abstains_and_explains(run: Path) -> None:
    scorer = Frames(run, unsure=0.0)
    texts = ["the nurses cook rude", "the nurses cook well", "the lawyers sing lazy"]
    labels = scorer(texts)
    probability = scorer.probabilities(texts)
    np.testing.assert_allclose(labels.strength, -probability, rtol=1e-5)
    assert labels.label.tolist() == np.where(probability > 0.5, PREJUDICE, NEUTRAL).tolist()
    assert probability[0] > probability[1]
    assert set(Frames(run, unsure=0.5)(texts).label.tolist()) == {OTHER}
    assert Frames(run, unsure=0.1).fingerprint != scorer.fingerprint
    assert all(scorer.explain(texts))
    assert scorer(texts[:1]).strength[0] == pytest.approx(labels.strength[0], abs=1e-5)


def test_the_published_files_need_no_folds(tmp_path: Path, job) -> None:
    """Takes over 3 s: the only run on files of the published form."""
    folder = job("recipe=frames", *write_published(tmp_path)).folder
    metrics = metrics_of(folder)
    for key in ("offensive/model/posts", "intent/model/posts", "scorer/posts"):
        assert metrics[key] == 18
    assert metrics["intent/always yes/f1"] is not None
    assert metrics["lewd/model/f1"] is None  # all posts are not
    assert (metrics["implied/commonest/posts"], metrics["scorer/model"]) == (9, "models/base")
    assert {path.name for path in (folder / "models").iterdir()} == {"base"}
    assert "five folds of" not in (folder / "frames.html").read_text()
    assert Frames(folder)(["the nurses cook rude"]).label.shape == (1,)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("frames.weights=null", "frames.start=model needs frames.weights=DIR with model.safetensors"),
        ("data.root=/no/such/folder", "no such file or folder: /no/such/folder/sbic; set data.root"),
        ("frames.epochs=0", "frames.epochs=0 must be a number above 0"),
    ],
)
def test_faults_are_named_before_the_first_stage(corpus, job, setting: str, message: str) -> None:
    refused = job("recipe=frames", *corpus, setting)
    assert refused.status == 2
    assert message in refused.complaint
    assert not refused.folder.exists()
