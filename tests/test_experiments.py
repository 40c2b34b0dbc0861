"""The experiments on real data, shrunk (the paper's with small models in the formats it loads, on files laid out as
ConceptNet's), and a sweep on triples, targets, a policy and a scorer of one's own."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from html import unescape
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
from command import SMALL, here
from small_models import save_classifier, save_gpt1, save_llama

from mitigate.runs import fingerprints

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.rehearse import SHRUNK, rehearse


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
    (folder,) = outputs.iterdir()
    return folder


def test_cn100k_cpu(data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Slow: a small generator is trained on a corpus that is laid out as ConceptNet is."""
    folder = run(monkeypatch, tmp_path, "policy=both", "experiment=cn100k_cpu", f"data.root={data_root}")
    said = capsys.readouterr().out
    assert "400 lines with Windows line ends (CRLF), accepted" in said
    assert "1 repeated triple left out" in said
    assert "demonstration" not in said
    assert pl.read_parquet(folder / "ledger.parquet").filter(split="train").height == 400
    card = (folder / "model" / "README.md").read_text()
    assert "cc-by-sa-4.0" in card
    assert "ConceptNet 5" in card


def test_cn100k_lm(data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow: a small Llama is trained by the main job, as any causal language model is."""
    base = save_llama(tmp_path / "base", (data_root / "conceptnet100k" / "train100k.txt").read_text().split("\n"))
    asked = ("policy=none", "experiment=cn100k_lm", f"model.base={base}", f"data.root={data_root}")
    folder = run(monkeypatch, tmp_path / "out", *asked, "probe.precision=fp32", "probe.max_length=3")
    assert json.loads((folder / "metrics.json").read_text())["quality/bits_per_char/all"] > 0
    assert json.loads((folder / "model" / "config.json").read_text())["comet_prompt"] == "phrase"


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


@pytest.mark.thorough
def test_the_paper_is_rehearsed_killed_and_continued(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As benchmarks/rehearse.py does it at GPT-1's real size; and the same as without the kill."""
    harms = data_root / "harms"
    harms.mkdir()
    (harms / "conceptnet_target_triples.txt").write_text("nurse CapableOf heal\nlawyer IsA person\n" * 3)
    found = rehearse(tmp_path, data_root, 6, SMALL, small=True, every=0.01)
    assert (0 < found.kept <= 6, found.steps) == (True, 6)
    assert found.peak > 0.1
    assert found.hours == pytest.approx(100_000 * found.seconds_a_step / 3600)
    assert found.parameters == 400 * 32 + 64 * 32 + 2 * (12 * 32 * 32 + 13 * 32)  # words, positions, layers
    config = json.loads((tmp_path / "gpt1" / "config.json").read_text())
    assert (config["model_type"], config["n_layer"]) == ("openai-gpt", 2)
    killed = json.loads((found.folder / "metrics.json").read_text())
    again = run(
        monkeypatch,
        tmp_path / "undisturbed",
        *("experiment=paper", f"data.root={data_root}", f"model.base={tmp_path / 'gpt1'}"),
        *(f"score.bert.model={tmp_path / 'bert'}", "trainer.accelerator=cpu", *SHRUNK),
    )
    undisturbed = json.loads((again / "metrics.json").read_text())
    assert killed == undisturbed


FIRST = ["score", "ledger", "train", "probe", "heads"]
LAST = ["statements", "validity", "lift", "likelihood", "metrics", "report"]
STORIES = ["corpus", "ledger", "train", "probe", "score", "metrics", "report"]


def test_the_paper_without_a_network(tmp_path: Path, placed) -> None:
    said = placed("experiment=paper", "dry_run=true").done
    assert said.count("would be downloaded: ") == 6
    assert "https://huggingface.co/openai-community/openai-gpt" in said
    assert "would be downloaded: scorer bert from https://huggingface.co/sasha/regardv3 to the hub's cache" in said
    assert re.findall(r"(\w+) +to be run", said) == [*FIRST, *LAST]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "stages"),
    [
        (("policy=none", "probe.heads=0"), [*FIRST[:4], *LAST[:2], *LAST[3:]]),
        (("policy=validity",), [*FIRST, "heads_rerank", "candidates", "rerank", *LAST]),
        (("recipe=stories", "data=cn100k", "recipe.post_train=true"), STORIES),
    ],
)
def test_a_rehearsal_without_the_data_lists_the_stages(settings: tuple[str, ...], stages: list[str], placed) -> None:
    said = placed("data=cn100k", "model=hf", "model.base=not/here", *settings, "dry_run=true").done
    assert "would be downloaded: model hf from https://huggingface.co/not/here to the hub's cache" in said
    assert re.findall(r"(\w+) +to be run", said) == stages


TRIPLES = [
    (who, how, what)
    for who in ("deaf person", "enbies", "a roma", "nurse", "lawyer", "dog", "teacher", "river")
    for how in ("mentors", "works with")
    for what in ("a student", "a lazy clerk", "a rude client", "a team")
]
OWN = {
    "own.csv": "target,category,forms\n"
    "deaf person,disability,\nnon-binary person,gender,enby\nroma,origin,\nlaywer,,\n",
    "phrases.csv": "relation,phrase,neutral_phrase\n"
    "mentors,is a great mentor of,is a mentor of\nworks with,works with,\n",
    "mine.tsv": "head\trelation\ttail\n" + "".join("\t".join(triple) + "\n" for triple in TRIPLES),
}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the runs and of their comparison."""
    place = tmp_path_factory.mktemp("own sweep")
    for name, content in OWN.items():
        (place / name).write_text(content)
    mine = [f"data.path={place}/mine.tsv", f"data.relations={place}/phrases.csv", f"probe.targets={place}/own.csv"]
    small = [part for part in SMALL if not part.startswith(("probe.targets", "probe.relations", "trainer.max_steps"))]
    scorers = ["score=study", "score.regard=rude", "score.plausibility=null", "trainer.max_steps=2"]
    scorers += ["score.scorers.rude.words=[lazy,mentor]", "probe.beams=2", "probe.top=2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mitigate.report.page.Report.pictures", [])  # tested by themselves, and take seconds
        outputs = [f"paths.outputs={place}/out", "tracking=none"]
        policies = ["--config-dir", "docs/examples/own", "-m", "policy=none,no_rude_words"]
        assert here(patch, *policies, *scorers, "data=triples", *mine, *small, *outputs) == 0
    yield place / "out"
    sys.modules.pop("study", None)
    fingerprints.forget()


def words(page: Path) -> str:
    text = re.sub(r"<(style|script).*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_comparison_carries_the_scorers_name_and_the_papers_stands_for_sentiment_alone(sweep: Path) -> None:
    (page,) = sweep.glob("compare-*/comparison.html")
    said = words(page)
    assert "neutral by rude, mean, neutral template" in said
    assert "rude: neutral mean ↑" in said
    assert "rude: neutral variance ↓" in said
    assert not re.search(r"NRM|NRV", said)
    assert not re.search(r"\bregard\b", said.split("Provenance")[0])
    facts = json.loads((page.parent / "comparison.json").read_text())
    (contrast,) = facts["contrasts"]
    assert contrast["policy"] == "no_rude_words"
    assert contrast["primary"]["harm"]["figure"] == "neutral_template/rude/neutral_mean"
    rude = contrast["harms"]["neutral_template/rude/neutral_mean"]
    assert (rude["baseline"], rude["value"]) == (50, 50)  # what mentors is worded with is called rude here
    for folder, side in (("none", "baseline"), ("no_rude_words", "value")):
        (metrics,) = sweep.glob(f"mitigate-{folder}-*/metrics.json")
        assert json.loads(metrics.read_text())["neutral_template/rude/neutral_mean"] == pytest.approx(rude[side])


def test_the_commands_of_the_runs_pages_name_the_folder_of_ones_own(sweep: Path) -> None:
    pages = list(sweep.glob("mitigate-*/report.html"))
    assert len(pages) == 2
    for page in pages:
        command = json.loads((page.parent / "manifest.json").read_text())["command"]
        assert shlex.split(command)[3:5] == ["--config-dir", "docs/examples/own"]
        assert "--config-dir docs/examples/own" in words(page)
        assert not re.search(r"NRM|NRV", words(page))


def test_own_targets_are_compared_by_their_words_and_categories(sweep: Path) -> None:
    (page,) = sweep.glob("compare-*/comparison.html")
    said = words(page)
    assert "disability" in said
    assert "4 targets are not in the paper's list: deaf person, non-binary person, roma, laywer." in said
    assert "Non-binary people are missing" not in said
    assert not re.search(r"\bnan\b|None\b", said)
