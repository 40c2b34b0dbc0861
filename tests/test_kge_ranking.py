"""Filtered ranks: by hand, by a slow ranking of one candidate at a time, and beside PyKEEN."""

import numpy as np
import pytest
import torch
from torch import Tensor

from mitigate.measure.kge import hits, mean_reciprocal_rank
from models.kge.embeddings import KINDS, Embeddings
from models.kge.ranking import filtered_ranks


class Table:
    """Scores that are given: of an entity as a tail, and as a head, whatever the query."""

    def __init__(self, as_tail: list[float], as_head: list[float]) -> None:
        self.as_tail, self.as_head = torch.tensor(as_tail), torch.tensor(as_head)

    def tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        return self.as_tail.repeat(len(heads), 1)

    def heads(self, relations: Tensor, tails: Tensor) -> Tensor:
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


def slowly(model: Embeddings, triples: Tensor, known: Tensor) -> tuple[list[float], list[float]]:
    """One candidate at a time."""
    true = {tuple(triple) for triple in known.tolist()}
    found: tuple[list[float], list[float]] = [], []
    for triple in triples.tolist():
        for place, ranks in zip((0, 2), found, strict=True):
            rank = 1.0
            head, relation, tail = (torch.tensor([number]) for number in triple)
            scores = model.heads(relation, tail)[0] if place == 0 else model.tails(head, relation)[0]
            for entity in range(len(model.entities)):
                other = list(triple)
                other[place] = entity
                if entity == triple[place] or tuple(other) in true:
                    continue
                own = scores[triple[place]]
                rank += float(scores[entity] > own) + float(scores[entity] == own) / 2
            ranks.append(rank)
    return found


def test_ranks_by_hand():
    network = Table(as_tail=[0.9, 0.5, 0.7, 0.5, 0.1], as_head=[1.0, 2.0, 3.0, 4.0, 5.0])
    known = torch.tensor([[0, 0, 3], [0, 0, 0], [4, 0, 3], [0, 1, 2]])
    of_heads, of_tails = filtered_ranks(network, known[:1], known, 5)
    # Tail 3 (.5): 0 (.9) is another true tail, 2 (.7) is above, 1 (.5) is equal: between second and third.
    assert of_tails.tolist() == [2.5]
    # Head 0 (1): 4 is another true head, 1, 2 and 3 are above.
    assert of_heads.tolist() == [4]


def test_a_triple_to_rank_need_not_be_known():
    network = Table(as_tail=[0.9, 0.5, 0.7], as_head=[1.0, 2.0, 3.0])
    of_heads, of_tails = filtered_ranks(network, torch.tensor([[0, 0, 1]]), torch.tensor([[2, 0, 2]]), 3)
    assert (of_heads.tolist(), of_tails.tolist()) == ([3], [3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", [1, 7 * 20, 2**24])
def test_ranks_are_those_of_one_candidate_at_a_time(kind, cells):
    triples, known = graph()
    model = integers(kind)
    of_heads, of_tails = filtered_ranks(model, triples, known, 20, cells=cells)
    assert (of_heads.tolist(), of_tails.tolist()) == slowly(model, triples, known)
    assert any(rank % 1 for rank in of_tails.tolist())  # there are ties


def test_scores_that_are_no_numbers_have_no_rank():
    with pytest.raises(FloatingPointError, match="not a finite number"):
        filtered_ranks(Table([0.0, np.nan], [0.0, 0.0]), torch.tensor([[0, 0, 1]]), torch.tensor([[0, 0, 1]]), 2)


def test_figures_of_ranks():
    ranks = np.array([1, 2, 4, 2.5])
    assert mean_reciprocal_rank(ranks) == pytest.approx((1 + 0.5 + 0.25 + 0.4) / 4)
    assert [hits(ranks, k) for k in (1, 3, 10)] == [0.25, 0.75, 1]


def test_figures_are_those_of_pykeen():
    evaluation = pytest.importorskip("pykeen.evaluation", reason="needs PyKEEN: pip install -e '.[pykeen]'")
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
    ranks = torch.cat(filtered_ranks(model, triples, known, 20)).numpy()
    assert found.get_metric("both.realistic.inverse_harmonic_mean_rank") == pytest.approx(mean_reciprocal_rank(ranks))
    for k in (1, 3, 10):
        assert found.get_metric(f"both.realistic.hits_at_{k}") == pytest.approx(hits(ranks, k))
