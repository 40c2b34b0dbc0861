"""The experiments on real data, shrunk (the paper's with small models in the formats it loads, on files laid out as
ConceptNet's); and the committed rows of benchmarks/, whose tables are those of the pages."""

import json
import re
import shutil
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, here, metrics_of
from small_models import save_classifier, save_gpt1

from benchmarks import experiment_effects as effects
from benchmarks import experiment_tables as tables
from benchmarks.experiment_row import of_category, read


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
    metrics = metrics_of(folder)
    assert metrics["model"] == "comet_gpt1"
    ledger = pl.read_parquet(folder / "ledger.parquet")
    assert ledger.filter(pl.col("split") == "test")["weight"].min() == 0  # filter.splits=all
    assert json.loads((folder / "model" / "config.json").read_text())["model_type"] == "openai-gpt"


ROOT = Path(__file__).parents[1]


def test_tables_and_pictures_are_those_of_the_stored_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes over 3 s: all pictures of the page are drawn."""
    page = ROOT / "benchmarks/experiment.md"
    again = Path(shutil.copy(page, tmp_path))
    monkeypatch.setattr(sys, "argv", ["experiment_tables.py", "--page", str(again), "--pictures", str(tmp_path)])
    tables.main()
    assert again.read_text("utf-8") == page.read_text("utf-8")
    drawn = {"policies-and-controls.png", "harm-against-quality.png", "by-category.png", "by-relation.png"}
    assert {path.name for path in tmp_path.glob("*.png")} == drawn


def test_the_results_in_readme_are_those_of_the_file() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Results\n")[1]
    found, control, policy = read(tables.CSV), "random_both_neutral", "both_neutral"
    less, more = effects.harm(found, control, policy, "", corrected=False), effects.lift(found, control, policy)
    worse = effects.over_seeds(found, control, policy, "independent_perplexity/neutral")
    assert worse is not None
    for effect, sign in ((less, -1), (more, 1), (worse, 1)):
        low, high = sorted(sign * bound for bound in effect.bounds())
        assert f"{sign * effect.value:+.1f} [{low:.1f}, {high:.1f}]".replace("-", "−") in text
    for column in (of_category(""), tables.HELD_OUT):
        before, after = (effects.of_arm(found, arm)[column].mean() for arm in (control, policy))
        assert re.search(rf"from {before:.1f}\b.* to {after:.1f}\b", text)


THIRD = ["sequence", "--csv", str(ROOT / "benchmarks/plan3_test.csv"), "none/critic20=none/random_critic20"]


@pytest.mark.parametrize(
    ("script", "arguments", "verdict"),
    [("plan2_tables", ["test"], "`critic`: p 1.000 by Holm"), ("plan3_test", THIRD, "`none/critic20`: fails at H3.")],
)
def test_a_plan_has_the_verdict_of_its_rows(
    script: str, arguments: list[str], verdict: str, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    import_module(f"benchmarks.{script}").main()
    assert verdict in capsys.readouterr().out
