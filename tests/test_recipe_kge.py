"""recipe=kge from the command line, on a made-up graph written as files."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from command import here, killed
from kge_graphs import SMALL, planted, write_graph

from mitigate.metrics import find
from mitigate.report.tables import console
from mitigate.tracking import NoTracking

MRR = {"transe": 0.16, "complex": 0.2}
ASKED = ["recipe=kge", "model=transe", "kge.sensitive=gender", "kge.values=[male,female]", *SMALL]


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe; returns the exit status, what was printed, the complaint, and the run folder."""

    def run(*overrides: str) -> tuple[int, str, str, Path]:
        outputs = tmp_path / "outputs"
        status = here(monkeypatch, *ASKED, f"paths.outputs={outputs}", "tracking=none", *overrides)
        said, complaint = capsys.readouterr()
        named = [line.split()[-1] for line in said.splitlines() if "run folder" in line]
        return status, said, complaint, Path(named[-1]) if named else outputs

    return run


@pytest.fixture
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds."""
    monkeypatch.setattr("mitigate.report.kge.Results.pictures", [])


@pytest.fixture
def graph(tmp_path: Path) -> list[str]:
    """The settings that name a graph with a planted bias."""
    return write_graph(tmp_path / "graph", planted(people=240))


def test_a_run_leaves_its_figures_tables_and_page(probe, graph, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[str] = []
    monkeypatch.setattr(NoTracking, "log", lambda self, values, step, stage: recorded.append(stage))
    monkeypatch.setattr(NoTracking, "summarise", lambda self, metrics: recorded.extend(metrics))
    monkeypatch.setattr(NoTracking, "table", lambda self, name, frame: recorded.append(name))
    mine = (*graph, "kge.seeds=2", "kge.permuted=3", "kge.mitigations=[downsample,project]")
    status, said, _, folder = probe(*mine)
    assert status == 0
    assert "  male (120 people) and female (120); 6 professions\n" in said
    assert [line.split()[1] for line in said.splitlines() if line.startswith("  towards ")] == ["male", "female"]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert [key for key in metrics if find(key) is None] == []
    assert metrics["kge/professions"] == 6
    assert metrics["kge/null/graphs"] == 3
    assert 0 < metrics["kge/mrr"] <= 1
    for variant in ("downsampled", "projected"):
        assert 0 < metrics[f"{variant}/kge/mrr"] <= 1
        assert metrics[f"{variant}/kge/leakage_nonlinear"] is not None
    assert metrics["projected/kge/rank_correlation"] is None  # 0 by construction
    professions = pl.read_parquet(folder / "professions.parquet")
    assert professions["change"].is_sorted(descending=True)
    assert dict(professions.select("profession", "people").rows())["nurse"] > 20
    page = (folder / "kge.html").read_text()
    for words in (
        "midwife",
        "downsampled to parity",
        "attribute projected out",
        "No published figure",
        "band of permuted",
    ):
        assert words in page
    assert {path.name for path in (folder / "plots").iterdir()} >= {"scatter.svg", "null.svg", "captions.csv"}
    assert (folder / "tables" / "professions.csv").is_file()
    assert not (folder / "checkpoints").exists() or not any((folder / "checkpoints").iterdir())
    assert {path.name for path in (folder / "embeddings").iterdir()} == {
        *("seed_1", "seed_2", "downsampled_1", "downsampled_2", "projected_seed_1", "projected_seed_2")
    }
    assert {"train_1", "permuted_3", "quality/mrr", "metrics"} <= set(recorded)
    assert "professions" not in recorded  # the names are the user's own
    assert "nothing is left to do" in probe(*mine)[1]
    _, dry, _, _ = probe(*graph, "kge.seeds=3", "kge.permuted=1", "dry_run=true")
    assert dry.count("to be run") == 3 + 6 + 2 + 3


@pytest.mark.usefixtures("_no_pictures")
def test_rankings_of_other_models_are_compared(probe, graph, tmp_path: Path) -> None:
    one = ("kge.seeds=1", "kge.permuted=0")
    _, _, _, first = probe(*graph, *one)
    assert "There is one training only" in (first / "kge.html").read_text()
    status, _, _, folder = probe(*graph, *one, "model=transe_l2", f"kge.runs=[{first}]")
    assert status == 0
    metrics = json.loads((folder / "metrics.json").read_text())
    assert -1 <= metrics["kge/models/agreement"] <= 1
    assert "kge/null/rank_correlation" not in metrics
    assert "transe (" in (folder / "kge.html").read_text()
    copy = shutil.copytree(first, tmp_path / "copy" / first.name)
    twice = ("model=transe_l2", f"kge.runs=[{first},{copy},{first}]")
    _, _, _, folder = probe(*graph, *one, *twice)
    page = (folder / "kge.html").read_text()
    assert f"transe ({first})" in page
    assert f"transe ({copy})" in page
    status, _, complaint, _ = probe(*graph, *one, "kge.fewest=30", f"kge.runs=[{first}]")
    assert status == 2
    assert "has kge.fewest=20, this run 30; name runs that ask the same" in complaint
    status, _, complaint, _ = probe(*graph, *one, "kge.occupation=town", f"kge.runs=[{first}]", "dry_run=true")
    assert status == 2
    assert "has kge.occupation=job, this run town" in complaint
    other = write_graph(tmp_path / "other", planted(people=240, seed=1))  # called "graph" as well
    status, _, complaint, _ = probe(*other, *one, f"kge.runs=[{first}]", "dry_run=true")
    assert status == 2
    assert "is of other triples; name runs on the same graph" in complaint


def test_a_sweep_over_models_takes_settings_of_models(graph, monkeypatch, capsys, tmp_path: Path) -> None:
    """Hydra composes the configuration once before it chooses a model of the sweep: it must know such settings then."""
    asked = [one for one in ASKED if not one.startswith("model=")]
    places = (f"paths.outputs={tmp_path}", "tracking=none", "dry_run=true")
    assert here(monkeypatch, "-m", *asked, *graph, "model=transe,complex", "kge.seeds=1", *places) == 0
    said = capsys.readouterr().out
    assert [model for model in ("transe", "complex") if f"-{model}-gender-" in said] == ["transe", "complex"]


def test_runs_stand_side_by_side() -> None:
    runs = {name: {"kge/mrr": mrr, "kge/mrr_low": mrr - 0.01, "kge/mrr_high": mrr} for name, mrr in MRR.items()}
    lines = console(runs).splitlines()
    assert lines[0].split() == ["transe", "complex"]
    assert lines[1] == "knowledge-graph embeddings"
    assert lines[2].split() == [
        "mean",
        "reciprocal",
        "rank",
        "↑",
        "0.160",
        "[0.150,",
        "0.160]",
        "0.200",
        "[0.190,",
        "0.200]",
    ]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["kge.sensitive=sex"], "kge.sensitive=sex: the graph has no relation 'sex'"),
        (["kge.sensitive=gendr"], "its own name or id; did you mean gender?"),
        (["kge.values=[mael,female]"], "; did you mean male?"),
        (["kge.values=[man,female]"], "nobody in the graph has 'man' as gender; the commonest values are: "),
        (["kge.values=[male,male]"], "must name two different values"),
        (["data.occupation=null"], "kge.occupation is not given: name the relation of people to professions"),
        (["kge.mitigations=[drop]"], "unknown kge.mitigations 'drop'; allowed: downsample, project"),
        (["kge.fewest=1000"], "0 professions have at least 1000 people of the two values (kge.fewest)"),
        (["kge.seeds=0"], "kge.seeds=0 must be a whole number from 1 to 1,000"),
        (["kge.people=[p0]"], "kge.people names 1 people; name pairs"),
        (["kge.runs=[nowhere]"], "kge.runs: "),
        (["model=complex", "model.dimension=7"], "model=complex: dimension=7 must be even"),
        (["data.path=null"], "data=graph needs triples: give data.path=FILE.tsv"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_trained(probe, graph, overrides, message) -> None:
    given = {one.split("=")[0] for one in overrides}
    status, _, complaint, folder = probe(*(one for one in graph if one.split("=")[0] not in given), *overrides)
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert not folder.exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model=transe"], "recipe=kge reads knowledge graphs, and data=sample is none; say data=fb15k237"),
        (
            ["data=fb15k237", "model=comet_minilm"],
            "recipe=kge trains embeddings, and model=comet_minilm is a generator; say model=transe",
        ),
        (["data=wd50k", "model=transe", "data.root=/nowhere"], "there is no /nowhere/kg/wd50k/train.txt"),
    ],
)
def test_wrong_groups_are_named(overrides, message, monkeypatch, capsys, tmp_path: Path) -> None:
    assert here(monkeypatch, "recipe=kge", *overrides, f"paths.outputs={tmp_path}", "tracking=none") == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_no_pictures")
@pytest.mark.thorough
def test_a_killed_run_goes_on_and_comes_to_the_same_figures(probe, graph, tmp_path: Path) -> None:
    long = ["model.training.max_epochs=40", "model.training.evaluate_every=20", "model.training.patience=100"]
    mine = [*graph, *long, "kge.seeds=1", "kge.permuted=0", "kge.checkpoint_every=0.1"]
    outputs = tmp_path / "outputs"
    killed(
        lambda: any(outputs.glob("*/checkpoints/seed_1/last.ckpt")),
        *ASKED,
        *mine,
        f"paths.outputs={outputs}",
        "tracking=none",
    )
    (folder,) = outputs.iterdir()
    assert not (folder / "train_1.json").exists()
    assert probe(*mine)[3] == folder
    goes_on = json.loads((folder / "metrics.json").read_text())
    _, _, _, undisturbed = probe(*mine, f"paths.outputs={tmp_path / 'others'}")
    assert json.loads((undisturbed / "metrics.json").read_text()) == goes_on
    assert not list(folder.glob("checkpoints/*"))
