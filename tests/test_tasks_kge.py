"""Questions to embeddings of a graph: who and what is asked, and a planted bias that is found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from kge_graphs import SHARES, planted
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.graph import Graph, build, split_at_random
from mitigate.measure.kge import rank_correlation
from mitigate.probe.kge import Attribute
from mitigate.tasks.kge.figures import by_model, profession_table
from mitigate.tasks.kge.mitigation import RelationalBias, change_vectors
from mitigate.tasks.kge.predictions import choose_pairs, predict_professions
from mitigate.tasks.kge.question import Question, Triples, find_question, triples_of
from mitigate.tasks.kge.training import change_scores, changes, open_embeddings, train_embeddings
from mitigate.train.kge import Settings
from models.kge import KINDS, DotProduct, Embeddings

SETTINGS = Settings(max_epochs=30, evaluate_every=10, batch_size=200, chunk_size=200, negatives=64)
SHAPE = {"kind": "transe", "dimension": 16, "deviation": 1e-3}
VALUES = ["q_male", "q_female"]


def graph_of(triples: list[tuple[str, str, str]], names: dict[str, str] | None = None) -> Graph:
    return build(split_at_random(triples, 1), names or {}, {})


def question_of(graph: Graph, values: list[str] = VALUES, fewest: int = 20) -> Question:
    return find_question(graph, ["r_gender"], values, "r_job", fewest)


def small() -> Graph:
    """Eight people; p6 and p7 have another gender, and the smiths have two ids of one name."""
    genders = ["q_male"] * 3 + ["q_female"] * 3 + ["q_other"] * 2
    jobs = ["q_smith", "q_smith2", "q_nurse", "q_nurse", "q_nurse", "q_smith2", "q_cook", "q_smith"]
    train = [(f"p{n}", "r_gender", gender) for n, gender in enumerate(genders)]
    train += [(f"p{n}", "r_job", job) for n, job in enumerate(jobs)]
    splits = {"train": train, "valid": [("p0", "r_job", "q_cook")], "test": [("p5", "r_job", "q_nurse")]}
    return build(splits, {"q_smith": "smith", "q_smith2": "smith", "q_male": "Male"}, {"r_job": "job"})


def test_counts_are_of_people_in_all_splits_and_ids_of_one_name_are_one_profession():
    question = find_question(small(), ["r_gender"], ["male", "q_female"], "job", 1)
    expected = [("q_cook", 1, 1, 0), ("q_nurse", 4, 1, 3), ("smith", 3, 2, 1)]  # p6, of another gender, does not count
    assert question.professions.select("profession", "people", "of_a", "of_b").rows() == expected
    assert question.professions["unknown"].to_list() == [0, 0, 0]
    assert question.values.rows() == [("Male", 3), ("q_female", 3), ("q_other", 2), ("unknown", 0)]
    assert question.places.tolist() == [0, 1, 2, 2]
    assert question.merged(np.array([1.0, 2.0, 3.0, 5.0])).tolist() == [1, 2, 4]
    assert (len(question.group_a), len(question.group_b), len(question.people)) == (3, 3, 8)
    against_all = find_question(small(), ["r_gender"], ["male"], "job", 1)
    assert against_all.names == ("male", "all others")
    assert len(against_all.group_b) == 5
    assert against_all.notices == []
    for fewest, message in (((3,), "with 3 or more people .*: 2;"), ((1, 1), "with 1 or more .*, 1 of each .*: 2;")):
        refuses(MitigateError, message, find_question, small(), ["r_gender"], ["male", "q_female"], "job", *fewest)


def intersection() -> Graph:
    """Small, with a town for all people but p5 and p7; p2 has two."""
    towns = ["q_north", "q_south", "q_north", "q_north", "q_south", None, "q_north", None]
    lived = [(f"p{n}", "r_town", town) for n, town in enumerate(towns) if town] + [("p2", "r_town", "q_south")]
    graph = small()
    splits = {split: named(graph, getattr(graph, split)) for split in ("train", "valid", "test")}
    splits["train"] += [*lived, ("p8", "r_job", "q_cook")]
    return build(splits, dict(zip(graph.entities, graph.entity_names, strict=True)), {"r_job": "job"})


def named(graph: Graph, triples: np.ndarray) -> list[tuple[str, str, str]]:
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in triples.tolist()]


def test_an_intersection_has_the_people_with_both_values_and_unknown_ones_are_counted():
    graph = intersection()
    both, values = ["r_gender", "r_town"], ["male & q_north", "q_female & q_north"]
    question = find_question(graph, both, values, "job", 1)
    groups = [[graph.entities[one] for one in group] for group in (question.group_a, question.group_b)]
    assert groups == [["p0", "p2"], ["p3"]]
    assert question.professions.select("profession", "people", "of_a", "of_b", "unknown").rows() == [
        ("q_cook", 1, 1, 0, 1),  # p8 has neither gender nor town
        ("q_nurse", 2, 1, 1, 1),  # p5 has no town
        ("smith", 1, 1, 0, 2),  # p5 and p7
    ]
    assert question.values.row(0) == ("Male & q_north", 2)
    assert question.values.row(-1) == ("unknown", 3)
    assert question.notices == ["People with a profession and without a value in the graph: 3. They count as unknown."]
    town = question.attributes[1]
    assert town.values.tolist() == town.others.tolist()  # adds nothing to equation 1
    for wrong, message in (
        (["male & q_north"], "must name two values of kge.sensitive=r_gender & r_town"),
        (["male & q_north", "q_female"], "'q_female' must name a value of each of r_gender & r_town, joined by ' & '"),
        (["male & q_north", "male & q_north"], "must name two different values of r_gender & r_town"),
    ):
        refuses(MitigateError, message, find_question, graph, both, wrong, "job", 1)


def test_people_with_both_values_are_in_neither_group_and_counted():
    graph = small()
    both = np.array([[graph.entities.index("p0"), 0, graph.entities.index("q_female")]])
    both[0, 1] = graph.relations.index("r_gender")
    question = find_question(replace(graph, test=np.concatenate([graph.test, both])), ["r_gender"], VALUES, "job", 1)
    assert (len(question.group_a), len(question.group_b), question.sizes) == (2, 3, (3, 4))
    assert question.notices[0].startswith("People with both q_male and q_female: 1. They count in both columns")
    assert question.professions.row(0) == ("q_cook", 1, 1, 1, 0, 0.0)


@pytest.mark.parametrize(
    ("sensitive", "values", "occupation", "message"),
    [
        ("r_gander", VALUES, "job", "kge.sensitive=r_gander: unknown relation 'r_gander'.*did you mean r_gender"),
        ("r_gender", ["man", "q_female"], "job", "no person in the graph has 'man' as r_gender; the most frequent"),
        ("r_gender", ["Mael", "q_female"], "job", "; did you mean Male?"),
        ("r_gender", ["male", "q_male"], "job", r"kge.values=\[male,q_male\] must name two different values"),
        ("r_gender", ["a", "b", "c"], "job", r"kge.values=\[a,b,c\] must name one value or two"),
        ("r_gender", VALUES, "r_gender", "are the same relation, r_gender"),
    ],
)
def test_wrong_questions_are_named(sensitive, values, occupation, message):
    refuses(MitigateError, message, find_question, small(), [sensitive], values, occupation, 1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Triples, Question, Path]:
    """Two trainings on a planted graph."""
    graph, folder = graph_of(planted()), tmp_path_factory.mktemp("run")
    triples, question = triples_of(graph), question_of(graph)
    how = {"folder": folder, "accelerator": "cpu"}
    for seed in (1, 2):
        settings = replace(SETTINGS, seed=seed)
        train_embeddings(triples, SHAPE, settings, f"seed_{seed}", fingerprint=str(seed), **how)
    return triples, question, folder


NAMES = ["seed_1", "seed_2"]


def test_a_planted_bias_is_found(trained):
    _, question, folder = trained
    found = change_scores(question, NAMES, 0.01, folder=folder)
    ratios = question.professions["log_ratio"].to_numpy()
    assert min(rank_correlation(row, ratios) for row in by_model(found)) > 0.7
    table = profession_table(question, found)
    assert set(table["profession"].head(3)) == {f"q_{name}" for name in list(SHARES)[:3]}
    assert (table["change"].head(3) > 0).all()
    assert (table["change"].tail(3) < 0).all()
    assert (table["of_a"].head(3) > table["of_b"].head(3)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_projecting_out_makes_equation_1_zero_with_a_dot_product(kind, trained, tmp_path):
    _, question, _ = trained
    torch.manual_seed(0)
    Embeddings(kind, 400, 3, 8, init=1.0).save(tmp_path / "embeddings" / "a")
    found = change_vectors("project", question, ["a"], 1, folder=tmp_path)
    before, after = (changes(open_embeddings(tmp_path, name), question, 0.01)[0] for name in ("a", "projected_a"))
    assert np.abs(before).min() > 1e-5
    assert 0 < found["people_moved"] < 50
    if issubclass(KINDS[kind].interaction, DotProduct):
        assert np.abs(after).max() < 1e-6


def test_the_penalty_is_the_bias_of_paths_over_the_distance_of_values():
    # DistMult in one dimension: gender 2, male 3, female 1; profession 5, nurse 7: paths (6 - 2) * 35, distance 2.
    model = Embeddings("distmult", entities=3, relations=2, dimension=1)
    with torch.no_grad():
        model.entities.copy_(torch.tensor([[3.0], [1.0], [0.007]]))
        model.relations.copy_(torch.tensor([[2.0], [5.0]]))
    gender = Attribute(0, np.array([0]), np.array([1]))
    penalty = RelationalBias((gender,), 1, np.array([2]), 10.0)(model)
    logistic = [1 / (1 + np.exp(-value)) for value in ((6 - 2) * 5 * 0.007, 2)]
    assert penalty.item() == pytest.approx(10 * logistic[0] / logistic[1])
    penalty.backward()
    assert model.entities.grad.isfinite().all()


def test_the_control_moves_each_vector_as_far_as_the_projection(trained, tmp_path):
    _, question, folder = trained
    plain = open_embeddings(folder, "seed_1")
    plain.save(tmp_path / "embeddings" / "a")
    for mitigation in ("project", "perturb"):
        change_vectors(mitigation, question, ["a"], 1, folder=tmp_path)
    projected, perturbed = (
        (open_embeddings(tmp_path, f"{name}_a").entities - plain.entities).norm(dim=1).detach()
        for name in ("projected", "perturbed")
    )
    assert projected.sum() > 0
    assert torch.allclose(projected, perturbed, rtol=1e-3, atol=1e-5)


def test_predictions_leave_out_what_training_triples_have(trained):
    triples, question, folder = trained
    predictions = predict_professions(triples, question, NAMES[:1], folder=folder)
    entity = {place: entity for entity, place in zip(question.entities.tolist(), question.places.tolist(), strict=True)}
    known = {(head, tail) for head, relation, tail in triples.train.tolist() if relation == question.occupation}
    predicted = predictions.select("person", "predicted").rows()
    assert not {(person, entity[place]) for person, place in predicted} & known


def test_people_are_named_in_pairs_and_relations_lead_from_people_to_values():
    graph = small()
    question = find_question(graph, ["r_gender"], ["male", "q_female"], "job", 1)
    triples = triples_of(graph)
    (pair,) = choose_pairs(graph, triples, question, ["p1", "p4"])
    assert (pair.name_a, pair.name_b) == ("p1", "p4")
    swapped = "p4, in place 1, does not have value a alone"
    refuses(MitigateError, swapped, choose_pairs, graph, triples, question, ["p4", "p1"])
    backwards = [("q_male", "r_has", f"p{n}") for n in range(9)] + [(f"p{n}", "r_job", "q_cook") for n in range(9)]
    direction = "it must be a relation from people to values"
    refuses(MitigateError, direction, find_question, graph_of(backwards), ["r_has"], ["p1", "p2"], "r_job", 1)
