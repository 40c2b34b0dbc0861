"""Output on terminals and pipes of every kind, full disks, texts from outside, notices, and the waiting of threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT

from mitigate.progress import complain, notice, say, show_lines

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
