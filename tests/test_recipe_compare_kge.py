"""recipe=compare of two runs of recipe=kge, and what cannot be compared."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command import here
from kge_graphs import SMALL, planted, write_graph

from mitigate.measure.kge_difference import between_trainings
from mitigate.report.kge_comparison import verdict

ASKED = ("recipe=kge", "kge.sensitive=gender", "kge.values=[male,female]", "kge.seeds=2", "kge.permuted=0", *SMALL)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kge")


@pytest.fixture(scope="module")
def runs(outputs: Path) -> dict[str, Path]:
    """Run folders of two models, and of transe with other people counted."""
    graph = write_graph(outputs / "graph", planted(people=240))
    found = {}
    for name, more in {"transe": (), "complex": ("model=complex",), "fewest": ("kge.fewest=10",)}.items():
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("mitigate.report.kge.Results.pictures", [])
            before = set(outputs.glob("kge-*"))
            assert here(patched, *ASKED, *graph, *more, f"paths.outputs={outputs}", "tracking=none") == 0
        (found[name],) = set(outputs.glob("kge-*")) - before
    return found


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe; returns the exit status, what was printed on both streams, and the outputs."""

    def run(*folders: Path) -> tuple[int, str, Path]:
        named = f"compare.runs=[{','.join(map(str, folders))}]"
        status = here(monkeypatch, "recipe=compare", named, f"paths.outputs={tmp_path}", "tracking=none")
        said, complaint = capsys.readouterr()
        return status, said + complaint, tmp_path

    return run


def test_two_models_stand_side_by_side(runs, compare) -> None:
    status, said, place = compare(runs["transe"], runs["complex"])
    assert status == 0, said
    assert "complex compared with transe" in said
    (folder,) = place.glob("compare-kge-*")
    found = json.loads((folder / "comparison.json").read_text())
    metrics = {name: json.loads((runs[name] / "metrics.json").read_text()) for name in ("transe", "complex")}
    for key in ("kge/mrr", "kge/hits_10", "kge/parity", "kge/leakage_linear", "kge/rank_correlation"):
        row = found["figures"][key]
        assert row["first"] == pytest.approx(metrics["transe"][key])
        assert row["second"] == pytest.approx(metrics["complex"][key])
        assert row["change"] == pytest.approx(row["second"] - row["first"])
        assert row["low"] <= row["change"] <= row["high"]
    professions = pl.read_csv(folder / "tables" / "professions.csv")
    assert sorted(professions["first_place"]) == [1, 2, 3, 4, 5, 6] == sorted(professions["second_place"])
    assert -1 <= found["agreement"]["ranked_alike"] <= 1
    (caption,) = pl.read_csv(folder / "plots" / "captions.csv")["caption"]
    assert "Scatter plot of 6 professions, transe across and complex upwards" in caption
    page = (folder / "comparison.html").read_text()
    for words in ("midwife", "at least five of each", "Welch", "place, complex"):
        assert words in page


def test_runs_that_have_moved_are_named_where_they_are(runs, compare, tmp_path: Path) -> None:
    moved = [shutil.copytree(runs[name], tmp_path / "moved" / runs[name].name) for name in ("transe", "complex")]
    for folders in ((runs["transe"], runs["complex"]), moved):
        status, said, place = compare(*folders)
        assert status == 0, said
        (folder,) = place.glob("compare-kge-*")  # the same, as the runs are
        found = json.loads((folder / "comparison.json").read_text())
        assert [run["run"] for run in found["runs"]] == [str(path) for path in folders]


def test_what_asks_something_else_is_not_compared(runs, compare) -> None:
    status, said, _ = compare(runs["transe"], runs["fewest"])
    assert status == 2
    assert "ask something else (kge.fewest=20 and 10); make one of them again" in said
    status, said, _ = compare(runs["transe"])
    assert status == 2
    assert "compare.runs names 1 runs of recipe=kge, and two are set side by side" in said


def test_the_difference_of_trainings_by_hand() -> None:
    found = between_trainings(np.array([1.0, 3.0]), np.array([5.0, 7.0]))
    # Each mean has a variance of 2 / 2 = 1, so that the error is sqrt(2), with 2 degrees of freedom: t = 4.3027.
    assert found.change == 4
    assert (found.low, found.high) == pytest.approx((4 - 4.3027 * 2**0.5, 4 + 4.3027 * 2**0.5), abs=1e-3)
    assert between_trainings(np.array([1.0]), np.array([5.0, 7.0])) == (5, None, None)
    assert between_trainings(np.array([1.0, 1.0]), np.array([2.0, 2.0])) == (1, None, None)


@pytest.mark.parametrize(
    ("key", "first", "second", "half", "best", "said"),
    [
        ("kge/mrr", 0.1, 0.2, 0.05, None, "better"),
        ("kge/rank_correlation", 0.1, 0.3, 0.1, None, "higher"),
        ("kge/mrr", 0.1, 0.2, None, None, "unknown: no interval"),
        ("kge/mrr", 0.2000, 0.2004, 0.0001, None, "no difference shown"),  # 0.000 as shown
        ("kge/amplification", 1.6, -20.9, 2.0, (0, 0), "worse"),  # lower, and further from 0
        ("kge/amplification", 8.0, -1.0, 2.0, (0, 0), "better"),
        ("kge/amplification", 1.6, -1.6, 0.5, (0, 0), "no difference shown"),
        ("kge/parity", 10.0, 4.0, 1.0, (6.0, 6.5), "better"),  # 4 from chance, then 2.5
        ("kge/parity", 10.0, 4.0, 2.0, (6.0, 6.5), "no difference shown"),
        ("kge/leakage_linear", 0.55, 0.75, 0.1, (0.5, 0.5), "worse"),
    ],
)
def test_verdicts_follow_the_interval_and_the_direction_or_the_distance_from_what_is_best(
    key, first, second, half, best, said
) -> None:
    change = second - first
    low, high = (None, None) if half is None else (change - half, change + half)
    row = {"key": key, "first": first, "second": second, "change": change, "low": low, "high": high}
    assert verdict(row, best) == said
