"""Training plausibility: what counts as false, a small training, and going on from a checkpoint."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor, nn

from mitigate.errors import MitigateError
from mitigate.train import plausibility as training
from mitigate.train.plausibility import Fitted, Known, Settings, false_weights, fit
from models.plausibility.pairs import judge

SETTINGS = Settings(epochs=8, batch_size=8, learning_rate=0.3, precision="32-true")


class Kinds(nn.Module):
    """A phrase is its first letter; a relation a matrix of letters."""

    relations = ("Eats", "Sees")

    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.zeros(2, 26, 26))

    def encode(self, phrases: Sequence[str]) -> list[list[int]]:
        return [[ord(phrase[0]) - ord("a")] for phrase in phrases]

    def forward(self, heads: Sequence[list[int]], tails: Sequence[list[int]]) -> Tensor:
        return self.matrices[:, [head[0] for head in heads], [tail[0] for tail in tails]].T


def table(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row")


def known(network: Kinds) -> Known:
    """Cats eat mice, dogs see goats and wolves eat kids, each eight times by other names."""
    said = [("cat", "Eats", "mouse"), ("dog", "Sees", "goat"), ("wolf", "Eats", "kid")] * 8
    return Known(
        table([(head + str(i), relation, tail) for i, (head, relation, tail) in enumerate(said)]), network.relations
    )


def test_what_is_known_to_hold_is_never_called_false():
    found = Known(table([("a", "Eats", "c"), ("a", "Sees", "c"), ("b", "Eats", "d")]), Kinds.relations)
    assert found.share.tolist() == pytest.approx([2 / 3, 1 / 3])
    a, b, c, d = range(4)
    assert found.holds(np.array([a, b, b]), np.array([c, d, c])).tolist() == [[1, 1], [1, 0], [0, 0]]
    # One true triple (b, Eats, d): with itself, with another head, with another tail.
    holds = found.holds(np.array([b, a, b]), np.array([d, d, c]))
    weights = false_weights(holds, relations=np.array([0]), share=found.share)
    assert weights.tolist() == [[0, pytest.approx(1 / 3)], [1, 0], [1, 0]]
    # (a, Eats, c) with its own tail drawn again: nothing is false about it.
    holds = found.holds(np.array([a, b, a]), np.array([c, c, c]))
    assert false_weights(holds, np.array([0]), found.share).tolist() == [[0, 0], [1, 0], [0, 0]]


def test_the_loss_before_training_is_that_of_a_coin():
    network = Kinds()
    module = training.PlausibilityTraining(network, known(network), SETTINGS)
    wrong = torch.tensor(false_weights(np.zeros((3, 2), bool), np.array([0]), module.known.share))
    assert wrong.sum().item() == pytest.approx(3)  # a third for each of the three corruptions
    assert module.steps == 24


def train(folder: Path, **more: object) -> tuple[Kinds, Fitted]:
    network = Kinds()
    return network, fit(network, known(network), SETTINGS, folder, fingerprint="a", **more)


def test_it_learns_which_heads_and_tails_belong_together(tmp_path: Path):
    told: list[int] = []
    network, fitted = train(tmp_path, log=lambda values, step: told.append(step))
    found = judge(
        network, ["cat", "cat", "dog", "cat"], ["Eats", "Sees", "Sees", "Eats"], ["mouse", "mouse", "goat", "goat"]
    )
    assert (found > 0).tolist() == [True, False, True, False]
    assert fitted.steps == 24
    assert told == [20, 24]
    assert 0 < fitted.loss < 2 * math.log(2)


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole, _ = train(tmp_path / "whole")

    def stop(values: dict, step: int) -> None:
        raise KeyboardInterrupt

    stopping = Settings(**{**vars(SETTINGS), "checkpoint_every": 0.0})
    network = Kinds()
    with pytest.raises(KeyboardInterrupt):
        fit(network, known(network), stopping, tmp_path / "parts", fingerprint="a", log=stop)
    assert (tmp_path / "parts" / "last.ckpt").is_file()
    again, fitted = train(tmp_path / "parts")
    assert fitted.steps == 24
    assert torch.equal(again.matrices, whole.matrices)
    network = Kinds()
    with pytest.raises(MitigateError, match="is of another training"):
        fit(network, known(network), SETTINGS, tmp_path / "parts", fingerprint="b")
