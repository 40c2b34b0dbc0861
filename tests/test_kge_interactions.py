"""Interactions of knowledge-graph embeddings: scores by hand, and their parts against each other."""

import pytest
import torch

from models.kge.embeddings import KINDS, Embeddings
from models.kge.interaction import DotProduct

HEAD, RELATION, TAIL = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]]), torch.tensor([[7.0, 11.0]])
BY_HAND = {
    "transe": (1 + 3) * 7 + (2 + 5) * 11,
    "transe_l2": -(((1 + 3 - 7) ** 2 + (2 + 5 - 11) ** 2) ** 0.5),
    "distmult": 1 * 3 * 7 + 2 * 5 * 11,
    "complex": ((1 + 2j) * (3 + 5j) * (7 - 11j)).real,
    "complex_n3": ((1 + 2j) * (3 + 5j) * (7 - 11j)).real,
}


def network(kind: str) -> Embeddings:
    torch.manual_seed(0)
    return Embeddings(kind, entities=7, relations=3, dimension=4, init=1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_by_hand(kind):
    interaction = KINDS[kind].interaction()
    assert interaction.score(HEAD, RELATION, TAIL).item() == pytest.approx(BY_HAND[kind])
    assert interaction.tails(HEAD, RELATION, TAIL).tolist() == [[pytest.approx(BY_HAND[kind])]]
    assert interaction.heads(RELATION, TAIL, HEAD).tolist() == [[pytest.approx(BY_HAND[kind])]]


@pytest.mark.parametrize("kind", KINDS)
def test_all_entities_are_scored_as_triples_are(kind):
    model = network(kind)
    heads, relations, tails = torch.tensor([0, 4, 6]), torch.tensor([2, 0, 1]), torch.tensor([5, 5, 1])
    reversed_too = (tails, relations + 3, heads) if kind == "complex_n3" else (heads, relations, tails)
    rows = range(3)
    of_tails, of_heads = model.tails(heads, relations), model.heads(relations, tails)
    assert torch.allclose(of_tails[rows, tails], model.score(heads, relations, tails), atol=1e-5)
    assert torch.allclose(of_heads[rows, heads], model.score(*reversed_too), atol=1e-5)
    chosen = torch.tensor([3, 1])
    by_tail, by_head = model.beside(torch.stack([heads, relations, tails], 1), chosen)
    assert torch.allclose(by_tail[0], of_tails[rows, tails], atol=1e-5)
    assert torch.allclose(by_tail[1], of_tails[:, chosen], atol=1e-5)
    assert torch.allclose(by_head[0], of_heads[rows, heads], atol=1e-5)
    assert torch.allclose(by_head[1], of_heads[:, chosen], atol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(KINDS[kind].interaction, DotProduct)])
def test_the_weight_is_the_gradient_by_the_head(kind):
    interaction = KINDS[kind].interaction()
    head = torch.randn(5, 4, requires_grad=True)
    relation, tail = torch.randn(5, 4), torch.randn(5, 4)
    score = interaction.score(head, relation, tail)
    (gradient,) = torch.autograd.grad(score.sum(), head)
    weight = interaction.weight(relation, tail)
    assert torch.allclose(weight, gradient, atol=1e-6)
    assert torch.allclose((weight * head).sum(1) + interaction.offset(relation, tail), score, atol=1e-5)


def test_moduli():
    pair = torch.tensor([[3.0, -1.0, 4.0, 0.0]])  # 3 + 4i and -1
    assert KINDS["complex"].interaction().moduli(pair).tolist() == [[5, 1]]
    assert KINDS["distmult"].interaction().moduli(pair).tolist() == [[3, 1, 4, 0]]


@pytest.mark.parametrize("kind", ["complex", "transe_l2"])
def test_gradients_are_finite_where_vectors_are_zero(kind):
    model = network(kind)
    with torch.no_grad():
        for vectors in model.parameters():
            vectors.zero_()
    numbers = torch.zeros(1, dtype=torch.long)
    cubes = model.interaction.moduli(model.entities).pow(3).sum()
    (model.score(numbers, numbers, numbers).sum() + model.tails(numbers, numbers).sum() + cubes).backward()
    assert model.entities.grad.isfinite().all()


def test_reciprocal_relations_score_heads_as_tails():
    model = network("complex_n3")
    assert model.relations.shape == (6, 4)
    one, two = torch.tensor([1]), torch.tensor([2])
    assert torch.equal(model.heads(one, two), model.tails(two, one + 3))
    assert network("complex").relations.shape == (3, 4)


def test_a_saved_model_is_loaded_again(tmp_path):
    model = network("complex_n3")
    model.save(tmp_path / "model")
    again = Embeddings.load(tmp_path / "model")
    assert again.facts == {"kind": "complex_n3", "entities": 7, "relations": 3, "dimension": 4}
    assert torch.equal(again.entities, model.entities)
    assert torch.equal(again.relations, model.relations)


def test_impossible_shapes():
    with pytest.raises(ValueError, match="dimension=3 must be even"):
        Embeddings("complex", 2, 1, 3)
    with pytest.raises(ValueError, match="unknown kind 'rotate'; allowed: transe, complex"):
        Embeddings("rotate", 2, 1, 4)
