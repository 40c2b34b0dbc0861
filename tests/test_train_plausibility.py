"""Training plausibility: what counts as wrong, a small training, and going on from a checkpoint."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor, nn

from mitigate.errors import MitigateError
from mitigate.train import harness
from mitigate.train.plausibility import Fitted, Known, PlausibilityTraining, Settings, choice, fit, mean_by

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


def test_what_is_known_to_hold():
    known = Known(table([("a", "Eats", "c"), ("a", "Sees", "c"), ("b", "Eats", "d")]), Kinds.relations)
    a, b, c, d = range(4)
    assert known.share.tolist() == pytest.approx([2 / 3, 1 / 3])
    # rows: a and b as heads, c and d their tails; columns: the relations
    found = known.holds(np.array([[a], [b]]), np.arange(2), np.array([[c], [d]]))
    assert found.tolist() == [[True, True], [True, False]]
    assert not known.holds(np.array([a, b, d]), np.array([0, 0, 1]), np.array([d, c, d])).any()


def test_a_mean_by_weights():
    values = torch.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]])
    assert mean_by(values, np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])).tolist() == [3, 0]


def known(relations: tuple[str, ...]) -> Known:
    """Cats eat mice, dogs see goats and wolves eat kids, each eight times by other names."""
    said = [("cat", "Eats", "mouse"), ("dog", "Sees", "goat"), ("wolf", "Eats", "kid")] * 8
    return Known(table([(head + str(i), relation, tail) for i, (head, relation, tail) in enumerate(said)]), relations)


def test_the_loss_by_hand():
    network = Kinds()
    said = table([("ant", "Eats", "berry"), ("cat", "Sees", "door")])
    module = PlausibilityTraining(network, Known(said, Kinds.relations), SETTINGS)
    coin = math.log(2)
    assert module.training_step(np.array([0, 1]), 0).item() == pytest.approx(2 * coin)  # all logits 0
    network.matrices.data[0, 0, 3] = 3.0  # ants eat doors: half of one row's wrong tails is now above 0
    wrong = math.log1p(math.exp(3))  # ... in the row of (ant, Eats, berry), whose only other tail is door
    assert module.training_step(np.array([0, 1]), 0).item() == pytest.approx(2 * coin + (wrong - coin) / 3 / 2)


def test_the_choice_among_all_others_by_hand():
    logits = torch.tensor([[1.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    others = np.array([[False, True, False], [True, False, True], [False, False, False]])
    first = math.log(1 + math.exp(-1))  # the third column is known to hold for the first row: it is no wrong answer
    assert choice(logits, others).tolist() == pytest.approx([first, math.log(3), 0])


def test_the_two_further_terms_by_hand():
    network = Kinds()
    said = Known(table([("ant", "Eats", "berry"), ("cat", "Sees", "cow")]), Kinds.relations)  # a cow is a c: an echo
    plain = PlausibilityTraining(network, said, SETTINGS)
    without = plain.training_step(np.array([0, 1]), 0).item()
    coin = math.log(2)
    chosen = PlausibilityTraining(network, said, replace(SETTINGS, contrast=2.0))
    assert chosen.training_step(np.array([0, 1]), 0).item() == pytest.approx(without + 2 * coin)
    network.matrices.data[0, 0, 0] = 3.0  # ants eat ants; all else is undecided
    without = plain.training_step(np.array([0, 1]), 0).item()
    echoes = PlausibilityTraining(network, said, replace(SETTINGS, echo=2.0))
    found = echoes.training_step(np.array([0, 1]), 0).item() - without
    assert found == pytest.approx(2 * (math.log1p(math.exp(3)) + 3 * coin) / 2 / 2)


def test_the_learning_rate_is_reached_after_the_warmup_and_falls_to_nothing():
    module = PlausibilityTraining(Kinds(), known(Kinds.relations), SETTINGS)  # 60 steps, .06 of them to warm up
    rates = [module.learning_rate(step) for step in range(60)]
    assert rates[:5] == pytest.approx([0.3 / 4, 0.3 / 2, 0.3 * 3 / 4, 0.3, 0.3])
    assert rates[32] == pytest.approx(0.3 / 2)
    assert rates[59] == pytest.approx(0.3 / 56)


def test_all_faulty_settings_are_named_together():
    with pytest.raises(MitigateError) as error:
        Settings(epochs=0, batch_size=8, learning_rate=-1, precision="fp4")
    assert str(error.value) == (
        "plausibility: epochs=0 must be at least 1; learning_rate=-1 must be above 0; "
        "precision='fp4' must be one of auto, bf16-mixed, 32-true"
    )


def train(folder: Path, **more: object) -> tuple[Kinds, Fitted]:
    network = Kinds()
    return network, fit(network, known(network.relations), SETTINGS, folder, fingerprint="a", **more)  # type: ignore


def test_it_learns_which_heads_and_tails_belong_together(tmp_path: Path):
    told: list[int] = []
    network, fitted = train(tmp_path, log=lambda values, step: told.append(step))
    cat, dog, mouse, goat = (ord(letter) - ord("a") for letter in "cdmg")
    eats, sees = network.matrices.detach()
    assert eats[cat, mouse] > 0 > eats[cat, goat]
    assert sees[dog, goat] > 0 > sees[cat, mouse]
    assert fitted.steps == 60
    assert told == [20, 40, 60]
    assert 0 < fitted.loss < 2 * math.log(2)


def test_it_trains_on_the_processor_beside_a_gpu_and_within_a_job_of_slurm(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS", "2")  # of which Lightning would make a training of two processes
    monkeypatch.setenv("SLURM_JOB_NAME", "array")
    asked: list[str] = []
    monkeypatch.setattr(harness, "native_precision", lambda *place: asked.extend(place) or "32-true")
    settings = replace(SETTINGS, epochs=1, precision="auto")
    assert fit(Kinds(), known(Kinds.relations), settings, tmp_path, fingerprint="a").steps == 3  # type: ignore
    assert asked == ["cpu"]


class HalfPrecision(Letters):
    """Vectors of first letters, kept in half precision as those of an encoder that is not trained."""

    def encode(self, phrases: Sequence[str]) -> Tensor:
        return torch.eye(26, dtype=torch.float16)[[ord(phrase[0]) - ord("a") for phrase in phrases]]


class Stacking(Kinds):
    def __init__(self) -> None:
        super().__init__()
        self.phrases = HalfPrecision()

    def vectors(self, phrases: Sequence[Tensor] | Tensor) -> Tensor:
        return (phrases if isinstance(phrases, Tensor) else torch.stack(list(phrases))).float()


def test_phrases_in_half_precision_are_read_where_the_processor_computes_in_bf16(tmp_path: Path):
    settings = replace(SETTINGS, epochs=1, precision="bf16-mixed")
    assert fit(Stacking(), known(Kinds.relations), settings, tmp_path, fingerprint="a").steps == 3  # type: ignore


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path):
    whole, _ = train(tmp_path / "whole")

    def stop(values: dict, step: int) -> None:
        if step == 40:
            raise KeyboardInterrupt

    network = Kinds()
    stopping = replace(SETTINGS, checkpoint_every=1e-9)
    with pytest.raises(KeyboardInterrupt):
        fit(network, known(network.relations), stopping, tmp_path / "parts", fingerprint="a", log=stop)  # type: ignore
    assert (tmp_path / "parts" / "last.ckpt").is_file()
    again, fitted = train(tmp_path / "parts")
    assert fitted.steps == 60
    assert torch.equal(again.matrices, whole.matrices)
    with pytest.raises(MitigateError, match="is of another training"):
        fit(Kinds(), known(Kinds.relations), SETTINGS, tmp_path / "parts", fingerprint="b")  # type: ignore
