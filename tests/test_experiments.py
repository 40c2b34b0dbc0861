"""The experiments on real data, shrunk (the paper's with small models in the formats it loads, on files laid out as
ConceptNet's)."""

import json
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, here
from small_models import save_classifier, save_gpt1


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A piece of the sample under ConceptNet's names, with scores, Windows line ends and a repeated line."""
    folder = tmp_path_factory.mktemp("data") / "conceptnet100k"
    folder.mkdir()
    sample = files("mitigate").joinpath("data/sample")
    train = sample.joinpath("train.txt").read_text().splitlines()[:400]
    (folder / "train100k.txt").write_bytes("\r\n".join(f"{line}\t1.0" for line in [*train, train[0]]).encode())
    for name in ("dev1.txt", "dev2.txt", "test.txt"):
        (folder / name).write_text(sample.joinpath(name).read_text())
    return folder.parent


def run(monkeypatch: pytest.MonkeyPatch, outputs: Path, *overrides: str) -> Path:
    assert here(monkeypatch, *overrides, f"paths.outputs={outputs}", "tracking=none", *SMALL) == 0
    (folder,) = outputs.glob("[!.]*")
    return folder


def test_cn100k_cpu(data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Slow: a small generator is trained on a corpus that is laid out as ConceptNet is."""
    folder = run(monkeypatch, tmp_path, "policy=both", "experiment=cn100k_cpu", f"data.root={data_root}")
    said = capsys.readouterr().out
    assert "1 repeated triple left out" in said
    assert "demonstration" not in said
    assert pl.read_parquet(folder / "ledger.parquet").filter(split="train").height == 400
    card = (folder / "model" / "README.md").read_text()
    assert "cc-by-sa-4.0" in card
    assert "ConceptNet 5" in card


def test_paper(data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow: a small GPT-1 is trained, which no other recipe does."""
    texts = (data_root / "conceptnet100k" / "train100k.txt").read_text().split("\n")
    gpt1 = save_gpt1(tmp_path / "gpt1", texts)
    bert = save_classifier(tmp_path / "bert", ["negative", "neutral", "positive", "other"])
    settings = (f"data.root={data_root}", f"model.base={gpt1}", f"score.bert.model={bert}", "trainer.accelerator=cpu")
    folder = run(monkeypatch, tmp_path / "out", "policy=sentiment", "experiment=paper", *settings)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["model"] == "comet_gpt1"
    ledger = pl.read_parquet(folder / "ledger.parquet")
    assert ledger.filter(pl.col("split") == "test")["weight"].min() == 0  # filter.splits=all
    assert json.loads((folder / "model" / "config.json").read_text())["model_type"] == "openai-gpt"
