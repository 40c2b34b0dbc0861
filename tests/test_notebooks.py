"""The notebooks of the documentation: each is executed, and shows what is stored in it."""

import re
from pathlib import Path

import nbformat
import pytest
from command import ROOT
from nbclient import NotebookClient

NOTEBOOKS = ROOT / "docs" / "notebooks"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NEAR = 3.0  # percentage points or triples by which another processor's rounding may change a label's count
LARGEST = 60_000  # bytes of a notebook with its results
SECONDS = 400


def executed(name: str) -> nbformat.NotebookNode:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    where = {"metadata": {"path": str(NOTEBOOKS)}}
    NotebookClient(notebook, timeout=SECONDS, startup_timeout=SECONDS, resources=where).execute()
    return notebook


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell prints."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["text"] for output in outputs if output.get("name") == "stdout"]


def pictures(notebook: nbformat.NotebookNode) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def row(text: str, begins: str) -> list[float]:
    """The numbers of a line of a table."""
    return numbers(next(line for line in text.splitlines() if line.startswith(begins))[len(begins) :])


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_notebook_shows_what_is_stored_in_it(name: str) -> None:
    stored, found = nbformat.read(NOTEBOOKS / name, as_version=4), executed(name)
    assert len(texts(stored)) > 2
    for old, new in zip(texts(stored), texts(found), strict=True):
        assert numbers(new) == pytest.approx(numbers(old), abs=NEAR)
        assert sorted(re.findall(r"[a-z]{4,}", new)) == sorted(re.findall(r"[a-z]{4,}", old))
    assert len(pictures(stored)) == len(pictures(found)) == 1
    check = {"filter_triples.ipynb": filter_is_held_against_chance, "compare_runs.ipynb": control_is_compared}[name]
    check(texts(found))


def filter_is_held_against_chance(shown: list[str]) -> None:
    kept, every = numbers(next(text for text in shown if "are kept" in text))[:2]
    reasons = next(text for text in shown if "reason" in text)
    assert (kept, every) == (sum(row(reasons, "| kept ")), 192)
    means = shown[-1]
    assert row(means, "sentiment")[1] == row(means, "regard")[1] == 100  # kept because they are neutral
    before, after, lowest, middle, highest = row(means, "crowd (held out)")
    assert before < middle < after
    assert lowest < middle < highest < after


def control_is_compared(shown: list[str]) -> None:
    assert "everything 192 triples" in shown[0]
    table = next(text for text in shown if "swap_lift" in text)
    harm, quality = "neutral_template/crowd/neutral_mean", "quality/swap_lift/all"
    for contrast in ("none, filtered", "none, random"):
        lines = [line for line in table.splitlines() if line.startswith(f"| {contrast} ")]
        assert [line.split("|")[2].strip() for line in lines] == [quality, harm]
        for line in lines:
            baseline, value, change, low, high = numbers(line)
            assert value - baseline == pytest.approx(change, abs=0.11)  # rounded
            assert low < change < high
    assert "two models are compared, not two policies" in shown[-1]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_small_and_clean(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    cells = nbformat.read(path, as_version=4).cells
    assert not any(output.get("name") == "stderr" for cell in cells for output in cell.get("outputs", ()))
    assert "/tmp" not in path.read_text(encoding="utf-8")
