"""Training the classifiers of plausibility and regard: losses by hand, small trainings, and going on after a stop."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor, nn

from mitigate.models.encoder import MiniLMClassifier
from mitigate.models.stored_tensors import minilm_folder
from mitigate.train import classifiers as regard
from mitigate.train.classifiers import (
    Known,
    PlausibilityTraining,
    Settings,
    choice,
    fit_ngram,
    fit_plausibility,
    fit_softmax,
)

SETTINGS = Settings(epochs=20, batch_size=8, learning_rate=0.3, precision="32-true", echo=0, contrast=0)


class Letters(nn.Module):
    """A phrase is its first letter, a vector with a 1 in its place."""

    def encode(self, phrases: Sequence[str]) -> list[list[int]]:
        return [[ord(phrase[0]) - ord("a")] for phrase in phrases]


class Kinds(nn.Module):
    """Relations are matrices of letters."""

    relations = ("Eats", "Sees")

    def __init__(self) -> None:
        super().__init__()
        self.phrases = Letters()
        self.matrices = nn.Parameter(torch.zeros(2, 26, 26))

    def vectors(self, phrases: Sequence[list[int]]) -> Tensor:
        return torch.eye(26)[[pieces[0] for pieces in phrases]]


def table(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row")


def known(relations: tuple[str, ...]) -> Known:
    """Cats eat mice, dogs see goats and wolves eat kids, each eight times by other names."""
    said = [("cat", "Eats", "mouse"), ("dog", "Sees", "goat"), ("wolf", "Eats", "kid")] * 8
    return Known(table([(head + str(i), relation, tail) for i, (head, relation, tail) in enumerate(said)]), relations)


def test_the_loss_and_its_further_terms_by_hand():
    network = Kinds()
    said = table([("ant", "Eats", "berry"), ("cat", "Sees", "door")])
    module = PlausibilityTraining(network, Known(said, Kinds.relations), SETTINGS)
    coin = math.log(2)
    assert module.training_step(np.array([0, 1]), 0).item() == pytest.approx(2 * coin)  # all logits 0
    network.matrices.data[0, 0, 3] = 3.0  # ants eat doors: half of one row's wrong tails is now above 0
    wrong = math.log1p(math.exp(3))  # ... in the row of (ant, Eats, berry), whose only other tail is door
    assert module.training_step(np.array([0, 1]), 0).item() == pytest.approx(2 * coin + (wrong - coin) / 3 / 2)
    logits = torch.tensor([[1.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    others = np.array([[False, True, False], [True, False, True], [False, False, False]])
    first = math.log(1 + math.exp(-1))  # the third column is known to hold for the first row: it is no wrong answer
    assert choice(logits, others).tolist() == pytest.approx([first, math.log(3), 0])


def train(folder: Path, network: Any = None, **more: Any) -> tuple[Kinds, dict[str, float]]:
    network = network or Kinds()
    return network, fit_plausibility(network, known(network.relations), SETTINGS, folder, **{"fingerprint": "a"} | more)


def test_it_learns_which_heads_and_tails_belong_together(tmp_path: Path):
    told: list[int] = []
    network, fitted = train(tmp_path, log=lambda values, step: told.append(step))
    cat, dog, mouse, goat = (ord(letter) - ord("a") for letter in "cdmg")
    eats, sees = network.matrices.detach()
    assert eats[cat, mouse] > 0 > eats[cat, goat]
    assert sees[dog, goat] > 0 > sees[cat, mouse]
    assert fitted["steps"] == 60
    assert told == [20, 40, 60]
    assert 0 < fitted["loss"] < 2 * math.log(2)


def test_a_softmax_without_decay_is_the_share_of_raters() -> None:
    """One feature that is always 0: only the bias learns, and its softmax is the mean share."""
    shares = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0.5, 0.5]])
    weight, bias = fit_softmax(np.zeros((4, 1)), shares, np.ones(4), decay=0.0)
    powers = np.exp(bias)
    assert powers / powers.sum() == pytest.approx([0.25, 0.625, 0.125], abs=1e-3)
    assert weight.tolist() == [[0, 0, 0]]


@pytest.fixture(scope="module")
def labelled() -> pl.DataFrame:
    """Two words that decide, in texts that differ by a number."""
    said = [("thief", -1), ("table", 0), ("hero", 1)] * 12
    rows = [(f"this person is a {word} of {number}", label) for number, (word, label) in enumerate(said)]
    table = pl.DataFrame(rows, schema={"text": pl.String, "label": pl.Int8}, orient="row")
    return table.with_columns(part=pl.Series(["train"] * 30 + ["valid"] * 6))


def test_minilm_learns_and_a_seed_repeats_it(labelled):
    """Takes over 3 s: MiniLM itself is trained, once until it has learnt and twice for one epoch of sixteen texts."""
    learnt, wanted = labelled["text"].to_list(), regard.certain(labelled["label"])
    losses: list[float] = []

    def fitted(number: int, epochs: int) -> MiniLMClassifier:
        torch.manual_seed(0)
        classifier, log = MiniLMClassifier(minilm_folder(), rank=4), lambda values, _: losses.append(values["loss"])
        settings = {"learning_rate": 0.003, "epochs": epochs, "batch_size": 8, "neutral_share": 1.0}
        regard.fit_regard(classifier, classifier.encode(learnt[:number]), wanted[:number], settings, seed=3, log=log)
        return classifier

    classifier = fitted(36, epochs=6)
    texts = ["this person is a thief of 99", "this person is a table of 98", "this person is a hero of 97"]
    assert classifier.probabilities(texts).argmax(1).tolist() == [regard.NEGATIVE, regard.NEUTRAL, regard.POSITIVE]
    assert len(losses) == 2  # 27 steps: the mean of the first twenty, and of the last
    torch.testing.assert_close(fitted(16, epochs=1).head.weight, fitted(16, epochs=1).head.weight)


def test_ngrams_learn_from_labels_and_from_what_they_are_taught(labelled):
    texts = [f"{word} was related to this person" for word in ("saint", "crook")]
    probabilities = np.array([[0.0, 0.1, 0.9, 0.0], [0.9, 0.1, 0.0, 0.0]], dtype=np.float32)
    taught = pl.DataFrame({"text": texts, "probabilities": probabilities})
    settings = {"buckets": 2**12, "learning_rate": 0.1, "decay": 1e-6, "epochs": 30, "batch_size": 8}
    classifier = fit_ngram(labelled, pl.concat([taught] * 4), settings, seed=3)
    texts = ["this person is a thief of 99", "this person is a table of 98", "saint", "crook"]
    expected = [regard.NEGATIVE, regard.NEUTRAL, regard.POSITIVE, regard.NEGATIVE]
    assert classifier.probabilities(texts).argmax(1).tolist() == expected
