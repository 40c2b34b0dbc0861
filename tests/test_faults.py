"""A few of the faults of `make faults`, for a recipe that is done in seconds, and how attempts are counted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fault_tables import LOST, SAME, TOLD, Attempt, by_recipe, kind_of_file, outcomes
from killing import figures

ROOT = Path(__file__).parents[1]
ATTEMPTS = [
    Attempt("labels", "killed", "labels", SAME, ""),
    Attempt("labels", "killed", "train", SAME, ""),
    Attempt("labels", "damaged", "out/run-1/table.parquet, emptied", TOLD, "table.parquet is damaged"),
    Attempt("audit", "killed", "labels", LOST, 'said "no",\nand more'),
]


@pytest.mark.parametrize(
    "kind", ["killed", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("denied", "together", "damaged"))]
)
def test_a_fault_loses_nothing(kind: str) -> None:
    """In a process of its own, as it forks: threads of this one would be missing in its children."""
    if kind == "denied" and os.geteuid():
        pytest.skip("only root has rights to lose")
    line = [sys.executable, "tests/faults.py", "labels", "--attempts", "2", "--kinds", kind]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| recipe | {kind} |" in done.stdout


@pytest.mark.thorough
def test_a_kill_before_each_file_operation_loses_nothing() -> None:
    line = [sys.executable, "tests/killing.py", "labels"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 lost" in done.stdout, done.stdout


def test_figures_do_not_depend_on_places_and_speed(tmp_path: Path) -> None:
    for seconds, name in enumerate(("one", "other")):
        folder = tmp_path / name / "out" / "compare-1"
        folder.mkdir(parents=True)
        (folder / "comparison.json").write_text(
            f'{{"runs": ["{tmp_path / name}/compared/0"], "NSM": 1.5, "average/seconds": {seconds}}}'
        )
        assert figures(folder.parent) is None  # not finished
        (folder / "manifest.json").write_text("{}")
    expected = {"runs": ["PLACE/compared/0"], "NSM": 1.5}
    places = [tmp_path / "one", tmp_path / "other"]
    assert [figures(place / "out", place) for place in places] == [expected] * 2
    assert figures(places[0] / "out") != figures(places[1] / "out")


def test_attempts_are_counted() -> None:
    assert by_recipe(ATTEMPTS).splitlines()[2:] == [
        "| labels | 2 same figures | 1 told |",
        "| audit | 1 lost |  |",
        "| all | 2 same figures, 1 lost | 1 told |",
    ]
    expected = ["| labels | 2 | 1 | 0 | 1 |", "| train | 1 | 1 | 0 | 0 |"]
    assert outcomes("stage", ATTEMPTS[:2] + ATTEMPTS[3:], lambda attempt: attempt.where).splitlines()[2:] == expected


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("out/run-1/table.parquet, emptied", "run folder, .parquet"),
        ("cache/labels/labels.sqlite-wal of a killed run, deleted", "cache, .sqlite-wal"),
        ("compared/0/LICENSE, truncated", "run that is compared, LICENSE"),
    ],
)
def test_kinds_of_files(where: str, kind: str) -> None:
    assert kind_of_file(where) == kind


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code beside faults.py, in a process of its own."""
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    return subprocess.run([sys.executable, "-c", code], env=os.environ | paths, capture_output=True, text=True)


def test_a_message_names_the_file_or_its_folder() -> None:
    said = {
        "/a/run/tables/t.csv is damaged": True,
        "cannot write to /a/run/tables": True,
        "/a/run lacks tables/t.csv: make it anew": True,
        "/a/run lacks tables/other.csv": False,
        "t.csv is damaged": False,
    }
    code = f"print([faults.is_named(said, faults.Path('/a/run/tables/t.csv')) for said in {list(said)!r}])"
    done = python(f"import faults; {code}")
    assert done.stdout.strip() == str(list(said.values())), done.stderr


def test_files_of_a_run_are_compared_without_times_and_places(tmp_path: Path) -> None:
    """Tables by their bytes; JSON and pages but for times, the hashes of such, and the folder that a copy lies in."""
    for number in (1, 2):
        folder = tmp_path / str(number) / "run"
        (folder / "stages").mkdir(parents=True)
        page = f"<p>%s</p><td>0.{number} s</td><td class='text'>computed</td><dt>run, seconds</dt><dd>{number}.5</dd>"
        (folder / "report.html").write_text(page % f"{tmp_path}/mitigate-abcdefg{number}/out")
        record = f'{{"code": "a", "seconds": {number}, "files": {{"t.csv": "{number}"}}, "sha256": "{number}"}}'
        (folder / "stages" / "score.json").write_text(record)
        (folder / "status.json").write_text(str(number))
        (folder / "t.csv").write_text("strength\n0.0\n")

    def compared() -> str:
        places = f"*map(faults.Path, {[str(tmp_path / number) for number in '12']!r})"
        code = f"import faults, re; faults.PLACE = re.compile('{tmp_path}/mitigate-.{{8}}');"
        done = python(f"{code} print(faults.other_bytes({places}))")
        return done.stdout.strip() or done.stderr

    assert compared() == "[]"
    (tmp_path / "2/run/t.csv").write_text("strength\n-0.0\n")
    (tmp_path / "2/run/report.html").write_text("<p>other</p>")
    (tmp_path / "2/run/stages/score.json").write_text('{"code": "b", "files": {"t.csv": "2"}}')
    assert compared() == str(["run/report.html", "run/stages/score.json", "run/t.csv"])


def test_writing_input_starts_no_threads(tmp_path: Path) -> None:
    """Since a process that is forked afterwards, without them, would wait for them for ever."""
    asked = (
        "import os, pathlib, sys, fault_tables, killing; before = len(os.listdir('/proc/self/task'));"
        f"killing.prepared('crowd', pathlib.Path({str(tmp_path / 'crowd')!r}));"
        "sys.exit(len(os.listdir('/proc/self/task')) - before)"
    )
    assert python(asked).returncode == 0
