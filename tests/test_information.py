"""Pointwise mutual information under a generator whose probabilities are a formula."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from mitigate.errors import MitigateError
from mitigate.probe.information import Information
from mitigate.targets import targets
from mitigate.tasks.plausibility.information import other_heads, pointwise_information

PHRASES = {"IsA": "is a", "HasA": "has a"}


class ByHead:
    """Generates "house" with probability 1/2 for a church, else with 1/8; any other tail with 1/4. Counts its work."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        assert set(phrases) <= {"is a", "has a"}
        self.heads = list(heads)
        return [[number] for number in range(len(heads))]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        self.said = list(tails)
        return [[number] for number in range(len(tails))]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        found = [(self.heads[prompt[0]], self.said[tail[0]]) for prompt, tail in zip(prompts, tails, strict=True)]
        self.asked += found
        bits = [(1 if head == "church" else 3) if tail == "house" else 2 for head, tail in found]
        return torch.tensor(bits, dtype=torch.float64) * math.log(2)

    def to(self, device: str) -> "ByHead":
        return self


def table(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row")


def test_information_is_what_a_head_adds():
    generator = ByHead()
    measure = Information(generator, PHRASES, ["nurse", "church", "cook"])
    found = measure(table(("church", "IsA", "house"), ("baker", "IsA", "house"), ("baker", "IsA", "tree")))
    # house: 1/2 against 1/8, the mean of nurse and cook; 1/8 against 1/4, the mean of all three; tree: as all others
    assert found / math.log(2) == pytest.approx([2, -1, 0])


def test_other_heads_are_asked_once_for_each_relation_and_tail():
    generator = ByHead()
    measure = Information(generator, PHRASES, ["nurse", "cook"])
    measure(table(("church", "IsA", "house"), ("baker", "IsA", "house")))
    measure(table(("tailor", "IsA", "house"), ("tailor", "HasA", "house")))
    assert generator.asked.count(("nurse", "house")) == 2  # one for each relation
    assert len(generator.asked) == 4 + 2 * 2


def test_the_library_keeps_the_order_of_the_triples(monkeypatch: pytest.MonkeyPatch):
    triples = table(("church", "IsA", "house"), ("baker", "HasA", "tree"), ("baker", "IsA", "house"))
    whole = pointwise_information(ByHead(), triples.with_columns(rank=pl.Series([1, 2, 3])), heads=5)
    assert whole["rank"].to_list() == [1, 2, 3]
    drawn = np.array([1 / 2 if head == "church" else 1 / 8 for head in other_heads(5, 1) if head != "church"])
    assert whole["information"][0] == pytest.approx(math.log(1 / 2 / drawn.mean()))
    assert whole["information"][1] == pytest.approx(0)
    monkeypatch.setattr("mitigate.tasks.plausibility.information.TOGETHER", 1)
    assert pointwise_information(ByHead(), triples, heads=5)["information"].to_list() == pytest.approx(
        whole["information"].to_list()
    )
    assert pointwise_information(ByHead(), triples.clear())["information"].to_list() == []


def test_other_heads_are_drawn_by_the_seed():
    assert other_heads(3, 1) == other_heads(3, 1) != other_heads(3, 2)
    assert set(other_heads(329, 1)) == set(targets())
    with pytest.raises(MitigateError, match="heads=1 must be at least 2 and at most 329, the number of targets"):
        other_heads(1, 1)
