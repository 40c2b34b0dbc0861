"""Embeddings that another program trained: read, aligned with a graph, checked, and audited by recipe=kge."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kge_graphs import planted, write_graph
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.graph import TrainedEmbeddings, align, load, read_embeddings, restrict
from mitigate.tasks.kge.question import triples_of
from mitigate.tasks.kge.training import check_interaction, network_of
from mitigate.train.kge import Settings, fit
from models.kge import KINDS, Embeddings

ASKED = ["recipe=kge", "model=foreign", "kge.sensitive=gender", "kge.values=[male,female]"]
IDS = {"entities": ("b", "a", "c"), "relations": ("s", "r")}
VECTORS = {
    "entities": np.arange(12, dtype=np.float32).reshape(3, 4),
    "relations": np.arange(8, dtype=np.float32).reshape(2, 4),
}


def write_folder(folder: Path, vectors: dict[str, np.ndarray], ids: dict[str, Any]) -> str:
    folder.mkdir()
    for part, array in vectors.items():
        np.save(folder / f"{part}.npy", array)
    for part, names in ids.items():
        (folder / f"{part}.txt").write_text("\n".join(names) + "\n")
    return str(folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """The settings of a graph, and a folder with embeddings of it, in another order of ids."""
    place = tmp_path_factory.mktemp("foreign")
    settings = write_graph(place / "graph", planted(people=240))
    graph = load(str(place / "graph"), str(place / "graph" / "names.tsv"))
    triples = triples_of(graph)
    torch.manual_seed(0)
    network = Embeddings("distmult", triples.num_entities, triples.num_relations, 16, 0.1)
    fast = Settings(max_epochs=30, batch_size=200, chunk_size=200, negatives=32, evaluate_every=30)
    fit(
        network,
        triples.train,
        triples.valid,
        triples.all,
        fast,
        place / "checkpoints",
        fingerprint="",
        accelerator="cpu",
    )
    order = np.random.default_rng(0).permutation(triples.num_entities)
    vectors = {
        "entities": network.entities.detach().cpu().numpy()[order],
        "relations": network.relations.detach().cpu().numpy(),
    }
    ids = {"entities": [graph.entities[place] for place in order], "relations": graph.relations}
    return settings, write_folder(place / "embeddings", vectors, ids)


def test_faults_are_named(tmp_path: Path) -> None:
    read = partial(refuses, MitigateError)
    read("model=foreign needs embeddings: give model.path", read_embeddings, None, None, KINDS)
    read("no such file: .*entities.npy", read_embeddings, str(tmp_path), "distmult", KINDS)
    good = write_folder(tmp_path / "good", VECTORS, IDS)
    found = read_embeddings(good, "distmult", KINDS)
    assert (found.entities, found.relations) == tuple(IDS.values())
    assert np.array_equal(found.entity_vectors, VECTORS["entities"])
    read("model.kind", read_embeddings, good, None, KINDS)
    faults = {
        "3 vectors of entities and 2 ids": {"ids": {**IDS, "entities": ("a", "b")}},
        "1 id of entities repeat": {"ids": {**IDS, "entities": ("a", "b", "a")}},
        "expected finite floats": {"vectors": {**VECTORS, "entities": np.full((3, 4), np.nan, np.float32)}},
        "have 3 and 4 numbers": {"vectors": {**VECTORS, "entities": np.ones((3, 3), np.float32)}},
        "int64 of shape": {"vectors": {**VECTORS, "entities": np.ones((3, 4), np.int64)}},
        "no such file": {"vectors": {"entities": VECTORS["entities"]}},
        "cannot be read": {"vectors": {**VECTORS, "entities": np.array([["a", 1, None]], object)}},
    }
    for number, (message, changed) in enumerate(faults.items()):
        given = {"vectors": VECTORS, "ids": IDS, **changed}
        read(message, read_embeddings, write_folder(tmp_path / str(number), **given), "distmult", KINDS)


def test_vectors_follow_the_order_of_the_graph_and_its_triples_those_with_vectors(tmp_path: Path) -> None:
    write_graph(tmp_path / "graph", planted(people=60))
    graph = load(str(tmp_path / "graph"))
    count = len(graph.entities)
    numbers = np.arange(count, dtype=np.float32)[:, None].repeat(2, 1)
    relations = np.array([[1, 1], [2, 2], [3, 3], [-1, -1], [-2, -2], [-3, -3]], np.float32)
    found = TrainedEmbeddings(
        "complex_n3", graph.entities[::-1], graph.relations[::-1], numbers[::-1].copy(), relations, "a test"
    )
    entities, both = align(found, graph)
    assert entities[:, 0].tolist() == numbers[:, 0].tolist()
    assert both[:, 0].tolist() == [3, 2, 1, -3, -2, -1]
    assert network_of(found, graph, "complex_n3").reciprocal
    refuses(ValueError, "complex needs 3 vectors of relations, not 6", network_of, found, graph, "complex")

    without = restrict(graph, {*graph.entities} - {"p0"}, {*graph.relations})
    assert "p0" in graph.entities
    assert "p0" not in without.entities
    assert "3 triples left out: model.path has no vector for an entity or the relation" in without.notices
    assert restrict(graph, {*graph.entities}, {*graph.relations}) is graph
    refuses(MitigateError, "are of another graph, or have other ids", restrict, graph, {"Q1"}, {*graph.relations})


def test_a_wrong_interaction_is_seen_before_any_bias(trained, probe) -> None:
    settings, folder = trained
    status, _, errors, _ = probe(*settings, f"model.path={folder}", "model.kind=transe_l2")
    assert status == 2
    assert "with model.kind=transe_l2, and 0." in errors
    assert "with distmult; set model.kind=distmult" in errors or "with complex; set model.kind=complex" in errors


def test_vectors_at_random_are_refused(tmp_path: Path) -> None:
    write_graph(tmp_path / "graph", planted(people=240))
    graph = load(str(tmp_path / "graph"))
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(len(ids), 4)).astype(np.float32) for ids in (graph.entities, graph.relations)]
    found = TrainedEmbeddings("distmult", graph.entities, graph.relations, *vectors, "a test")
    refuses(MitigateError, "too close to chance|set model.kind", check_interaction, found, graph, triples_of(graph))


@pytest.fixture
def probe(job):
    return partial(job, *ASKED)


def test_an_audit_of_foreign_embeddings(trained, probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes over 3 s: a whole run with its page."""
    monkeypatch.setattr("mitigate.report.page.Page.pictures", [])
    settings, folder = trained
    mine = (*settings, f"model.path={folder}", "model.kind=distmult")
    status, _, _, run = probe(*mine, "kge.mitigations=[project]")
    assert status == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["kge/mrr"] > 0.15
    page = (run / "kge.html").read_text()
    assert f"those of {folder}, scored as distmult. They are not trained here" in page
    assert "nothing to do" in probe(*mine, "kge.mitigations=[project]").said
    assert "trains again" in probe(*mine, "kge.mitigations=[regularise]").complaint
