"""Knowledge-graph embeddings: who and what is asked, equation 1 by hand, mitigations with their controls, and a planted
bias that is found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from kge_graphs import SHARES, planted
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.graph import Graph, build, split_at_random
from mitigate.measure.kge import (
    agreement,
    by_model,
    distance_by_chance,
    log_count_ratio,
    over_seeds,
    over_trainings,
    parity_distance,
)
from mitigate.models.kge import KINDS, DotProduct, Embeddings
from mitigate.studies import kge
from mitigate.studies.kge import Question, changes_of, find_question, penalty_of, profession_table, project
from mitigate.train.kge import Settings

SETTINGS = Settings(max_epochs=30, evaluate_every=10, batch_size=200, negatives=64)
VALUES = ["q_male", "q_female"]


def question_of(graph: Graph, values: list[str] = VALUES, fewest: int = 1, **changed: str) -> Question:
    given = {"sensitive": "r_gender", "occupation": "r_job", **changed}
    return find_question(graph, {"sex": "r_gender"}, values=values, fewest=fewest, **given)


def small(*more: tuple[str, str, str]) -> Graph:
    """Eight people; p6 and p7 have another gender, and the smiths have two ids of one name."""
    genders = ["q_male"] * 3 + ["q_female"] * 3 + ["q_other"] * 2
    jobs = ["q_smith", "q_smith2", "q_nurse", "q_nurse", "q_nurse", "q_smith2", "q_cook", "q_smith"]
    train = [(f"p{n}", "r_gender", gender) for n, gender in enumerate(genders)]
    train += [(f"p{n}", "r_job", job) for n, job in enumerate(jobs)]
    splits = {"train": train, "valid": [("p0", "r_job", "q_cook")], "test": [("p5", "r_job", "q_nurse"), *more]}
    return build(splits, {"q_smith": "smith", "q_smith2": "smith", "q_male": "Male"}, {"r_job": "job"})


def test_counts_are_of_people_in_all_splits_and_ids_of_one_name_are_one_profession():
    question = question_of(small(), ["male", "q_female"], sensitive="sex", occupation="job")
    expected = [("q_cook", 1, 1, 0), ("q_nurse", 4, 1, 3), ("smith", 3, 2, 1)]  # p6, of another gender, does not count
    assert question.professions.select("profession", "people", "of_a", "of_b").rows() == expected
    assert question.places.tolist() == [0, 1, 2, 2]
    assert (len(question.group_a), len(question.group_b), len(question.people)) == (3, 3, 8)
    assert question.notices == []
    against_all = question_of(small(), ["male"])
    assert against_all.names == ("male", "all others")
    assert len(against_all.group_b) == 5
    graph = small(*((f"p{n}", "r_gender", "q_male") for n in (3, 4, 5)))
    refuses(MitigateError, "everybody with one of these values has the other too", question_of, graph)


@pytest.mark.parametrize(
    ("message", "changed"),
    [
        ("kge.sensitive: the graph has no relation 'r_gander'; did you mean r_gender", {"sensitive": "r_gander"}),
        ("kge.values: the graph has no entity 'Mael'; did you mean Male?", {"values": ["Mael", "q_female"]}),
        ("no person in the graph has 'q_cook' as r_gender; the most frequent values: ", {"values": ["q_cook"]}),
        (r"kge.values=\[male,q_male\] must name two different values", {"values": ["male", "q_male"]}),
        (r"kge.values=\[a,b,c\] must name one value or two", {"values": ["a", "b", "c"]}),
        ("it must be another relation, from people to values", {"occupation": "r_gender"}),
        ("with 3 or more people of the two values .*: 2; at least 3", {"fewest": 3}),
    ],
)
def test_wrong_questions_are_named(message, changed):
    refuses(MitigateError, message, question_of, small(), **changed)


def asked(kind: str) -> tuple[Embeddings, Question]:
    """Vectors at random, and a question about them: two ids are value a."""
    torch.manual_seed(0)
    question = question_of(small())
    question = replace(question, a=np.array([9, 10]), b=np.array([12]), relation=0, occupation=1)
    return Embeddings(kind, 15, 2, 6, init=1.0), question


def test_a_change_by_hand():
    # DistMult, one dimension: gender 2, male 3, female 1; the relation to professions 5. People move by .01 * (6 - 2).
    model = Embeddings("distmult", entities=15, relations=2, dimension=1)
    question = replace(asked("distmult")[1], a=np.array([0]), b=np.array([1]))
    with torch.no_grad():
        model.relations.copy_(torch.tensor([[2.0], [5.0]]))
        model.entities[:] = 100.0
        model.entities[:2] = torch.tensor([[3.0], [1.0]])
        model.entities[question.entities] = torch.tensor([[7.0], [5.0], [4.0], [6.0]])  # the last two are smiths
    assert changes_of(model, question).tolist() == pytest.approx([0.04 * 5 * 7, 0.04 * 5 * 5, 0.04 * 5 * 5])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(KINDS[kind], DotProduct)])
def test_with_a_dot_product_the_change_is_a_product_of_gradients(kind):
    model, question = asked(kind)
    vectors, relations = model.entities.detach(), model.relations.detach()

    def weights(entities: np.ndarray, relation: int) -> torch.Tensor:
        return model.interaction.transform_tails(relations[relation].expand(len(entities), -1), vectors[entities])

    direction = weights(question.a, 0).mean(0) - weights(question.b, 0).mean(0)
    single = kge.STEP * weights(question.entities, 1) @ direction
    merged = np.bincount(question.places, single.numpy()) / np.bincount(question.places)
    assert changes_of(model, question) == pytest.approx(merged, rel=1e-4)


def test_the_penalty_is_the_bias_of_paths_over_the_distance_of_values_and_its_control_has_other_values():
    # DistMult in one dimension: gender 2, male 3, female 1; profession 5, nurse 7: paths (6 - 2) * 35, distance 2.
    model = Embeddings("distmult", entities=3, relations=2, dimension=1)
    with torch.no_grad():
        model.entities.copy_(torch.tensor([[3.0], [1.0], [0.007]]))
        model.relations.copy_(torch.tensor([[2.0], [5.0]]))
    _, question = asked("distmult")
    question = replace(question, a=np.array([0]), b=np.array([1]), entities=np.array([2]))
    penalty = penalty_of(question, 3, 1, is_control=False)(model)
    logistic = [1 / (1 + np.exp(-value)) for value in ((6 - 2) * 5 * 0.007, 2)]
    assert penalty.item() == pytest.approx(logistic[0] / logistic[1])
    penalty.backward()
    assert model.entities.grad.isfinite().all()
    control = penalty_of(replace(question, a=np.array([0, 1]), b=np.array([2])), 15, 1, is_control=True)
    assert (len(control.a), len(control.b), len({*control.a, *control.b, 0, 1, 2})) == (2, 1, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_projecting_out_makes_equation_1_zero_with_a_dot_product_and_the_control_moves_as_far(kind, tmp_path):
    model, question = asked(kind)
    model.save(tmp_path / "embeddings" / "x")
    for variant, is_control in (("projected", False), ("perturbed", True)):
        found = project(question, ["x"], variant, 1, is_control, folder=tmp_path)
        assert 0 < found["people_moved"] < 70
    projected, perturbed = (
        Embeddings.load(tmp_path / "embeddings" / f"{name}_x") for name in ("projected", "perturbed")
    )
    assert np.abs(changes_of(model, question)).max() > 1e-5
    if issubclass(KINDS[kind], DotProduct):
        assert np.abs(changes_of(projected, question)).max() < 1e-6
    moved, at_random = ((one.entities - model.entities).norm(dim=1) for one in (projected, perturbed))
    assert moved.sum() > 0
    torch.testing.assert_close(moved, at_random, rtol=1e-3, atol=1e-5)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Graph, Question, Path]:
    """Two trainings on a planted graph."""
    graph, folder = build(split_at_random(planted(), 1), {}, {}), tmp_path_factory.mktemp("run")
    for seed in (1, 2):
        given = (graph, ("transe", 16, 1e-3), replace(SETTINGS, seed=seed), f"seed_{seed}")
        kge.train_embeddings(*given, folder=folder, fingerprint=str(seed))
    return graph, question_of(graph, fewest=20), folder


def test_a_planted_bias_is_found(trained):
    graph, question, folder = trained
    found = kge.change_scores(question, ["seed_1", "seed_2"], folder=folder)
    ratios = question.professions["log_ratio"].to_numpy()
    correlations = [agreement(np.stack([row, ratios])) for row in by_model(found)]
    assert min(correlations) > 0.7
    table = profession_table(question, found)
    assert set(table["profession"].head(3)) == {f"q_{name}" for name in list(SHARES)[:3]}
    assert (table["change"].head(3) > 0).all()
    assert (table["change"].tail(3) < 0).all()
    assert (table["of_a"].head(3) > table["of_b"].head(3)).all()
    rows = kge.measure_trainings(graph, question, ["seed_1", "seed_2"], 1, folder=folder)
    assert rows["rank_correlation"].to_list() == pytest.approx(correlations)
    assert (rows["parity"] > rows["parity_by_chance"]).all()


def test_ratios_of_counts_rank_correlation_and_rankings_that_agree():
    assert log_count_ratio(np.array([2, 0, 1]), np.array([1, 0, 0])) == pytest.approx(np.log([2.5 / 1.5, 1, 3]))
    assert agreement(np.array([[0.1, 0.2, 0.9], [-5, 0, 1]])) == pytest.approx(1)
    assert agreement(np.array([[0.1, 0.2, 0.9], [1, 0, -1]])) == pytest.approx(-1)
    assert agreement(np.array([[0.1, 0.1, 0.1], [1, 0, -1]])) is None
    assert agreement(np.array([[0.1, 0.2], [1, 0]])) is None
    up = np.array([1.0, 2, 3, 4])
    assert agreement(np.stack([up, -up, up])) == pytest.approx(-1 / 3)  # 1, -1 and -1
    assert agreement(up[None]) is None


def test_intervals_over_seeds():
    mean, low, high = over_seeds(np.array([1.0, 2.0, 3.0]))
    assert (mean, high - 2) == (2, pytest.approx(4.30265 / np.sqrt(3), rel=1e-4))  # Student's t, 2 degrees of freedom
    assert 2 - low == pytest.approx(high - 2)
    assert np.isnan(over_seeds(np.array([[1.0, 5.0]]))[1]).all()
    assert np.isnan(over_seeds(np.array([20.0, 20.0]))[1])  # the same value: the next need not have it
    table = pl.DataFrame({"mrr": [0.1, 0.2, 0.9], "one": [None, 0.2, 0.9]})
    clipped = over_trainings(table, "mrr", 0, 1)
    assert (clipped.value, clipped.interval()) == (pytest.approx(0.4), (0, 1))  # 0.4 +- 1.08
    assert over_trainings(table, "one", 0, 1).value is None


def test_parity_by_hand():
    predicted, is_a = np.array([0, 0, 0, 1, 1, 1]), np.arange(6) < 4
    assert parity_distance(predicted, is_a, 3) == 75  # 75, 25 and 0 % beside 0, 100 and 0 %
    assert parity_distance(np.zeros(6, dtype=int), is_a, 3) == 0
    assert 0 < distance_by_chance(predicted, is_a, 3, 50, seed=0) < 75
