"""recipe=kge from the command line, on a made-up graph written as files; and embeddings from elsewhere."""

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from command import killed, metrics_of
from kge_graphs import SHARES, SMALL, planted, write_graph
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.graph import load
from mitigate.measure.base import VARIANTS, find
from mitigate.models.kge import Embeddings
from mitigate.studies.kge import TITLES, check_interaction, with_vectors
from mitigate.tracking import Tracking
from mitigate.train.kge import Settings, fit

ASKED = ["recipe=kge", "model=transe", "kge.sensitive=gender", "kge.values=[male,female]", *SMALL]


@pytest.fixture
def probe(job):
    return partial(job, *ASKED)


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
    mine = (*graph, "kge.seeds=2", "kge.mitigations=[project,regularise]")
    status, said, _, folder = probe(*mine)
    assert status == 0
    assert "  male (120 people) and female (120); 6 professions\n" in said
    assert "  verdict     " in said
    assert all(f"\n  {name} " in said for name in SHARES)
    metrics = metrics_of(folder)
    known = {key for key in metrics if find(key) or key.endswith(("_low", "_high"))}
    assert set(metrics) - known == {"data", "model", "seed", "fingerprint"}
    assert metrics["kge/professions"] == 6
    for variant in ("", *(f"{one}/" for one in VARIANTS)):
        assert 0 < metrics[f"{variant}kge/mrr"] <= 1
        assert metrics[f"{variant}kge/parity"] is not None
    assert metrics["projected/kge/rank_correlation"] is None  # 0 by construction
    professions = pl.read_parquet(folder / "professions.parquet")
    assert professions["change"].is_sorted(descending=True)
    assert dict(professions.select("profession", "people").rows())["nurse"] > 20
    page = (folder / "kge.html").read_text()
    assert [words for words in ("midwife", "120 male and 120 female", *TITLES.values()) if words not in page] == []
    assert "A made-up graph" not in page
    assert {path.name for path in (folder / "plots").iterdir()} >= {"professions.svg", "captions.csv"}
    assert {path.name for path in (folder / "tables").iterdir()} >= {"professions.csv", "trainings.csv"}
    assert not list(folder.glob("checkpoints/*"))
    assert {path.name for path in (folder / "embeddings").iterdir()} == {
        f"{before}seed_{seed}" for before in ("", *(f"{one}_" for one in VARIANTS)) for seed in (1, 2)
    }
    assert {"train_1", "quality/mean_reciprocal_rank", "metrics"} <= set(recorded)
    assert "professions" not in recorded  # the names are the user's own
    assert "nothing to do" in probe(*mine).said
    rehearsed = probe(*graph, "kge.seeds=3", "dry_run=true").said
    assert (rehearsed.count("cached"), rehearsed.count("to be run")) == (2, 7)  # seeds


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["kge.sensitive=sex"], "kge.sensitive: the graph has no relation 'sex'"),
        (["data.occupation=null"], "data.occupation is not set; set it to the relation from people to professions"),
        (["kge.mitigations=[drop]"], "unknown kge.mitigations 'drop'; allowed: regularise, project"),
        (["kge.mitigations=[regularise]", "model=rotate"], "trains dot products again, and model=rotate is a distance"),
        (["kge.fewest=1000"], "professions with 1000 or more people of the two values (kge.fewest): 0"),
        (["kge.seeds=0"], "kge.seeds=0 must be a whole number from 1 to 1,000"),
        (["model=complex", "model.dimension=7"], "model=complex: dimension=7 must be even"),
        (["data.path=null"], "data=graph needs data.path, which is not set; set data.path=FILE.tsv,"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_trained(probe, graph, overrides, message) -> None:
    given = {one.split("=")[0] for one in overrides}
    status, _, complaint, folder = probe(*(one for one in graph if one.split("=")[0] not in given), *overrides)
    assert status == 2
    assert message in complaint
    assert not folder.exists()


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
    goes_on = metrics_of(folder)
    undisturbed = probe(*mine, f"paths.outputs={tmp_path / 'others'}").folder
    assert metrics_of(undisturbed) == goes_on
    assert not list(folder.glob("checkpoints/*"))


IDS = {"entities": ["b", "a", "c"], "relations": ["s", "r"]}
VECTORS = {"entities": np.arange(12, dtype=np.float32).reshape(3, 4), "relations": np.ones((2, 4), dtype=np.float32)}


def write_vectors(folder: Path, vectors: dict[str, np.ndarray], ids: dict[str, list[str]]) -> str:
    folder.mkdir()
    for part, array in vectors.items():
        np.save(folder / f"{part}.npy", array)
    for part, names in ids.items():
        (folder / f"{part}.txt").write_text("\n".join(names) + "\n")
    return str(folder)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """The settings of a graph, and a folder with embeddings of it, in another order of ids and without one person."""
    place = tmp_path_factory.mktemp("foreign")
    settings = write_graph(place / "graph", planted(people=240))
    graph = load(str(place / "graph"), str(place / "graph" / "names.tsv"))
    torch.manual_seed(0)
    network = Embeddings("distmult", len(graph.entities), len(graph.relations), 16, 0.1)
    fast = Settings(max_epochs=30, batch_size=200, negatives=32, evaluate_every=30)
    fit(network, graph.train, graph.valid, graph.triples, fast, place / "checkpoints", fingerprint="")
    order = np.random.default_rng(0).permutation(len(graph.entities))
    order = order[order != graph.entities.index("p7")]
    vectors = {"entities": network.entities.detach().numpy()[order], "relations": network.relations.detach().numpy()}
    ids = {"entities": [graph.entities[place] for place in order], "relations": [*graph.relations]}
    return settings, write_vectors(place / "embeddings", vectors, ids)


def test_vectors_follow_the_order_of_the_graph_and_faults_are_named(tmp_path: Path) -> None:
    write_graph(tmp_path / "graph", planted(people=60))
    graph = load(str(tmp_path / "graph"))
    read = partial(refuses, MitigateError)
    read("model=foreign needs model.path, which is not set; set model.path=FOLDER", with_vectors, graph, None)
    read("no such file: .*entities.npy", with_vectors, graph, str(tmp_path))
    read("its ids differ", with_vectors, graph, write_vectors(tmp_path / "x", VECTORS, IDS))
    phases = {**VECTORS, "relations": np.ones((2, 2), np.float32)}
    read("have 4 numbers, and those of relations 2;", with_vectors, graph, write_vectors(tmp_path / "y", phases, IDS))
    numbers = np.arange(len(graph.entities), dtype=np.float32)[:, None].repeat(4, 1)[::-1]
    ids = {"entities": [*graph.entities[::-1]], "relations": [*graph.relations[:1:-1], *graph.relations[:2]]}
    vectors = {"entities": numbers, "relations": np.array([[2] * 4, [0] * 4, [1] * 4], np.float32)}
    same, entities, relations = with_vectors(graph, write_vectors(tmp_path / "all", vectors, ids))
    assert same is graph
    assert (entities[:, 0] == np.arange(len(graph.entities))).all()
    assert relations[:, 0].tolist() == [0, 1, 2]
    without = {"entities": ids["entities"][:-1], "relations": ids["relations"]}  # p0 is the first
    path = write_vectors(tmp_path / "without", {**vectors, "entities": numbers[:-1]}, without)
    fewer = with_vectors(graph, path)[0]
    assert "p0" not in fewer.entities
    assert "3 triples left out: model.path has no vector for an entity or the relation" in fewer.notices
    two = write_vectors(tmp_path / "two", VECTORS, {**IDS, "entities": ["a", "b"]})
    read("3 vectors, 2 different ids", with_vectors, graph, two)
    drawn = np.random.default_rng(0).normal(size=(2, len(graph.entities), 4)).astype(np.float32)
    given = (graph, "distmult", drawn[0], drawn[1][: len(graph.relations)])
    read("too close to chance|set model.kind", check_interaction, *given)


def test_an_audit_of_foreign_embeddings(foreign, job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes over 3 s: a whole run with its page."""
    monkeypatch.setattr("mitigate.report.page.Page.pictures", [])
    settings, folder = foreign
    probe = partial(job, "recipe=kge", "model=foreign", *settings, f"model.path={folder}")
    wrong = probe("model.kind=transe_l2")
    assert wrong.status == 2
    assert "with model.kind=transe_l2, and 0." in wrong.complaint
    assert "with distmult; set model.kind=distmult" in wrong.complaint
    assert "trained elsewhere; leave it out" in probe("model.kind=distmult", "kge.mitigations=[regularise]").complaint
    assert "unknown model.kind None; allowed: transe" in probe().complaint
    run = probe("model.kind=distmult", "kge.mitigations=[project]").folder
    metrics = metrics_of(run)
    assert metrics["kge/mrr"] > 0.15
    page = (run / "kge.html").read_text()
    assert f"The embeddings are those of {folder}, scored as distmult: one training, made elsewhere." in page
    assert "One training does not show what is due to chance" in page
