"""Training embeddings of a knowledge graph: losses by hand, a graph that is learnt, and going on from a checkpoint."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.models.kge import KINDS, Embeddings
from mitigate.train.kge import Fitted, OneVsAll, Settings, SharedNegatives, fit, regulariser, validation_mrr

SETTINGS = Settings(max_epochs=12, batch_size=16, negatives=8, evaluate_every=2, patience=3, learning_rate=0.3, seed=1)
ENTITIES = 24


def line() -> np.ndarray:
    """Of 24 entities in a line each has the next one and the one six places on: (41, 3)."""
    steps = enumerate((1, 6))
    return np.concatenate([[(place, r, place + step) for place in range(ENTITIES - step)] for r, step in steps])


def network(kind: str, init: float = 0.3) -> Embeddings:
    torch.manual_seed(0)
    return Embeddings(kind, ENTITIES, 2, 8, init=init)


def train(folder: Path, kind: str = "complex", settings: Settings = SETTINGS, **how) -> tuple[Embeddings, Fitted]:
    model = network(kind)
    triples = line()
    fitted = fit(model, triples[2:], triples[:2], triples, settings, folder, **{"fingerprint": "a"} | how)
    return model, fitted


def softmax_loss(scores: list[float]) -> float:
    """- log softmax of the first."""
    return float(np.log(np.exp(np.array(scores, dtype=float)).sum()) - scores[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_with_shared_negatives_by_hand(kind, monkeypatch):
    model, triples = network(kind), line()
    ranking = SharedNegatives(model, triples, SETTINGS)
    negatives = torch.tensor([5, 1])
    monkeypatch.setattr(ranking, "draw", lambda: negatives)
    expected = []
    for triple in triples[:3]:
        head, relation, tail = (torch.tensor([number]) for number in triple)
        as_tail, as_head = model.score_tails(head, relation)[0].tolist(), model.score_heads(relation, tail)[0].tolist()
        for scores, own in ((as_tail, int(tail)), (as_head, int(head))):
            others = [scores[entity] for entity in negatives.tolist() if entity != own]
            expected.append(softmax_loss([scores[own], *others]))
    assert ranking.loss(np.array([0, 1, 2])).item() == pytest.approx(np.mean(expected), rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_one_vs_all_is_the_same_query_by_query(kind):
    triples = np.array([[0, 0, 1], [0, 0, 2], [3, 0, 2], [3, 1, 0]])
    model = network(kind)
    ranking = OneVsAll(model, triples, replace(SETTINGS, loss="all", batch_size=100))
    # (0, 0, ?), (3, 0, ?), (3, 1, ?), (?, 0, 1), (?, 0, 2), (?, 1, 0)
    assert ranking.queries.tolist() == [[0, 0, 0], [0, 0, 3], [0, 1, 3], [1, 0, 1], [1, 0, 2], [1, 1, 0]]
    assert ranking.counts.tolist() == [2, 1, 1, 1, 2, 1]
    expected = []
    for head, relation, tail in torch.from_numpy(triples)[:, :, None]:
        expected.append(-model.score_tails(head, relation).log_softmax(1)[0, tail].item())
        expected.append(-model.score_heads(relation, tail).log_softmax(1)[0, head].item())
    shuffled = np.array([5, 2, 0, 4, 1, 3])
    assert ranking.loss(shuffled).item() == pytest.approx(np.mean(expected), rel=1e-5)
    # Part of a batch: the sum over its answers, by the mean number of answers of a whole one.
    assert ranking.loss(np.array([0])).item() == pytest.approx((expected[0] + expected[2]) / 8, rel=1e-5)


@pytest.mark.parametrize(("kind", "total"), [("complex", 5**3 + 2**3 + 1), ("distmult", 3**3 + 4**3 + 2**3 + 1)])
def test_the_n3_regulariser_by_hand(kind: str, total: float) -> None:
    """A head of 3 + 4i, a relation of 2i, and a tail of 1."""
    model, first, second = Embeddings(kind, 2, 1, 2), torch.tensor([0]), torch.tensor([1])
    with torch.no_grad():
        model.entities.copy_(torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
        model.relations.copy_(torch.tensor([[0.0, 2.0]]))
    assert regulariser(model, 0.5, first, first, second).item() == pytest.approx(total / 2)


@pytest.mark.parametrize(("kind", "loss"), [("transe_l2", "shared"), ("complex", "shared"), ("complex", "all")])
def test_a_graph_is_learnt(kind, loss, tmp_path):
    triples = line()
    before = validation_mrr(network(kind), triples, triples)
    settings = replace(SETTINGS, loss=loss, max_epochs=40, evaluate_every=20)
    model, fitted = train(tmp_path, kind, settings)
    assert validation_mrr(model, triples, triples) > 0.7 > 0.4 > before
    assert fitted.seconds > 0


@pytest.mark.parametrize("loss", ["shared", "all"])
def test_an_interrupted_training_comes_to_the_same_weights(loss, tmp_path):
    settings = replace(SETTINGS, loss=loss, checkpoint_every=1e-9)
    whole, fitted = train(tmp_path / "whole", settings=settings)

    def stop(numbers: dict[str, float], step: int) -> None:
        if "valid_mrr" in numbers and step > fitted.steps / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", settings=settings, log=stop)
    resumed: list[int] = []
    again, twice = train(tmp_path / "parts", settings=settings, log=lambda _, step: resumed.append(step))
    assert fitted.steps / 2 < resumed[0]  # it goes on, it does not begin again
    torch.testing.assert_close(again.entities, whole.entities, rtol=0, atol=1e-6)
    torch.testing.assert_close(again.relations, whole.relations, rtol=0, atol=1e-6)
    assert (twice.steps, twice.epochs, twice.valid_mrr) == (fitted.steps, fitted.epochs, fitted.valid_mrr)


def test_trainings_that_diverge_or_lack_triples_say_so(tmp_path):
    settings, triples = replace(SETTINGS), line()
    object.__setattr__(settings, "learning_rate", 1e30)  # more than is allowed
    refuses(MitigateError, "training diverged.*lower the learning rate", train, tmp_path, "complex", settings)
    given = (network("transe"), triples, triples[:0], triples, SETTINGS, tmp_path)
    refuses(MitigateError, "41 training and 0 validation triples", fit, *given, fingerprint="a")
    faults = {"loss": "half", "negatives": 0, "learning_rate": -1}
    refuses(MitigateError, "(?s)loss 'half'; allowed: shared, all.*negatives=0.*learning_rate=-1", Settings, **faults)
