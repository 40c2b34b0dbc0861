"""Generators as functions of plain arguments: numbers by hand."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
import torch

from mitigate.measure.lift import constant_tails, echo_tails, random_tails
from mitigate.measure.results import Results
from mitigate.measure.run import measure_filter
from mitigate.models.tail_prompts import Beam
from mitigate.policies import Rerank
from mitigate.probe.beams import held_out_likelihood, probe_generator
from mitigate.score.labeller import label_statements
from mitigate.train.base_model import find_start
from mitigate.train.generator import examples
from mitigate.triples import PROBED, Labels

TARGETS = pl.DataFrame({"target": ["nurse", "man"], "category": ["profession", "gender"]})


class Words:
    """A generator that always generates its words, in their order; each token costs 1 nat."""

    def __init__(self, folder: Path | None = None) -> None:
        self.words = ["steal", "work", "eat"]

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        return [[0] for _ in heads]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        return [[1] * (len(tail.split()) + 1) for tail in tails]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.ones(sum(map(len, tails)))

    def search(self, prompts: Sequence[Sequence[int]], *, beams: int = 1, **how: int) -> list[list[Beam]]:
        return [[Beam((place,), -1.0 - place, -1.0 - place, True) for place in range(beams)] for _ in prompts]

    def decode(self, tail: Sequence[int]) -> str:
        return self.words[tail[0]]

    def to(self, device: str) -> "Words":
        return self


class Theft:
    """A scorer that finds prejudice in "steal"."""

    name = fingerprint = "regard"

    def __call__(self, texts: Sequence[str]) -> Labels:
        found = pl.Series(texts, dtype=pl.String).str.contains("steal").cast(pl.Int8).to_numpy()
        return Labels(-found, -found.astype("float32"))


def test_a_generator_is_probed_and_its_neutral_tails_put_first() -> None:
    probed = probe_generator(Words(), TARGETS, {"CapableOf": "is capable of"}, beams=3, top=3)
    assert dict(probed.schema) == PROBED
    assert probed["tail"].to_list() == ["steal", "work", "eat"] * 2
    labelled = label_statements(probed, [Theft()])
    assert labelled["statement"][0] == "nurse is capable of steal"
    assert labelled["regard"].to_list() == [-1, 0, 0] * 2
    chosen = Rerank("mine", ["regard"], "paper").choose(labelled, 2)
    expected = [("nurse", "work", 1, 2), ("nurse", "eat", 2, 3), ("man", "work", 1, 2), ("man", "eat", 2, 3)]
    assert chosen.select("target", "tail", "rank", "beam_rank").rows() == expected


def test_likelihood_is_of_valid_test_triples_and_filters_are_counted(tmp_path: Path) -> None:
    rows = [("nurse", "eat bread", "test", True), ("nurse", "fly", "test", False), ("man", "eat", "train", True)]
    labelled = pl.DataFrame(rows, schema=["head", "tail", "split", "valid"], orient="row")
    labelled = labelled.with_columns(relation=pl.lit("CapableOf"))
    for generator in (Words(), find_start(Words, tmp_path)):
        found = held_out_likelihood(generator, labelled)
        assert found.select("tail", "nll", "tokens").rows() == [("eat bread", 3, 3)]
    rows = [("train", 0.5, None), ("train", 0.0, None), ("train", 0.5, 1), ("dev", 1.0, None)]
    ledger = pl.DataFrame(rows, schema=["split", "weight", "source_row"], orient="row")
    of_nurse = {"target": "nurse", "category": "profession", "relation": "IsA", "tail": "x"}
    found = Results(measure_filter(ledger.with_columns(**{name: pl.lit(value) for name, value in of_nurse.items()})))
    expected = {"filter/kept": 1, "filter/dropped": 1, "filter/added": 1, "coverage/triples": 50}
    assert {key: found[key] for key in expected} == expected
    rows = pl.DataFrame({"head": ["nurse"], "relation": ["CapableOf"], "tail": ["eat"], "weight": [0.5]})
    found = examples(rows, {"CapableOf": "is capable of"})
    assert (found.heads, found.phrases, found.tails) == (["nurse"], ["is capable of"], ["eat"])
    assert found.weights is not None
    assert found.weights.tolist() == [0.5]


@pytest.fixture
def labelled() -> pl.DataFrame:
    """Three neutral tails of IsA, one of them twice, and a polarised one that is the commonest."""
    tails = ["helper", "helper", "worker", "person", "thief", "thief", "thief"]
    frame = pl.DataFrame({"split": "train", "head": "nurse", "relation": "IsA", "tail": tails})
    label = pl.when(pl.col("tail") == "thief").then(-1).otherwise(0)
    return frame.with_columns(sentiment_neutral=label, regard_neutral=pl.lit(0))


def test_constants_echoes_and_random_tails(labelled: pl.DataFrame) -> None:
    assert constant_tails(labelled, 2).rows() == [("IsA", "helper"), ("IsA", "person")]
    assert constant_tails(labelled.with_columns(split=pl.lit("test"))).is_empty()
    prompts = pl.DataFrame({"head": ["nurse", "nurse", "cook"], "relation": ["IsA", "IsA", "HasA"]})
    assert echo_tails(prompts).rows() == [("nurse", "IsA", "nurse"), ("cook", "HasA", "cook")]
    drawn = random_tails(labelled, prompts, seed=2)
    assert set(drawn["tail"]) == {"helper", "worker", "person"}  # of ten draws, without repeats and polarised ones
    assert set(drawn["head"]) == {"nurse"}  # no training triple has HasA
    assert drawn.equals(random_tails(labelled, prompts, seed=2))
