"""The recipe that trains the plausibility classifiers on a few made-up lines, and its figures."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from classifier_data import write_plausibility
from command import apart
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.recipes.classifier import read_probes
from mitigate.score.labels import NOTHING_CACHED
from mitigate.tasks.plausibility import by_polarity, check_dev, corrupted, figures
from mitigate.triples import Labels


class SameLetter:
    """Accepts a triple whose head and tail begin alike, all else is the less likely the longer it is."""

    relations = ("IsA", "HasA")

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        pairs = zip(heads, tails, strict=True)
        return np.array([1.0 if head[0] == tail[0] else -float(len(tail)) for head, tail in pairs])


class Positive:
    """+1 for a text with "good" in it or of more than six words, else 0."""

    name, fingerprint = "sentiment", "good"

    def __call__(self, texts: Sequence[str]) -> Labels:
        label = np.array(["good" in text or len(text.split()) > 6 for text in texts], dtype=np.int8)
        return Labels(label, label.astype(np.float32))


def triples(*rows: tuple[str, str, str], valid: Sequence[bool] = (), split: str = "test") -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").with_columns(split=pl.lit(split))
    return frame.with_columns(valid=pl.Series(valid)) if valid else frame


def test_figures_by_hand() -> None:
    rows = [("ant", "IsA", "animal"), ("cat", "IsA", "pet"), ("good", "IsA", "gift")]
    test = triples(*rows, ("dog", "IsA", "door"), ("bee", "IsA", "cup"), valid=[True] * 3 + [False] * 2)
    labelled = pl.concat([test.with_columns(split=pl.lit(split)) for split in ("dev", "dev2", "test")])
    probe = pl.DataFrame({"head": ["nurse", "nurse"], "relation": ["IsA", "Unknown"], "tail": ["name", "name"]})
    true, groups = by_polarity(labelled, [Positive()], NOTHING_CACHED)
    found = figures(SameLetter(), labelled, true, groups, {"run": probe})
    assert (found["test/triples"], found["test/accuracy"]) == (5, 60)  # ant, good and bee
    assert found["test/true_judged_valid"] == found["valid/true"] == pytest.approx(200 / 3)
    assert (found["test/false_judged_valid"], found["valid/echo"]) == (50, 100)
    for label, count, accepted in (("neutral", 2, 50), ("favouritism", 1, 100), ("prejudice", 0, None)):
        assert (found[f"triples/sentiment/{label}"], found[f"valid/sentiment/{label}"]) == (count, accepted)
    assert (found["triples/target"], found["valid/target"]) == (0, None)
    assert found["valid/probe/run"] == 100  # a relation that it does not know is left out


def test_a_threshold_needs_two_triples_and_triples_made_wrong_keep_their_parts() -> None:
    one = triples(("ant", "IsA", "animal"), valid=[True], split="dev")
    refuses(MitigateError, "on labelled triples of split dev: 1 found, at least 2 are needed", check_dev, one)
    check_dev(pl.concat([one, one]))
    true = triples(*[(f"h{i}", "IsA" if i < 6 else "HasA", f"t{i}") for i in range(12)], valid=[True] * 12)
    made = corrupted(true)
    for name in ("shuffled", "shuffled_within_relation"):
        assert made[name]["head"].to_list() == true["head"].to_list()
        assert sorted(made[name]["tail"]) == sorted(true["tail"])
        assert made[name]["tail"].to_list() != true["tail"].to_list()
    within = made["shuffled_within_relation"].filter(relation="IsA")["tail"]
    assert sorted(within) == [f"t{i}" for i in range(6)]
    assert made["turned_round"].select("head", "tail").row(0) == ("t0", "h0")


def write_run(folder: Path, **columns: str) -> Path:
    """The folder of a finished run with one probed triple."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("recipe: {name: own}\n")
    (folder / "metrics.json").write_text("{}")
    row = {"target": "nurse", "relation": "IsA", "tail": "pet"} | columns
    pl.DataFrame([row]).write_parquet(folder / "probe.parquet")
    files = {path.name: digest_of(path.read_bytes()) for path in folder.iterdir()}
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    return folder


@pytest.mark.thorough
def test_the_recipe_leaves_three_classifiers_their_cards_and_their_figures(tmp_path: Path) -> None:
    probed, data = write_run(tmp_path / "earlier"), write_plausibility(tmp_path)
    command = [
        "recipe=classifier",
        "classifier=plausibility",
        f"data.root={data}",
        f"++recipe.probes=[{probed}]",
    ]
    command += [f"paths.outputs={tmp_path / 'runs'}", "tracking.mode=none"]
    done = apart(*command)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").glob("[!.]*")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert {"minilm/test/accuracy", "words/valid/shuffled", "minilm/valid/regard/neutral"} <= set(metrics)
    assert "minilm/valid/probe/earlier" in metrics
    for name in ("minilm", "words", "average"):
        assert 0 < metrics[f"{name}/test/accuracy"] <= 100
    assert (folder / "manifest.json").is_file()
    assert not list(folder.glob("checkpoints/*"))
    assert "complete: nothing to do" in apart(*command).stdout


def test_faults_are_named_before_anything_is_trained(tmp_path: Path, job) -> None:
    run = write_run(tmp_path / "run")
    (run / "probe.parquet").unlink()
    listed = json.loads((run / "manifest.json").read_text())["files"]
    (run / "manifest.json").write_text(json.dumps({"files": {n: d for n, d in listed.items() if n != "probe.parquet"}}))
    for asked, message in (
        ([f"data.root={write_plausibility(tmp_path)}", f"++recipe.probes=[{run}]"], f"{run} lacks probe.parquet"),
        (["data.root=/nowhere", "recipe.minilm.epochs=0"], "recipe.minilm is not in version 1.0"),
    ):
        refused = job("recipe=classifier", "classifier=plausibility", *asked)
        assert refused.status == 2
        assert message in refused.complaint


def test_probed_triples_are_read_from_finished_and_whole_runs_of_different_names(tmp_path: Path) -> None:
    """Where a run asked about events, the head of what it generated is an event."""
    runs = [write_run(tmp_path / place / "run") for place in "ab"]
    assert list(read_probes([str(runs[0])])) == ["run"]
    refuses(MitigateError, "recipe.probes names two folders called run", read_probes, map(str, runs))
    events = write_run(tmp_path / "events", head="the nurse goes to work", relation="xWant", tail="to rest")
    assert read_probes([str(events)])["events"].rows() == [("the nurse goes to work", "xWant", "to rest")]
    run = runs[0]
    assert read_probes([str(run)])["run"].rows() == [("nurse", "IsA", "pet")]
    (run / "probe.parquet").write_bytes(b"changed")
    refuses(MitigateError, r"probe\.parquet is damaged", read_probes, [str(run)])
    (run / "manifest.json").unlink()
    refuses(MitigateError, "is not finished", read_probes, [str(run)])
