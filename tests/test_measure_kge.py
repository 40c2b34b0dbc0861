"""Equation 1: closed forms against autograd, the same change for everyone with a dot product, and a planted bias."""

import numpy as np
import pytest
import torch

from mitigate.measure.kge import (
    attribute_direction,
    change_of_scores,
    log_count_ratio,
    rank_correlation,
)
from mitigate.probe.kge import Asked, nudge, weights
from mitigate.train import harness
from mitigate.train.kge import fit
from mitigate.train.kge_settings import Settings
from models.kge.embeddings import KINDS, Embeddings
from models.kge.interaction import DotProduct

DOT_PRODUCTS = [kind for kind in KINDS if issubclass(KINDS[kind].interaction, DotProduct)]
ASKED = Asked(
    people=np.arange(5, 20),
    attribute=0,
    values=np.array([0, 1]),  # two ids of one value
    others=np.array([2]),
    occupation=1,
    professions=np.array([3, 4, 20]),
)


def network(kind: str, scale: float = 1.0) -> Embeddings:
    torch.manual_seed(0)
    return Embeddings(kind, entities=25, relations=2, dimension=6, init=scale)


def closed_form(model: Embeddings, asked: Asked, step: float) -> np.ndarray:
    of_values = weights(model, asked.attribute, np.concatenate([asked.values, asked.others]))
    is_value = np.arange(len(of_values)) < len(asked.values)
    direction = attribute_direction(of_values, is_value, ~is_value)
    return change_of_scores(weights(model, asked.occupation, asked.professions), direction, step)


def change_by_distance(
    people: np.ndarray,
    values: tuple[np.ndarray, np.ndarray],
    professions: np.ndarray,
    relations: tuple[np.ndarray, np.ndarray],
    step: float,
) -> np.ndarray:
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
    asked = Asked(np.array([3]), 0, np.array([0]), np.array([1]), 1, np.array([2]))
    assert closed_form(model, asked, 0.01).tolist() == [pytest.approx(0.04 * 5 * 7)]
    assert nudge(model, asked).mean.tolist() == [pytest.approx(0.04 * 5 * 7)]


@pytest.mark.parametrize("kind", DOT_PRODUCTS)
def test_closed_form_and_autograd_agree_and_everyone_changes_alike(kind):
    model = network(kind)
    found = nudge(model, ASKED, step=0.5)
    assert found.mean == pytest.approx(closed_form(model, ASKED, 0.5))
    assert np.abs(found.mean).min() > 1e-3
    assert found.deviation == pytest.approx(0, abs=1e-6)


def test_with_a_distance_people_change_differently_and_closed_form_and_autograd_agree():
    model = network("transe_l2")
    asked = ASKED._replace(values=np.array([0]))
    entities, relations = (vectors.detach().double().numpy() for vectors in (model.entities, model.relations))
    by_person = change_by_distance(
        entities[asked.people],
        (entities[0], entities[2]),
        entities[asked.professions],
        (relations[0], relations[1]),
        step=0.5,
    )
    found = nudge(model, asked, step=0.5)
    assert found.mean == pytest.approx(by_person.mean(0))
    assert found.deviation == pytest.approx(by_person.std(0))
    assert found.deviation.min() > 0.01
    with pytest.raises(ValueError, match="transe_l2 is no dot product"):
        weights(model, 0, np.array([0]))


def test_people_are_nudged_in_parts_with_the_same_result(monkeypatch):
    model = network("transe_l2")
    whole = nudge(model, ASKED)
    monkeypatch.setattr("mitigate.probe.kge.PEOPLE", 4)
    parts = nudge(model, ASKED)
    assert parts.mean == pytest.approx(whole.mean)
    assert parts.deviation == pytest.approx(whole.deviation)


def test_ratio_of_counts():
    assert log_count_ratio(np.array([2, 0, 1]), np.array([1, 0, 0])) == pytest.approx(np.log([2.5 / 1.5, 1, 3]))


def test_rank_correlation():
    assert rank_correlation(np.array([0.1, 0.2, 0.9]), np.array([-5, 0, 1])) == pytest.approx(1)
    assert rank_correlation(np.array([0.1, 0.2, 0.9]), np.array([1, 0, -1])) == pytest.approx(-1)
    assert rank_correlation(np.array([0.1, 0.1, 0.1]), np.array([1, 0, -1])) is None
    assert rank_correlation(np.array([0.1, 0.2]), np.array([1, 0])) is None


def test_both_values_need_an_entity():
    none = np.zeros(3, dtype=bool)
    with pytest.raises(ValueError, match="both values need an entity"):
        attribute_direction(np.ones((3, 2)), ~none, none)


def planted(share: np.ndarray, people: int = 240) -> np.ndarray:
    """People 2 + p ..., the first half of value 0 and the others of value 1. Each has one of p professions 2 ... p + 1;
    share (p,): of the profession's holders that are of value 0."""
    rng = np.random.default_rng(0)
    first = 2 + len(share)
    numbers = np.arange(first, first + people)
    of_b = (np.arange(people) >= people // 2).astype(np.int64)
    chance = np.where(of_b[:, None] == 0, share, 1 - share)
    professions = np.array([rng.choice(len(share), p=row / row.sum()) for row in chance]) + 2
    gender = np.stack([numbers, np.zeros(people, dtype=np.int64), of_b], axis=1)
    return np.concatenate([gender, np.stack([numbers, np.ones(people, dtype=np.int64), professions], axis=1)])


@pytest.mark.parametrize("kind", ["transe", "complex"])
def test_a_planted_bias_has_the_right_sign(kind, tmp_path):
    share = np.array([0.95, 0.9, 0.8, 0.2, 0.1, 0.05])
    triples = planted(share)
    entities = int(triples[:, [0, 2]].max()) + 1
    harness.seed(0)
    model = Embeddings(kind, entities, 2, 16, init=1e-3)
    order = np.random.default_rng(1).permutation(len(triples))
    settings = Settings(max_epochs=30, evaluate_every=15, batch_size=120, chunk_size=120, negatives=64)
    train, valid = triples[order[20:]], triples[order[:20]]
    fit(model, train, valid, triples, settings, tmp_path, fingerprint="a", accelerator="cpu")
    professions = np.arange(2, 2 + len(share))
    people = np.arange(2 + len(share), entities)
    changes = closed_form(model, Asked(people, 0, np.array([0]), np.array([1]), 1, professions), 0.01)
    assert (changes[:3] > 0).all()
    assert (changes[3:] < 0).all()
    of_jobs = triples[triples[:, 1] == 1]
    half = len(people) // 2
    is_a = np.isin(of_jobs[:, 0], people[:half])
    of_a, of_b = (np.bincount(of_jobs[of, 2] - 2, minlength=len(share)) for of in (is_a, ~is_a))
    ratios = log_count_ratio(of_a, of_b)
    assert rank_correlation(changes, ratios) > 0.8
