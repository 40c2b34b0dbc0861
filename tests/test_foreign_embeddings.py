"""Embeddings that another program trained: read, aligned with a graph, checked, and audited by recipe=kge."""

import json
import runpy
import sys
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from command import ROOT
from kge_graphs import planted, write_graph
from refusals import refuses
from safetensors.numpy import save_file

from mitigate.errors import MitigateError
from mitigate.load.graph.graph import Graph
from mitigate.load.graph.own import load
from mitigate.load.graph.trained_embeddings import TrainedEmbeddings, align, read_embeddings, restrict
from mitigate.tasks.kge.graphs import triples_of
from mitigate.tasks.kge.training import check_interaction, network_of
from mitigate.train.kge import Settings, fit
from models.kge.embeddings import KINDS, Embeddings
from models.kge.ranking import filtered_ranks

CONVERTER = ROOT / "docs" / "examples" / "convert_embeddings.py"
ASKED = ["recipe=kge", "model=foreign", "kge.sensitive=gender", "kge.values=[male,female]"]
IDS = {"entities": ("b", "a", "c"), "relations": ("s", "r")}
VECTORS = {
    "entities": np.arange(12, dtype=np.float32).reshape(3, 4),
    "relations": np.arange(8, dtype=np.float32).reshape(2, 4),
}


def convert(*arguments: object) -> None:
    """The converter, as from a shell."""
    before, sys.argv = sys.argv, [str(CONVERTER), *map(str, arguments)]
    try:
        runpy.run_path(str(CONVERTER), run_name="__main__")
    finally:
        sys.argv = before


def write_folder(folder: Path, vectors: dict[str, np.ndarray], ids: dict[str, Any], **facts: str) -> str:
    folder.mkdir()
    save_file({part: np.ascontiguousarray(array) for part, array in vectors.items()}, folder / "vectors.safetensors")
    for part, names in ids.items():
        (folder / f"{part}.txt").write_text("\n".join(names) + "\n")
    (folder / "embeddings.json").write_text(json.dumps(facts))
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
    return settings, write_folder(place / "embeddings", vectors, ids, kind="distmult", origin="a test")


@pytest.mark.parametrize("layout", ["safetensors", "tsv", "npz"])
def test_three_layouts_have_the_same_vectors(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "found"
    if layout == "safetensors":
        write_folder(path, VECTORS, IDS)
    elif layout == "npz":
        path = path.with_suffix(".npz")
        np.savez(path, **VECTORS, entity_ids=IDS["entities"], relation_ids=IDS["relations"])
    else:
        path.mkdir()
        for part, ids in IDS.items():
            rows = [[id_, *map(str, vector)] for id_, vector in zip(ids, VECTORS[part].tolist(), strict=True)]
            (path / f"{part}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    found = read_embeddings(str(path), "distmult", KINDS)
    assert (found.entities, found.relations, found.kind, found.reciprocal) == (*IDS.values(), "distmult", False)
    assert np.array_equal(found.entity_vectors, VECTORS["entities"])
    assert np.array_equal(found.relation_vectors, VECTORS["relations"])


def test_faults_are_named(tmp_path: Path) -> None:
    read = partial(refuses, MitigateError)
    read("model=foreign needs embeddings: give model.path", read_embeddings, None, None, KINDS)
    read("is a pickled file, which can run code", read_embeddings, "model.pkl", None, KINDS)
    read("no such file: .*entities.tsv", read_embeddings, str(tmp_path), "distmult", KINDS)
    good = write_folder(tmp_path / "good", VECTORS, IDS)
    read("does not name its interaction: give model.kind, one of transe, ", read_embeddings, good, None, KINDS)
    read("model.kind", read_embeddings, good, "distmul", KINDS)
    faults = {
        "3 vectors of entities and 2 ids": {"ids": {**IDS, "entities": ("a", "b")}},
        "1 id of entities repeat": {"ids": {**IDS, "entities": ("a", "b", "a")}},
        "not finite": {"vectors": {**VECTORS, "entities": np.full((3, 4), np.nan, np.float32)}},
        "have 3 and 4 numbers": {"vectors": {**VECTORS, "entities": np.ones((3, 3), np.float32)}},
        "int64 of shape": {"vectors": {**VECTORS, "entities": np.ones((3, 4), np.int64)}},
        "lacks": {"vectors": {"entities": VECTORS["entities"]}},
    }
    for number, (message, changed) in enumerate(faults.items()):
        given = {"vectors": VECTORS, "ids": IDS, **changed}
        read(message, read_embeddings, write_folder(tmp_path / str(number), **given), "distmult", KINDS)
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04cut")
    read("cannot be read", read_embeddings, str(tmp_path / "cut.npz"), "distmult", KINDS)
    np.savez(tmp_path / "objects.npz", **VECTORS, entity_ids=np.array(["a", 1, None], object), relation_ids=["r", "s"])
    read("cannot be read", read_embeddings, str(tmp_path / "objects.npz"), "distmult", KINDS)


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
    assert network_of(found, graph, "complex").reciprocal

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
    monkeypatch.setattr("mitigate.report.kge.Results.pictures", [])
    settings, folder = trained
    status, _, _, run = probe(*settings, f"model.path={folder}", "kge.mitigations=[project]")
    assert status == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["kge/mrr"] > 0.15
    assert metrics.get("kge/null/graphs") in (None, 0)
    page = (run / "kge.html").read_text()
    assert "those of a test, scored as distmult. They are not trained here" in page
    assert "so no null band: place and sign of a single profession show nothing" in page
    assert "nothing to do" in probe(*settings, f"model.path={folder}", "kge.mitigations=[project]").said
    assert "trains again" in probe(*settings, f"model.path={folder}", "kge.mitigations=[downsample]").complaint


@pytest.mark.parametrize("model", ["TransE", "DistMult", "ComplEx", "RotatE"])
def test_pykeen_gives_the_same_ranks(model: str, tmp_path: Path) -> None:
    """Takes over 3 s the first time: PyKEEN is imported."""
    pytest.importorskip("pykeen")
    from pykeen.models import ComplEx, DistMult, RotatE, TransE
    from pykeen.triples import TriplesFactory

    write_graph(tmp_path / "graph", planted(people=60))
    graph = load(str(tmp_path / "graph"))
    rows = _labels(graph, triples_of(graph).all)
    inverse = model in ("DistMult", "ComplEx")
    factory = TriplesFactory.from_labeled_triples(np.array(rows, dtype=str), create_inverse_triples=inverse)
    network = {"TransE": TransE, "DistMult": DistMult, "ComplEx": ComplEx, "RotatE": RotatE}[model](
        triples_factory=factory, embedding_dim=6, random_seed=0
    )
    saved = tmp_path / "saved"
    saved.mkdir()
    torch.save(network, saved / "trained_model.pkl")
    factory.to_path_binary(saved / "training_triples")
    convert("pykeen", saved, tmp_path / "out")
    found = read_embeddings(str(tmp_path / "out"), None, KINDS)
    mine = network_of(found, graph, found.kind)
    numbers = torch.from_numpy(graph.test)
    entity, relation = factory.entity_to_id, factory.relation_to_id
    theirs = torch.tensor([(entity[h], relation[r], entity[t]) for h, r, t in _labels(graph, graph.test)])
    order = [entity[id_] for id_ in graph.entities]
    with torch.no_grad():
        tails = network.predict_t(theirs[:, :2])[:, order]
        heads = network.predict_h(theirs[:, 1:])[:, order]
    assert torch.allclose(mine.tails(numbers[:, 0], numbers[:, 1]), tails, atol=1e-4)
    assert torch.allclose(mine.heads(numbers[:, 1], numbers[:, 2]), heads, atol=1e-4)
    assert filtered_ranks(mine, numbers, torch.from_numpy(triples_of(graph).all), len(order))[0].min() >= 1


@pytest.mark.parametrize("operator", ["translation", "diagonal", "complex_diagonal"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_biggraph_changes_the_tail_and_with_dynamic_relations_the_known_one(
    operator: str, dynamic: bool, tmp_path: Path
) -> None:
    """The layout of a checkpoint of version 1.0.0; scores as MultiRelationEmbedder.forward has them."""
    rng = np.random.default_rng(0)
    entities, right, left = rng.normal(size=(5, 4)), rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    config = {"entities": {"thing": {"num_partitions": 1}}, "comparator": "dot", "dynamic_relations": dynamic}
    config["relations"] = [{"name": name, "operator": operator} for name in (["all"] if dynamic else ["r", "s"])]
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "checkpoint_version.txt").write_text("7\n")
    (tmp_path / "entity_names_thing_0.json").write_text(json.dumps(list("abcde")))
    (tmp_path / "dynamic_rel_names.json").write_text(json.dumps(["r", "s"]))
    model = "model/relations/{}/operator/{}"
    groups = {model.format(number, "rhs"): _parameters(operator, right[number]) for number in range(2)}
    if dynamic:
        groups = {model.format(0, side): _parameters(operator, of, "s") for side, of in (("rhs", right), ("lhs", left))}
    arrays = {f"{place}/{part}": array for place, parts in groups.items() for part, array in parts.items()}
    for name, content in (("embeddings_thing_0.v7.h5", {"embeddings": entities}), ("model.v7.h5", arrays)):
        with h5py.File(tmp_path / name, "w") as file:
            for place, array in content.items():
                file[place] = array
    convert("biggraph", tmp_path, tmp_path, tmp_path / "out")
    found = read_embeddings(str(tmp_path / "out"), None, KINDS)
    network = Embeddings(found.kind, 5, 2, 4, reciprocal=found.reciprocal)
    network.load_state_dict(
        {"entities": torch.from_numpy(entities), "relations": torch.from_numpy(found.relation_vectors)}
    )
    heads, relations, tails = torch.tensor([0, 3]), torch.tensor([1, 0]), torch.tensor([2, 4])

    def by_tail(number: int, relation: int) -> np.ndarray:
        if dynamic:
            return _changed(operator, left[relation], entities[number]) @ entities.T
        return entities[number] @ _changed(operator, right[relation], entities).T

    assert np.allclose(network.tails(heads, relations).detach(), [by_tail(0, 1), by_tail(3, 0)], atol=1e-5)
    by_head = [entities @ _changed(operator, right[r], entities[t]) for r, t in ((1, 2), (0, 4))]
    assert np.allclose(network.heads(relations, tails).detach(), by_head, atol=1e-5)


def _parameters(operator: str, vectors: np.ndarray, plural: str = "") -> dict[str, np.ndarray]:
    if operator == "complex_diagonal":
        return dict(zip(("real", "imag"), np.split(vectors, 2, axis=-1), strict=True))
    return {operator + plural: vectors}


def _changed(operator: str, relation: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    if operator != "complex_diagonal":
        return vectors + relation if operator == "translation" else vectors * relation
    (a, b), (c, d) = np.split(relation, 2), np.split(vectors, 2, axis=-1)
    return np.concatenate([a * c - b * d, a * d + b * c], -1)


def test_checkpoints_of_openke_and_libkge(tmp_path: Path) -> None:
    """The names of tensors and files as these programs publish them; neither installs here."""
    (tmp_path / "entity2id.txt").write_text("2\nsome one\t1\nq\t0\n")
    (tmp_path / "relation2id.txt").write_text("1\nr\t0\n")
    parts = {
        f"{part}{half}_embeddings.weight": torch.ones(3 - size, 2)
        for part, size in (("ent", 1), ("rel", 2))
        for half in ("_re", "_im")
    }
    torch.save(parts, tmp_path / "model.ckpt")
    convert("openke", tmp_path / "model.ckpt", tmp_path, tmp_path / "openke")
    found = read_embeddings(str(tmp_path / "openke"), None, KINDS)
    assert (found.kind, found.entities, found.relations) == ("complex", ("q", "some one"), ("r",))
    assert found.entity_vectors.shape == (2, 4)

    for part, ids in (("entity", "ab"), ("relation", "r")):
        (tmp_path / f"{part}_ids.del").write_text("".join(f"{number}\t{id_}\n" for number, id_ in enumerate(ids)))
    state = {f"_base_model._{part}_embedder._embeddings.weight": torch.ones(2, 4) for part in ("entity", "relation")}
    config = {"model": "reciprocal_relations_model", "reciprocal_relations_model.base_model.type": "rotate"}
    torch.save({"model": [state, {}], "config": config}, tmp_path / "checkpoint.pt")
    convert("libkge", tmp_path / "checkpoint.pt", tmp_path, tmp_path / "libkge")
    found = read_embeddings(str(tmp_path / "libkge"), None, KINDS)
    assert (found.kind, found.entities, found.reciprocal) == ("rotate", ("a", "b"), True)


def _labels(graph: Graph, triples: np.ndarray) -> list[tuple[str, str, str]]:
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in triples.tolist()]
