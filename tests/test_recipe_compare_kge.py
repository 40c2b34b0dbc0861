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
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run folders of two models, and of transe with other people counted."""
    outputs = tmp_path_factory.mktemp("kge")
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
def compare(placed):
    """Runs the recipe; returns the exit status and what was printed on both streams."""

    def run(*folders: Path) -> tuple[int, str]:
        status, said, complaint = placed("recipe=compare", f"compare.runs=[{','.join(map(str, folders))}]")
        return status, said + complaint

    return run


def test_two_models_stand_side_by_side_and_are_named_where_they_are(runs, compare, tmp_path: Path) -> None:
    """Also once they have moved; runs that ask something else are not compared."""
    status, said = compare(runs["transe"], runs["complex"])
    assert status == 0, said
    assert "complex compared with transe" in said
    (folder,) = tmp_path.glob("out/compare-kge-*")
    found = json.loads((folder / "comparison.json").read_text())
    assert [run["run"] for run in found["runs"]] == [str(runs[name]) for name in ("transe", "complex")]
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
    moved = [Path(shutil.copytree(runs[name], tmp_path / "moved" / runs[name].name)) for name in ("transe", "complex")]
    status, said = compare(*moved)
    assert status == 0, said
    found = json.loads((folder / "comparison.json").read_text())  # in the same folder, as the runs are the same
    assert [run["run"] for run in found["runs"]] == [str(path) for path in moved]
    for folders, fault in (
        (("transe", "fewest"), "ask something else (kge.fewest=20 and 10); make one of them again"),
        (("transe",), "compare.runs names 1 runs of recipe=kge, and two are set side by side"),
    ):
        status, said = compare(*(runs[name] for name in folders))
        assert status == 2
        assert fault in said


def test_the_difference_of_trainings_by_hand() -> None:
    found = between_trainings(np.array([1.0, 3.0]), np.array([5.0, 7.0]))
    # Each mean has a variance of 2 / 2 = 1, so that the error is sqrt(2), with 2 degrees of freedom: t = 4.3027.
    assert found.change == 4
    assert (found.low, found.high) == pytest.approx((4 - 4.3027 * 2**0.5, 4 + 4.3027 * 2**0.5), abs=1e-3)
    assert between_trainings(np.array([1.0]), np.array([5.0, 7.0])) == (5, None, None)
    assert between_trainings(np.array([1.0, 1.0]), np.array([2.0, 2.0])) == (1, 1, 1)


@pytest.mark.parametrize(
    ("key", "change", "low", "high", "said"),
    [
        ("kge/mrr", 0.1, 0.05, 0.15, "better"),
        ("kge/parity", 3.0, 1.0, 5.0, "worse"),
        ("kge/parity", 3.0, -1.0, 5.0, "no difference shown"),
        ("kge/rank_correlation", 0.2, 0.1, 0.3, "higher"),
        ("kge/mrr", 0.1, None, None, "unknown: too few trainings"),
    ],
)
def test_verdicts_follow_the_interval_and_the_direction(key, change, low, high, said) -> None:
    assert verdict({"key": key, "change": change, "low": low, "high": high}) == said
