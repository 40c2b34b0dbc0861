"""Output on terminals and pipes of every kind, texts from outside, notices; and status.json, what a run does."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import ROOT, SMALL

from mitigate.errors import MitigateError
from mitigate.progress import Showing, Status, Step, complain, listening, notice, progress, say, show_lines
from mitigate.score import labeller as label

LABELS = ["-m", "mitigate", "recipe=labels", "score.regard=ngram", "tracking=none"]


def started(tmp_path: Path, *overrides: str, **options: object) -> subprocess.Popen[str]:
    """The command on a file of two statements."""
    (tmp_path / "statements.tsv").write_text("lawyer\tthe lawyer is naïve\nnurse\tthe nurse is here\n")
    places = (f"paths.outputs={tmp_path}/outputs", f"paths.cache={tmp_path}/cache")
    chosen = ("data=statements", f"data.path={tmp_path}/statements.tsv", *places, *overrides)
    return subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, *LABELS, *chosen],
        cwd=ROOT,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def test_an_output_that_knows_ascii_only(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = started(tmp_path, "texts=['the naïve lawyer']", "data.path=null", env=environment)
    said, faults = process.communicate()
    assert process.returncode == 0
    assert faults == ""
    assert said.splitlines()[0] == r"the na\xefve lawyer  (the na\xefve this person)"


@pytest.mark.parametrize("error", [subprocess.PIPE, subprocess.STDOUT])
def test_a_reader_that_goes_away_ends_the_showing_and_not_the_work(error: int, tmp_path: Path) -> None:
    process = started(tmp_path, stderr=error)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.stdout.close()  # as `| head -1` does
    assert process.wait() == 0
    assert first.startswith("  run folder")
    if process.stderr is not None:
        assert process.stderr.read() == ""
        process.stderr.close()
    assert len(list(tmp_path.glob("outputs/*/manifest.json"))) == 1


def test_control_characters_in_what_is_shown_are_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines()
    say("a\x1b[31mb")
    notice("c\u202ed")
    complain("50 %s")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a\\x1b[31mb\n  note: c\\u202ed\n", "mitigate: 50 %s\n")


def read(folder: Path) -> dict:
    return json.loads((folder / "status.json").read_text())


def test_stages_steps_and_shares_are_written_and_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = Status(tmp_path, "audit")
    status.stage("score")
    step = Step("score sentiment", 200, "texts", done=50, count=50, started=time.monotonic() - 10)
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
        assert (read(tmp_path)["step"], read(tmp_path)["share"]) == ("train", 0.25)  # as soon as it begins
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
        raise MitigateError("the lexicon is gone")

    monkeypatch.setattr(label, "driving_words", fail)
    shutil.rmtree(tmp_path / "outputs" / ".stages")
    assert job(*arguments).status == 2
    facts = read(folder)
    assert [facts[name] for name in ("state", "stage", "error")] == ["failed", "labels", "the lexicon is gone"]
