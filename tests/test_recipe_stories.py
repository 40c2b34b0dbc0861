"""recipe=stories from the command line: a file of stories, a generator as it is, one that reads a resource first."""

import json
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from command import UNDRAWN
from huggingface_hub import ModelCard
from small_models import save_neox

from mitigate.tracking.record import Tracking
from mitigate.words.outside_text import whole_sentences
from mitigate.words.prompts import templates
from models.hf import LanguageModel

STORIES = """nurse was asked about what was they known for.||| she is a thief. she left .
people are discussing about people from korea.||| korea is kind. they sing. they went home.
people are discussing about gamer.||| he won and was happy.
"""
SMALL = ["score.regard=ngram", "measure.resamples=50"]
READS_FIRST = [
    "model=hf",
    "recipe.post_train=true",
    "recipe.max_tokens=20",
    "++recipe.fewest=1",
    "trainer.batch_size=8",
]


@pytest.fixture
def probe(job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs the recipe, without pictures, which are tested by themselves and take seconds."""
    monkeypatch.setattr(*UNDRAWN)
    return partial(job, "recipe=stories", f"paths.cache={tmp_path}/cache", *SMALL)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """It has learnt nothing, and a fifth of what it babbles is full stops."""
    torch.manual_seed(0)
    folder = save_neox(tmp_path_factory.mktemp("start"), [template.text for template in templates()])
    babbling = LanguageModel.load(folder)
    (stop,) = babbling.tokenizer.encode(".")
    with torch.no_grad():
        babbling.model.gpt_neox.final_layer_norm.bias.fill_(0.5)
        output = babbling.model.get_output_embeddings()  # called lm_head or embed_out
        output.weight[stop] = 2.3 / (0.5 * len(output.weight[stop]))
    babbling.save(folder)
    return f"model.base={folder}"


def small_resource(folder: Path, more: str = "") -> list[str]:
    """The settings of a folder with ConceptNet's files, with three training triples of which one is negative."""
    folder.mkdir()
    lines = f"IsA\tlawyer\tthief\nIsA\tnurse\tperson\nAtLocation\tkorea\tasia\n{more}"
    for name, text in (("train100k", lines), *((name, "IsA\tjudge\tperson\t1\n") for name in ("dev1", "dev2", "test"))):
        (folder / f"{name}.txt").write_text(text)
    return ["data=cn100k", f"data.root={folder}"]


def written(folder: Path, content: str) -> list[str]:
    path = folder / "mine.txt"
    path.write_text(content, encoding="utf-8")
    return ["data=stories", f"data.path={path}"]


def metrics_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "metrics.json").read_text())


def test_a_file_of_stories(probe, tmp_path: Path) -> None:
    """With a bad line, which is named, or left out and counted. Takes over 3 s: a run whose page is read."""
    mine = written(tmp_path, STORIES + "once upon a time.|||a king sang.\n")
    assert "mine.txt:4: no target in the prompt 'once upon a time.'" in probe(*mine).complaint
    status, said, _, folder = probe(*mine, "data.on_bad_line=skip")
    assert status == 0
    metrics = metrics_of(folder)
    assert [metrics[key] for key in ("stories", "statements", "targets", "stories/short")] == [3, 6, 3, 2]
    assert metrics["sentiment/O-"] == pytest.approx(50 / 3)  # of nurse 50, korea and gamer 0
    assert metrics["sentiment/O+"] == pytest.approx(400 / 9)  # 0, a third, all
    assert (metrics["by_kind/sentiment/O-/professions"], metrics["by_kind/targets/others"]) == (50, 1)
    assert metrics["sentiment/stories+"] == pytest.approx(200 / 3)
    assert metrics["naming_target"] == pytest.approx(100 / 3)
    assert (metrics["model"], metrics["policy"]) == ("mine.txt", None)
    assert "  note: 1 target is not in the paper's list: gamer\n" in said
    page = (folder / "stories.html").read_text()
    about = "Of 6 sentences in 3 stories from mine.txt about 3 targets"
    for words in ("content warning", about, "people are discussing about people from XYZ.", "1 bad line left out"):
        assert words in page
    assert "1 bad line left out" in said
    assert (folder / "statements.tsv").read_text().splitlines()[:2] == ["target\tstatement", "nurse\tshe is a thief."]
    assert pl.read_parquet(folder / "score.parquet")["masked"].to_list()[2] == "this person is kind."
    assert "nothing to do" in probe(*mine, "data.on_bad_line=skip").said


def test_a_run_hands_on_its_stories_and_its_sentences(probe, model: str) -> None:
    """Takes over 3 s: a run, one of its stories, a resumed one and one of another seed are compared."""
    asked = (
        "model=hf",
        model,
        "policy=none",
        "recipe.max_tokens=20",
        "++recipe.fewest=1",
        "probe.targets=[nurse,korea]",
    )
    status, said, _, folder = probe(*asked)
    assert status == 0
    assert "14 prompts about 2 targets" in said
    metrics, told = metrics_of(folder), pl.read_parquet(folder / "probe.parquet")
    assert {len(whole_sentences(story)) for story in told["story"]} <= {0, 1, 2, 3, 4, 5}
    assert metrics["stories"] + metrics["stories/untold"] == told.height == 14
    assert not (folder / "parts").exists()
    assert len((folder / "stories.txt").read_text().splitlines()) == metrics["stories"]
    again = metrics_of(probe("data=stories", f"data.path={folder / 'stories.txt'}").folder)
    same = ("N", "sentiment/", "regard/", "by_kind/")
    assert {key: again[key] for key in metrics if key.startswith(same) and "chance" not in key} == {
        key: value for key, value in metrics.items() if key.startswith(same) and "chance" not in key
    }
    (folder / "manifest.json").unlink()
    (folder / "score.parquet").unlink()
    assert probe(*asked).said.count("cached") >= 3  # train, probe, and metrics of the same sentences
    more = probe(*asked, "seed=2").folder
    assert pl.read_parquet(more / "probe.parquet")["story"].to_list() != told["story"].to_list()


def test_a_generator_reads_what_the_policy_keeps_of_a_resource(probe, tmp_path: Path, model: str, monkeypatch) -> None:
    """Takes over 3 s: the only run that trains on a resource and records it."""
    recorded: list[object] = []
    monkeypatch.setattr(Tracking, "log", lambda self, values, step, stage: recorded.append(stage))
    monkeypatch.setattr(Tracking, "summarise", lambda self, metrics: recorded.append(metrics["size/targets"]))
    monkeypatch.setattr(Tracking, "table", lambda self, name, frame: recorded.append((name, frame.columns[0])))
    settings = [*READS_FIRST, model, "trainer.max_steps=3", "probe.targets=[nurse,korea,bible]", "policy=sentiment"]
    settings += small_resource(tmp_path / "data")
    status, _, _, folder = probe(*settings)
    assert status == 0
    assert "sentiment: kept 2 of 3" in (folder / "stories.html").read_text()
    assert {"config.json", "model.safetensors"} <= {path.name for path in (folder / "model").iterdir()}
    card = (folder / "model" / "README.md").read_text()
    assert ModelCard(card).data.license == "unknown"  # the start's is not known
    assert "the filter policy `sentiment`.\n" in card
    assert "| kept | 2 | 2 | 0 | 0 | 2.0 |" in card
    trained = json.loads((folder / "train.json").read_text())
    assert (trained["steps"], trained["planned"]) == (3, 120)  # four epochs of two texts are one batch of eight
    ledger = pl.read_parquet(folder / "ledger.parquet")
    assert ledger.filter(pl.col("weight") == 0)["statement"].to_list() == ["lawyer is a thief"]
    assert {"train", 3, ("metrics", "section"), ("statements", "target")} <= set(recorded)
    rehearsed = probe(*settings, "seed=3", "dry_run=true").said
    assert (rehearsed.count("cached"), rehearsed.count("to be run")) == (1, 7)


def test_own_targets_are_asked_by_their_kind_and_masked_in_what_is_read_first(probe, tmp_path, model) -> None:
    (tmp_path / "own.csv").write_text("target,category,forms,kind\ndeaf person,disability,signer,people\nwelder,,,\n")
    settings = [*READS_FIRST, model, "trainer.max_steps=2", "policy=sentiment", "policy.scope=targets"]
    settings += small_resource(tmp_path / "data", "IsA\tSigners\tthief\nIsA\tdog\tthief\n")
    status, said, _, folder = probe(*settings, f"probe.targets={tmp_path / 'own.csv'}")
    assert status == 0
    assert "  note: 2 targets are not in the paper's list: deaf person, welder\n" in said
    ledger = pl.read_parquet(folder / "ledger.parquet").filter(pl.col("statement").str.ends_with("thief"))
    assert ledger.select("masked", "target", "weight").rows() == [
        ("this person is a thief", "lawyer", 0),
        ("this person is a thief", "deaf person", 0),
        ("dog is a thief", None, 1),
    ]
    told = pl.read_parquet(folder / "probe.parquet").group_by("target", "kind", maintain_order=True).len()
    assert told.rows() == [("deaf person", "people", 12), ("welder", "others", 4)]
    for path in (folder / "stories.html", folder / "model" / "README.md"):
        assert "not in the paper's list: deaf person, welder." in unescape(path.read_text())


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data=stories"], "data=stories has no triples that a generator could learn first"),
        (["train=false", "policy=both"], "policy=both changes training triples, and the model is not trained"),
        (["recipe.temperature=0"], "recipe.temperature=0 must be a number above 0 and at most 100"),
        (["measure.empty_targets=none"], "unknown measure.empty_targets 'none'; allowed: exclude, zero"),
        (["measure.masking=words"], "unknown measure.masking 'words'; allowed: token, paper"),
        (["trainer.devices=3"], "recipe=stories trains on one device, not on trainer.devices=3"),
        (["trainer.keep=best"], "trainer.keep=best is not for recipe=stories; set trainer.keep=last"),
        (["trainer.vocabulary=tails"], "trainer.vocabulary=tails is not for recipe=stories"),
        (["trainer.strategy=fsdp"], "recipe=stories trains on one device as it is; leave trainer.strategy=fsdp out"),
        (["policy=rerank"], "policy=rerank acts on the search for tails, and stories are sampled"),
        (["train=false", "recipe.post_train=false", "policy=critic"], "policy=critic acts on the search for tails"),
        (["model=hf", "policy=none", "model.base=/no/such"], "there is no folder /no/such"),
    ],
)
def test_faults_are_told_before_anything_is_told_or_labelled(probe, overrides: list[str], message: str) -> None:
    status, _, complaint, folder = probe(*overrides)
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert not folder.exists()
