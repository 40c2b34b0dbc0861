"""Figures of embeddings by hand: equation 1, parity and leakage; test_tasks_kge.py has a planted bias."""

import numpy as np
import polars as pl
import pytest
import torch
from refusals import refuses

from mitigate.measure.kge import (
    PROBES,
    agreement,
    amplification,
    attribute_direction,
    change_of_scores,
    distance_by_chance,
    leakage,
    leakage_by_chance,
    log_count_ratio,
    over_seeds,
    over_trainings,
    parity_distance,
    predictive_parity,
    rank_correlation,
    shared_ends,
    shares_of_groups,
)
from mitigate.probe.kge import Attribute, Query, nudge, weights
from models.kge import KINDS, DotProduct, Embeddings

DOT_PRODUCTS = [kind for kind in KINDS if issubclass(KINDS[kind].interaction, DotProduct)]
IDS = np.array([0, 1])  # two ids of one value
QUERY = Query(np.arange(5, 20), [Attribute(0, IDS, np.array([2]))], 1, professions=np.array([3, 4, 20]))


def network(kind: str, scale: float = 1.0) -> Embeddings:
    torch.manual_seed(0)
    return Embeddings(kind, entities=25, relations=2, dimension=6, init=scale)


INTERSECTION = QUERY._replace(attributes=[*QUERY.attributes, Attribute(1, np.array([3]), np.array([4, 7]))])


def closed_form(model: Embeddings, query: Query, step: float) -> np.ndarray:
    directions = []
    for relation, values, others in query.attributes:
        of_values = weights(model, relation, np.concatenate([values, others]))
        is_value = np.arange(len(of_values)) < len(values)
        directions.append(attribute_direction(of_values, is_value, ~is_value))
    return change_of_scores(weights(model, query.occupation, query.professions), np.sum(directions, axis=0), step)


def change_by_distance(people, values, professions, relations, step: float) -> np.ndarray:
    """Equation 1 in closed form for the score -||head + relation - tail||: of every person (n, dimension) the change of
    each profession's score (p, dimension), (n, p).

    values: the vectors of a and b; relations: those of the attribute and of professions. The gradient of m is the
    direction to a minus the direction to b, both of length 1, so that people change differently."""
    to_a, to_b = (unit(value - people - relations[0]) for value in values)
    moved = people + step * (to_a - to_b)
    return distances(people + relations[1], professions) - distances(moved + relations[1], professions)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:  # (n, p)
    return np.linalg.norm(others - points[:, None], axis=-1)


def test_a_change_by_hand():
    # DistMult, one dimension: gender 2, male 3, female 1; profession 5, nurse 7. A person moves by .01 * (6 - 2).
    model = Embeddings("distmult", entities=4, relations=2, dimension=1)
    with torch.no_grad():
        model.entities.copy_(torch.tensor([[3.0], [1.0], [7.0], [100.0]]))
        model.relations.copy_(torch.tensor([[2.0], [5.0]]))
    query = Query(np.array([3]), [Attribute(0, np.array([0]), np.array([1]))], 1, np.array([2]))
    assert closed_form(model, query, 0.01).tolist() == [pytest.approx(0.04 * 5 * 7)]
    assert nudge(model, query).mean.tolist() == [pytest.approx(0.04 * 5 * 7)]


@pytest.mark.parametrize("query", [QUERY, INTERSECTION])
@pytest.mark.parametrize("kind", DOT_PRODUCTS)
def test_closed_form_and_autograd_agree_and_everyone_changes_alike(kind, query):
    model = network(kind)
    found = nudge(model, query, step=0.5)
    assert found.mean == pytest.approx(closed_form(model, query, 0.5))
    assert np.abs(found.mean).min() > 1e-3
    assert found.deviation == pytest.approx(0, abs=1e-6)


def test_with_a_distance_people_change_differently(monkeypatch):
    model = network("transe_l2")
    query = QUERY._replace(attributes=[Attribute(0, np.array([0]), np.array([2]))])
    entities, relations = (vectors.detach().double().numpy() for vectors in (model.entities, model.relations))
    values = (entities[0], entities[2])
    by_person = change_by_distance(entities[query.people], values, entities[query.professions], relations, step=0.5)
    found = nudge(model, query, step=0.5)
    assert (found.mean, found.deviation) == (pytest.approx(by_person.mean(0)), pytest.approx(by_person.std(0)))
    assert found.deviation.min() > 0.01
    refuses(ValueError, "transe_l2 is not a dot product", weights, model, 0, np.array([0]))
    whole = nudge(model, QUERY)
    monkeypatch.setattr("mitigate.probe.kge.PEOPLE", 4)
    parts = nudge(model, QUERY)
    assert (parts.mean, parts.deviation) == (pytest.approx(whole.mean), pytest.approx(whole.deviation))


def test_ratios_of_counts_rank_correlation_and_rankings_that_agree():
    assert log_count_ratio(np.array([2, 0, 1]), np.array([1, 0, 0])) == pytest.approx(np.log([2.5 / 1.5, 1, 3]))
    assert rank_correlation(np.array([0.1, 0.2, 0.9]), np.array([-5, 0, 1])) == pytest.approx(1)
    assert rank_correlation(np.array([0.1, 0.2, 0.9]), np.array([1, 0, -1])) == pytest.approx(-1)
    assert rank_correlation(np.array([0.1, 0.1, 0.1]), np.array([1, 0, -1])) is None
    assert rank_correlation(np.array([0.1, 0.2]), np.array([1, 0])) is None
    none = np.zeros(3, dtype=bool)
    refuses(ValueError, "both values need an entity", attribute_direction, np.ones((3, 2)), ~none, none)
    up = np.array([1.0, 2, 3, 4])
    assert agreement(np.stack([up, 10 * up])) == pytest.approx(1)
    assert agreement(np.stack([up, -up, up])) == pytest.approx(-1 / 3)  # 1, -1 and -1
    assert agreement(up[None]) is None
    assert agreement(np.stack([up, np.ones(4)])) is None
    assert shared_ends(np.stack([up, np.array([2.0, 1, 4, 3])]), 2) == 1
    assert shared_ends(np.stack([up, -up]), 1) == 0


IS_A = np.array([True] * 4 + [False] * 2)


def test_intervals_over_seeds():
    found = over_seeds(np.array([1.0, 2.0, 3.0]))
    assert found.mean == 2
    assert found.high - 2 == pytest.approx(4.30265 / np.sqrt(3), rel=1e-4)  # Student's t with 2 degrees of freedom
    one = over_seeds(np.array([[1.0, 5.0]]))
    assert one.mean.tolist() == [1, 5]
    assert np.isnan(one.low).all()
    table = pl.DataFrame({"mrr": [0.1, 0.2, 0.9], "one": [None, 0.2, 0.9]})
    clipped = over_trainings(table, "mrr", 0, 1)
    assert (clipped.value, clipped.interval()) == (pytest.approx(0.4), (0, 1))  # 0.4 +- 1.08
    assert over_trainings(table, "one", 0, 1).value is None
    assert np.isnan(over_seeds(np.array([20.0, 20.0])).low)  # the same value: the next need not have it


def test_parity_and_amplification_by_hand():
    predicted = np.array([0, 0, 0, 1, 1, 1])
    first, second = shares_of_groups(predicted, IS_A, 3)
    assert first.tolist() == [75, 25, 0]
    assert second.tolist() == [0, 100, 0]
    assert parity_distance(predicted, IS_A, 3) == 75
    assert parity_distance(np.zeros(6, dtype=int), IS_A, 3) == 0
    assert 0 < distance_by_chance(predicted, IS_A, 3, 50, seed=0) < 75
    refuses(ValueError, "both groups need people", parity_distance, predicted, np.ones(6, dtype=bool), 3)
    is_a = np.arange(12) < 6
    is_right = np.array([1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    assert predictive_parity(is_right, is_a) == pytest.approx(100 * (1 / 2 - 1 / 6))
    assert predictive_parity(is_right[3:], is_a[3:]) is None
    of_a, of_b = np.array([6, 4]), np.array([4, 6])  # shares of a: 60 % and 40 %, of all 50 %
    predicted = np.repeat([0, 1], 10)
    as_in_graph = np.concatenate([np.arange(10) < 6, np.arange(10) < 4])
    more = np.concatenate([np.arange(10) < 8, np.arange(10) < 1])
    assert amplification(predicted, as_in_graph, of_a, of_b) == pytest.approx(0)
    assert amplification(predicted, more, of_a, of_b) == pytest.approx((20 + 30) / 2)
    assert amplification(predicted, ~more, of_a, of_b) == pytest.approx(-(40 + 50) / 2)
    assert amplification(predicted[:3], more[:3], of_a, of_b) is None


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_finds_what_is_there_and_nothing_else(probe):
    rng = np.random.default_rng(0)
    is_a, groups = np.arange(200) % 2 == 0, rng.integers(20, size=200)
    vectors = rng.normal(size=(200, 6))
    assert 0.3 < leakage(vectors, is_a, groups, probe, seed=1) < 0.7
    vectors[:, 0] += 3 * is_a
    assert leakage(vectors, is_a, groups, probe, seed=1) > 0.95
    assert 0.3 < leakage_by_chance(vectors, is_a, groups, probe, seed=1) < 0.7


def test_a_circle_needs_the_nonlinear_probe_and_groups_share_a_fold():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(300, 2))
    is_a = (vectors**2).sum(1) < 1.4
    found = {probe: leakage(vectors, is_a, np.arange(300), probe, seed=1) for probe in PROBES}
    assert found["nonlinear"] > 0.95
    assert found["linear"] < 0.65
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 10)
    is_a = np.repeat(rng.permutation(20) < 10, 10)
    vectors = np.eye(20)[groups]
    assert leakage(vectors, is_a, np.arange(200), "linear", seed=1) > 0.95
    assert leakage(vectors, is_a, groups, "linear", seed=1) < 0.7
    assert leakage(np.ones((12, 2)), np.arange(12) < 6, np.arange(12), "linear", seed=1) is None
