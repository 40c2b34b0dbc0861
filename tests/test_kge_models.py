"""Embeddings of knowledge graphs: scores, normalisers and filtered ranks, by hand and beside PyKEEN."""

import numpy as np
import pytest
import torch
from refusals import refuses
from torch import Tensor

from mitigate.models.kge import KINDS, DotProduct, Embeddings, filtered_ranks

HEAD, RELATION, TAIL = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]]), torch.tensor([[7.0, 11.0]])
BY_HAND = {
    "transe": (1 + 3) * 7 + (2 + 5) * 11,
    "transe_l2": -(((1 + 3 - 7) ** 2 + (2 + 5 - 11) ** 2) ** 0.5),
    "distmult": 1 * 3 * 7 + 2 * 5 * 11,
    "complex": ((1 + 2j) * (3 + 5j) * (7 - 11j)).real,
    "rotate": -abs((1 + 2j) * (3 + 5j) / abs(3 + 5j) - (7 + 11j)),
}


def network(kind: str) -> Embeddings:
    torch.manual_seed(0)
    return Embeddings(kind, entities=7, relations=3, dimension=4, init=1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_by_hand(kind):
    interaction = KINDS[kind]()
    assert interaction.score(HEAD, RELATION, TAIL).item() == pytest.approx(BY_HAND[kind])
    assert interaction.score_tails(HEAD, RELATION, TAIL).tolist() == [[pytest.approx(BY_HAND[kind])]]
    assert interaction.score_heads(RELATION, TAIL, HEAD).tolist() == [[pytest.approx(BY_HAND[kind])]]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(KINDS[kind], DotProduct)])
def test_tails_moved_back_are_the_gradient_by_the_head(kind):
    interaction = KINDS[kind]()
    head = torch.randn(5, 4, requires_grad=True)
    relation, tail = torch.randn(5, 4), torch.randn(5, 4)
    score = interaction.score(head, relation, tail)
    (gradient,) = torch.autograd.grad(score.sum(), head)
    weight = interaction.transform_tails(relation, tail)
    assert torch.allclose(weight, gradient, atol=1e-6)
    assert torch.allclose((weight * head).sum(1) + interaction.offset(relation, tail), score, atol=1e-5)


def test_a_saved_model_is_loaded_again_and_impossible_shapes_are_refused(tmp_path):
    model = network("complex")
    model.save(tmp_path / "model")
    again = Embeddings.load(tmp_path / "model")
    assert again.facts == {"kind": "complex", "entities": 7, "relations": 3, "dimension": 4}
    assert torch.equal(again.entities, model.entities)
    assert torch.equal(again.relations, model.relations)
    refuses(ValueError, "dimension=3 must be even", Embeddings, "complex", 2, 1, 3)
    refuses(ValueError, "unknown kind 'turning'; allowed: transe, complex", Embeddings, "turning", 2, 1, 4)


class Table:
    """Scores that are given: of an entity as a tail, and as a head, whatever the query."""

    def __init__(self, as_tail: list[float], as_head: list[float]) -> None:
        self.as_tail, self.as_head = torch.tensor(as_tail), torch.tensor(as_head)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        return self.as_tail.repeat(len(heads), 1)

    def score_heads(self, relations: Tensor, tails: Tensor) -> Tensor:
        return self.as_head.repeat(len(tails), 1)


def graph(entities: int = 20, relations: int = 3, triples: int = 150) -> tuple[Tensor, Tensor]:
    """Distinct triples, and some of them to rank."""
    drawn = np.unique(np.random.default_rng(0).integers(0, [entities, relations, entities], (triples, 3)), axis=0)
    known = torch.from_numpy(drawn)
    return known[::4], known


def integers(kind: str, entities: int = 20) -> Embeddings:
    """Vectors of -1, 0 and 1, so that many scores are the same, exactly."""
    torch.manual_seed(1)
    model = Embeddings(kind, entities, 3, 4)
    with torch.no_grad():
        for vectors in model.parameters():
            vectors.copy_(torch.randint(-1, 2, vectors.shape).float())
    return model


def test_ranks_by_hand():
    network = Table(as_tail=[0.9, 0.5, 0.7, 0.5, 0.1], as_head=[1.0, 2.0, 3.0, 4.0, 5.0])
    known = torch.tensor([[0, 0, 3], [0, 0, 0], [4, 0, 3], [0, 1, 2]])
    of_heads, of_tails = filtered_ranks(network, known[:1], known, 5)
    # Tail 3 (.5): 0 (.9) is another true tail, 2 (.7) is above, 1 (.5) is equal: between second and third.
    assert of_tails.tolist() == [2.5]
    # Head 0 (1): 4 is another true head, 1, 2 and 3 are above.
    assert of_heads.tolist() == [4]
    network, one = Table([0.0, np.nan], [0.0, 0.0]), torch.tensor([[0, 0, 1]])
    refuses(FloatingPointError, "not a finite number", filtered_ranks, network, one, one, 2)


@pytest.mark.parametrize("cells", [1, 7 * 20, 2**24])
def test_figures_are_those_of_pykeen(cells):
    evaluation = pytest.importorskip("pykeen.evaluation", reason="needs PyKEEN, of the extra [dev]")
    from pykeen.models import DistMult
    from pykeen.triples import CoreTriplesFactory

    triples, known = graph()
    model = integers("distmult")
    other = DistMult(triples_factory=CoreTriplesFactory.create(known), embedding_dim=4, random_seed=0)
    with torch.no_grad():
        other.entity_representations[0]._embeddings.weight.copy_(model.entities)
        other.relation_representations[0]._embeddings.weight.copy_(model.relations)
    found = evaluation.RankBasedEvaluator(filtered=True).evaluate(
        other, triples, batch_size=8, additional_filter_triples=[known], use_tqdm=False
    )
    ranks = torch.cat(filtered_ranks(model, triples, known, 20, cells=cells)).numpy()
    assert (ranks % 1).any()  # there are ties
    assert found.get_metric("both.realistic.inverse_harmonic_mean_rank") == pytest.approx((1 / ranks).mean())
    for k in (1, 3, 10):
        assert found.get_metric(f"both.realistic.hits_at_{k}") == pytest.approx((ranks <= k).mean())
