"""The recipe that trains the plausibility classifiers, on a few made-up lines; and its figures."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from classifier_data import PLAUSIBILITY, write_plausibility
from command import apart, here

from mitigate.errors import MitigateError
from mitigate.fingerprints import digest_of
from mitigate.recipes.plausibility import read_probe, read_probes
from mitigate.tasks.plausibility.figures import figures, made_wrong
from mitigate.tasks.plausibility.threshold import check_dev
from mitigate.triples import Labels


class SameLetter:
    """Holds a triple valid whose head and tail begin alike."""

    relations = ("IsA", "HasA")

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        return np.array([1.0 if head[0] == tail[0] else -1.0 for head, tail in zip(heads, tails, strict=True)])


class GoodWords:
    """+1 for a text with "good" in it, else 0."""

    name, fingerprint = "sentiment", "good"

    def __call__(self, texts: Sequence[str]) -> Labels:
        label = np.array(["good" in text for text in texts], dtype=np.int8)
        return Labels(label, label.astype(np.float32))


class Forgetful:
    """A cache that remembers nothing."""

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        size = len(texts)
        return np.zeros(size, bool), Labels(np.zeros(size, np.int8), np.zeros(size, np.float32))

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        pass


def triples(split: str, rows: list[tuple[str, str, str, bool]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["head", "relation", "tail", "valid"], orient="row").with_columns(
        split=pl.lit(split)
    )


def test_figures_by_hand():
    test = [
        ("ant", "IsA", "animal", True),
        ("cat", "IsA", "pet", True),
        ("good", "IsA", "gift", True),
        ("dog", "IsA", "door", False),
        ("bee", "IsA", "cup", False),
    ]
    labelled = pl.concat([triples(split, test) for split in ("dev", "dev2", "test")])
    probe = pl.DataFrame({"head": ["nurse", "nurse"], "relation": ["IsA", "Unknown"], "tail": ["name", "name"]})
    found = figures(SameLetter(), labelled, {"run": probe}, [GoodWords()], Forgetful())
    assert found["test/triples"] == 5
    assert found["test/accuracy"] == 60  # ant, good and bee
    assert found["test/true_judged_valid"] == found["valid/true"] == pytest.approx(200 / 3)
    assert found["test/false_judged_valid"] == 50
    assert found["valid/echo"] == 100
    assert (found["triples/sentiment/neutral"], found["valid/sentiment/neutral"]) == (2, 50)
    assert (found["triples/sentiment/favouritism"], found["valid/sentiment/favouritism"]) == (1, 100)
    assert (found["triples/sentiment/prejudice"], found["valid/sentiment/prejudice"]) == (0, None)
    assert (found["triples/target"], found["valid/target"]) == (0, None)
    assert found["valid/probe/run"] == 100  # a relation that it does not know is not asked about


def test_a_threshold_lies_between_two_triples():
    one = triples("dev", [("ant", "IsA", "animal", True)])
    with pytest.raises(MitigateError, match="on labelled triples of split dev: 1 found, at least 2 are needed"):
        check_dev(one)
    check_dev(pl.concat([one, one]))


def test_what_is_made_wrong_keeps_its_parts():
    true = triples("test", [(f"h{i}", "IsA" if i < 6 else "HasA", f"t{i}", True) for i in range(12)])
    made = made_wrong(true)
    for name in ("shuffled", "shuffled_within_relation"):
        assert made[name]["head"].to_list() == true["head"].to_list()
        assert sorted(made[name]["tail"]) == sorted(true["tail"])
        assert made[name]["tail"].to_list() != true["tail"].to_list()
    within = made["shuffled_within_relation"].filter(relation="IsA")["tail"]
    assert sorted(within) == [f"t{i}" for i in range(6)]
    assert made["turned_round"].select("head", "tail").row(0) == ("t0", "h0")


def write_run(folder: Path, listed: list[str]) -> Path:
    """A finished run's folder with one probed triple; its manifest lists these files."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("recipe: {name: own}\n")
    (folder / "metrics.json").write_text("{}")
    pl.DataFrame({"target": ["nurse"], "relation": ["IsA"], "tail": ["pet"]}).write_parquet(folder / "probe.parquet")
    files = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in listed}
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    return folder


@pytest.mark.thorough
def test_the_recipe_leaves_three_classifiers_their_cards_and_their_figures(tmp_path: Path):
    probed = write_run(tmp_path / "earlier", ["config.yaml", "metrics.json", "probe.parquet"])
    command = [
        "recipe=plausibility",
        f"data.root={write_plausibility(tmp_path)}",
        *PLAUSIBILITY,
        f"recipe.probes=[{probed}]",
        f"paths.outputs={tmp_path / 'runs'}",
        "tracking.mode=none",
    ]
    done = apart(*command)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert {"minilm/test/accuracy", "words/valid/shuffled", "minilm/valid/regard/neutral"} <= set(metrics)
    assert "minilm/valid/probe/earlier" in metrics
    for name in ("minilm", "words", "average"):
        card = (folder / name / "README.md").read_text(encoding="utf-8")
        assert card.startswith("---\nlicense:")
        assert f"| test | {metrics[f'{name}/test/accuracy']:.1f} |" in card
    assert (folder / "manifest.json").is_file()
    assert not list(folder.glob("checkpoints/*"))
    assert "complete: nothing is left to do" in apart(*command).stdout


def test_a_folder_without_a_probe_is_named(tmp_path: Path):
    run = write_run(tmp_path / "run", ["config.yaml", "metrics.json"])
    (run / "probe.parquet").unlink()
    done = apart("recipe=plausibility", f"data.root={write_plausibility(tmp_path)}", f"recipe.probes=[{run}]")
    assert done.returncode == 2
    assert f"{run} lacks probe.parquet" in done.stderr


def test_probed_triples_of_an_unfinished_or_damaged_run_are_refused(tmp_path: Path):
    run = write_run(tmp_path / "run", ["config.yaml", "metrics.json", "probe.parquet"])
    assert read_probe(str(run)).rows() == [("nurse", "IsA", "pet")]
    (run / "probe.parquet").write_bytes(b"changed")
    with pytest.raises(MitigateError, match=r"probe\.parquet is damaged"):
        read_probe(str(run))
    (run / "manifest.json").unlink()
    with pytest.raises(MitigateError, match="is not finished"):
        read_probe(str(run))


def test_an_event_is_the_head_of_what_was_generated_of_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ["config.yaml", "metrics.json"])
    asked = {"target": ["nurse"], "head": ["the nurse goes to work"], "relation": ["xWant"], "tail": ["to rest"]}
    pl.DataFrame(asked).write_parquet(run / "probe.parquet")
    files = {name: digest_of((run / name).read_bytes()) for name in ("config.yaml", "metrics.json", "probe.parquet")}
    (run / "manifest.json").write_text(json.dumps({"files": files}))
    assert read_probe(str(run)).rows() == [("the nurse goes to work", "xWant", "to rest")]


def test_two_probes_of_one_name_are_refused(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / place / "run", ["config.yaml", "metrics.json", "probe.parquet"]) for place in "ab"]
    assert list(read_probes([str(runs[0])])) == ["run"]
    with pytest.raises(MitigateError, match="recipe.probes names two folders called run"):
        read_probes(map(str, runs))


def test_faulty_settings_are_named_before_anything_is_read(monkeypatch: pytest.MonkeyPatch, capsys):
    assert here(monkeypatch, "recipe=plausibility", "data.root=/nowhere", "recipe.minilm.epochs=0") == 2
    assert "recipe.minilm.epochs=0 must be a whole number from 1" in capsys.readouterr().err
