"""status.json: what a run is doing, while it does it."""

import json
import shutil
import time
from pathlib import Path

import pytest
from command import SMALL

from mitigate.errors import MitigateError
from mitigate.progress import Showing, Status, Step, listening, progress
from mitigate.score import labeller as label


def read(folder: Path) -> dict:
    return json.loads((folder / "status.json").read_text())


@pytest.fixture
def status(tmp_path: Path):
    made = Status(tmp_path, "audit")
    yield made
    made.close("finished")


def test_stages_steps_and_shares_are_written_and_handed_over(status, tmp_path, monkeypatch):
    status.stage("score")
    step = Step("score sentiment", 200, "texts", done=50, before=0, started=time.monotonic() - 10)
    step.count = 50
    status.step(step)
    status.done("read")
    status.stage("tally")
    assert (read(tmp_path)["stage"], read(tmp_path)["done"]) == ("tally", ["read"])
    monkeypatch.setattr("mitigate.progress.EVERY", 0)
    status.step(step)
    facts = read(tmp_path)
    assert (facts["step"], facts["share"]) == ("score sentiment", 0.25)
    assert facts["seconds_left"] == pytest.approx(30, abs=1)  # 50 of 200 in ten seconds
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    with listening(Showing(status)), progress("train", 40, "steps", done=10) as advance:
        advance(10)
        assert (read(tmp_path)["step"], read(tmp_path)["share"]) == ("train", 0.5)
    assert read(tmp_path)["share"] is None


def test_a_finished_and_a_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job) -> None:
    (tmp_path / "mine.tsv").write_text("lawyer\tthe lawyer is kind\n" * 3)
    arguments = ["recipe=labels", "data=statements", f"data.path={tmp_path / 'mine.tsv'}", "score.regard=null", *SMALL]
    assert job(*arguments).status == 0
    (folder,) = (tmp_path / "outputs").glob("labels-*")
    facts = read(folder)
    assert (facts["state"], facts["done"], facts["recipe"]) == ("finished", ["labels", "results", "metrics"], "labels")
    assert "status.json" not in json.loads((folder / "manifest.json").read_text())["files"]

    def fail(*_: object, **__: object) -> None:
        raise MitigateError("the lexicon is gone; bring it back")

    monkeypatch.setattr(label, "label_masked", fail)
    shutil.rmtree(tmp_path / "outputs" / ".stages")
    assert job(*arguments).status == 2
    facts = read(folder)
    assert (facts["state"], facts["stage"]) == ("failed", "labels")
    assert facts["error"] == "the lexicon is gone; bring it back"
