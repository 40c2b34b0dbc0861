"""recipe=kge from the command line, on a made-up graph written as files."""

import json
import shutil
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from command import killed
from kge_graphs import SHARES, SMALL, planted, write_graph

from mitigate.measure.base import MITIGATED, find
from mitigate.report.kge import TITLES
from mitigate.tasks.kge.mitigation import VARIANTS
from mitigate.tracking.record import Tracking

ASKED = ["recipe=kge", "model=transe", "kge.sensitive=gender", "kge.values=[male,female]", *SMALL]


@pytest.fixture
def probe(job):
    return partial(job, *ASKED)


@pytest.fixture
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds."""
    monkeypatch.setattr("mitigate.report.page.Page.pictures", [])


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The settings that name a graph with a planted bias."""
    return write_graph(tmp_path_factory.mktemp("kge") / "graph", planted(people=240))


def test_a_run_leaves_its_figures_tables_and_page(probe, graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes over 3 s: the only run with all variants, and with the pictures."""
    recorded: list[str] = []
    monkeypatch.setattr(Tracking, "log", lambda self, values, step, stage: recorded.append(stage))
    monkeypatch.setattr(Tracking, "summarise", lambda self, metrics: recorded.extend(metrics))
    monkeypatch.setattr(Tracking, "table", lambda self, name, frame: recorded.append(name))
    mine = (*graph, "kge.seeds=2", f"kge.mitigations=[{','.join(VARIANTS)}]")
    status, said, _, folder = probe(*mine)
    assert status == 0
    assert "  male (120 people) and female (120); 6 professions\n" in said
    assert "  verdict     " in said
    assert all(f"\n  {name} " in said for name in SHARES)
    metrics = json.loads((folder / "metrics.json").read_text())
    known = {key for key in metrics if find(key) or key.endswith(("_low", "_high"))}
    assert set(metrics) - known == {"data", "model", "seed", "fingerprint"}
    assert metrics["kge/professions"] == 6
    for variant in ("", *(f"{one}/" for one in MITIGATED)):
        assert 0 < metrics[f"{variant}kge/mrr"] <= 1
        assert metrics[f"{variant}kge/leakage_nonlinear"] is not None
    assert metrics["projected/kge/rank_correlation"] is None  # 0 by construction
    professions = pl.read_parquet(folder / "professions.parquet")
    assert professions["change"].is_sorted(descending=True)
    assert dict(professions.select("profession", "people").rows())["nurse"] > 20
    page = (folder / "kge.html").read_text()
    shown = ("midwife", *TITLES.values())
    assert [words for words in shown if words not in page] == []
    assert {path.name for path in (folder / "plots").iterdir()} >= {
        *("professions.svg", "scatter.svg", "front_parity.svg", "front_leakage_nonlinear.svg", "captions.csv")
    }
    assert {"professions.csv", "ranks.csv", "pairs.csv", "values.csv"} <= {
        path.name for path in (folder / "tables").iterdir()
    }
    assert not list(folder.glob("checkpoints/*"))
    assert {path.name for path in (folder / "embeddings").iterdir()} == {
        f"{before}seed_{seed}" for before in ("", *(f"{one}_" for one in MITIGATED)) for seed in (1, 2)
    }
    assert {"train_1", "quality/mean_reciprocal_rank", "metrics"} <= set(recorded)
    assert "professions" not in recorded  # the names are the user's own
    assert "nothing to do" in probe(*mine).said
    rehearsed = probe(*graph, "kge.seeds=3", "dry_run=true").said
    assert rehearsed.count("cached") == 2  # seeds
    assert rehearsed.count("to be run") == 11


@pytest.mark.usefixtures("_no_pictures")
def test_rankings_of_other_models_are_compared(probe, graph, tmp_path: Path) -> None:
    """Takes over 3 s: two runs and a third that reads them."""
    one = ("kge.seeds=1",)
    first = probe(*graph, *one).folder
    assert "One training does not show" in (first / "kge.html").read_text()
    status, _, _, folder = probe(*graph, *one, "model=transe_l2", f"kge.runs=[{first}]")
    assert status == 0
    metrics = json.loads((folder / "metrics.json").read_text())
    assert -1 <= metrics["kge/models/agreement"] <= 1
    assert "transe (" in (folder / "kge.html").read_text()
    copy = shutil.copytree(first, tmp_path / "copy" / first.name)
    page = (
        probe(*graph, *one, "model=transe_l2", f"kge.runs=[{first},{copy},{first}]").folder / "kge.html"
    ).read_text()
    assert f"transe ({first})" in page
    assert f"transe ({copy})" in page
    other = write_graph(tmp_path / "other", planted(people=240, seed=1))  # called "graph" as well
    for asked, message in (
        ((*graph, "kge.fewest=30"), "has kge.fewest=20, this run 30; choose runs with the same settings"),
        ((*graph, "data.occupation=town"), "has data.occupation=job, this run town"),
        (other, "was trained on other triples; choose runs on the same graph"),
    ):
        refused = probe(*asked, *one, f"kge.runs=[{first}]", "dry_run=true")
        assert refused.status == 2
        assert message in refused.complaint


def test_a_sweep_over_models_takes_settings_of_models(graph, job) -> None:
    """Hydra composes the configuration before it chooses a model of the sweep: it must know such settings then."""
    asked = [one for one in ASKED if not one.startswith("model=")]
    status, said, _, _ = job("-m", *asked, *graph, "model=transe,complex", "kge.seeds=1", "dry_run=true")
    assert status == 0
    assert [model for model in ("transe", "complex") if f"-{model}-gender-" in said] == ["transe", "complex"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["kge.sensitive=sex"], "kge.sensitive=sex: the graph has no relation 'sex'"),
        (["data.occupation=null"], "data.occupation is not set; set it to the relation from people to professions"),
        (["kge.mitigations=[drop]"], "unknown kge.mitigations 'drop'; allowed: regularise, project, perturb"),
        (
            ["kge.mitigations=[regularise]", "model=rotate"],
            "regularise is for dot products, and model=rotate is a distance",
        ),
        (["kge.fewest=1000"], "professions with 1000 or more people of the two values (kge.fewest): 0"),
        (["kge.seeds=0"], "kge.seeds=0 must be a whole number from 1 to 1,000"),
        (["kge.people=[p0]"], "kge.people has 1 people, expected pairs"),
        (["kge.runs=[nowhere]"], "kge.runs: "),
        (["model=complex", "model.dimension=7"], "model=complex: dimension=7 must be even"),
        (["data.path=null"], "data=graph needs data.path, which is not set; set data.path=FILE.tsv,"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_trained(probe, graph, overrides, message) -> None:
    given = {one.split("=")[0] for one in overrides}
    status, _, complaint, folder = probe(*(one for one in graph if one.split("=")[0] not in given), *overrides)
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert not folder.exists()


def test_wrong_groups_are_named(job) -> None:
    for data, model, message in (
        ("sample", "transe", "recipe=kge reads knowledge graphs, and data=sample is not one; set data=fb15k237"),
        ("fb15k237", "comet_minilm", "trains embeddings, and model=comet_minilm is a generator; set model=transe"),
        ("wd50k", "transe", "no such file or folder: /nowhere/kg/wd50k/train.txt"),
    ):
        refused = job("recipe=kge", f"data={data}", f"model={model}", "data.root=/nowhere")
        assert refused.status == 2
        assert message in refused.complaint
        assert not refused.folder.exists()


@pytest.mark.usefixtures("_no_pictures")
@pytest.mark.thorough
def test_a_killed_run_goes_on_and_comes_to_the_same_figures(probe, graph, tmp_path: Path) -> None:
    long = ["model.training.max_epochs=40", "model.training.evaluate_every=20", "model.training.patience=100"]
    mine = [*graph, *long, "kge.seeds=1", "++kge.checkpoint_every=0.1"]
    outputs = tmp_path / "outputs"
    where = [f"paths.outputs={outputs}", "tracking=none"]
    killed(lambda: any(outputs.rglob("checkpoints/**/last.ckpt")), *ASKED, *mine, *where)
    (folder,) = outputs.glob("[!.]*")
    assert not (folder / "train_1.json").exists()
    assert probe(*mine).folder == folder
    goes_on = json.loads((folder / "metrics.json").read_text())
    undisturbed = probe(*mine, f"paths.outputs={tmp_path / 'others'}").folder
    assert json.loads((undisturbed / "metrics.json").read_text()) == goes_on
    assert not list(folder.glob("checkpoints/*"))
