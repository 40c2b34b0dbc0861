"""Generators as functions of plain arguments, and swap lift of a generator and of baselines on the same heads, with a
classifier whose answer is a rule: numbers by hand."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from mitigate.measure.intervals import Bootstrap
from mitigate.measure.quality import BASELINES, constant_tails, echo_tails, lift_groups, lift_table, random_tails
from mitigate.measure.results import Results, measured
from mitigate.measure.run import measure_filter
from mitigate.models.tail_prompts import Beam
from mitigate.policies import Rerank
from mitigate.probe.beams import held_out_likelihood, held_out_prompts, probe_generator
from mitigate.score.labeller import label_statements
from mitigate.train.base_model import find_start
from mitigate.train.generator import examples
from mitigate.triples import PROBED, Labels
from mitigate.words.targets import list_of

TWO = pl.DataFrame({"target": ["nurse", "man"], "category": ["profession", "gender"]})


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
    probed = probe_generator(Words(), TWO, {"CapableOf": "is capable of"}, beams=3, top=3)
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


THINGS = ["ant", "bee", "cat", "dog", "eel", "fox"]
WORKERS = ["cook", "judge", "maid", "nurse", "pilot", "tailor"]
WOMEN = ["aunt", "girl", "lady", "mother", "queen", "sister"]
TARGETS = pl.DataFrame({"target": [*WORKERS, *WOMEN], "category": ["profession"] * 6 + ["gender"] * 6})
LISTED = list_of(TARGETS)
FEW = Bootstrap(resamples=200)


class SameLetter:
    """Accepts CapableOf where head and tail begin alike, IsA where the tail is "thing", and nothing else."""

    name = "plausibility"
    fingerprint = "same letter"

    def __call__(self, texts: Sequence[str]) -> Labels:
        parts = [text.split("\t") for text in texts]
        rule = {"IsA": lambda _, tail: tail == "thing", "CapableOf": lambda head, tail: head[0] == tail[:1]}
        said = np.array([relation in rule and rule[relation](head, tail) for head, relation, tail in parts])
        return Labels(said.astype(np.int8), said.astype(np.float32))


def triples() -> pl.DataFrame:
    """What is known of things, held out, and of the first letters of all, as neutral training triples."""
    held_out = [(thing, "CapableOf", f"{thing[0]} act", "test") for thing in THINGS]
    held_out += [(thing, "UsedFor", "work", "test") for thing in THINGS]
    train = [("x", *rest, "train") for rest in (("CapableOf", "a common act"), ("IsA", "thing"), ("UsedFor", "work"))]
    train += [(target, "CapableOf", f"{target[0]} act", "train") for target in TARGETS["target"]]
    rows = pl.DataFrame([*held_out, *train], schema=["head", "relation", "tail", "split"], orient="row")
    return rows.with_columns(valid=pl.lit(True), sentiment_neutral=pl.lit(0), regard_neutral=pl.lit(0))


def said(heads: pl.DataFrame, tail: pl.Expr, relation: str = "CapableOf") -> pl.DataFrame:
    """A tail for each head, neutral."""
    neutral = {"sentiment_neutral": 0, "regard_neutral": 0}
    return heads.select("target", "category", pl.lit(relation).alias("relation"), tail.alias("tail"), **neutral)


HELD_OUT = pl.DataFrame({"target": THINGS, "category": "held_out"})
LETTER = pl.col("target").str.head(1) + pl.lit(" act")


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    """A generator that knows first letters, with one tail of the two asked for; of women half of the tails are
    polarised."""
    statements = pl.concat([said(TARGETS, LETTER), said(TARGETS, pl.lit("thing"), "IsA")])
    polarised = said(TARGETS.filter(category="gender"), pl.lit("z")).with_columns(sentiment_neutral=pl.lit(1))
    heads = said(HELD_OUT, LETTER)
    relations = ["CapableOf", "UsedFor", "IsA"]
    prompts = held_out_prompts(triples(), LISTED, relations, 250)
    said_of_targets = pl.concat([statements, polarised.cast(statements.schema)])
    return lift_table(said_of_targets, heads, triples(), TARGETS, relations, prompts, SameLetter(), top=2)


def figures(table: pl.DataFrame) -> Results:
    return Results(measured("heads", table, lift_groups(table), intervals=FEW))


def test_a_generator_that_knows_its_heads_and_baselines_beside_it(table: pl.DataFrame) -> None:
    """Each first letter is one of a group's, but for none; half of the tails asked for are there."""
    found = figures(table)
    groups = ("all", "held_out", "profession", "gender", "relation/CapableOf", "relation/IsA")
    of = {group: found[f"quality/swap_lift/{group}"] for group in groups}
    assert of["held_out"] == pytest.approx(50)
    assert of["gender"] == pytest.approx((100 + 0) / 2)  # of the neutral tails that are there, and of IsA
    assert of["relation/CapableOf"] == pytest.approx(50)
    assert of["relation/IsA"] == 0  # accepted with every head
    assert (of["profession"], of["all"]) == (pytest.approx((50 + 0) / 2), pytest.approx((50 + 25) / 2))
    assert found["quality/swap_lift/all_low"] <= of["all"] <= found["quality/swap_lift/all_high"]
    for part in ("all", "held_out", "profession", "gender"):
        echo, constants, random, oracle = (found[f"quality/swap_lift_{name}/{part}"] for name in BASELINES)
        assert constants == 0
        assert echo <= 0
        assert abs(random) < 25
        assert oracle > 0
    assert found["quality/swap_lift_oracle/held_out"] == pytest.approx(100)


def test_relations_that_no_oracle_reaches_and_groups_without_tails_are_not_measured(table: pl.DataFrame) -> None:
    counts = dict(table.select("relation", "counts").unique().iter_rows())
    assert counts == {"CapableOf": True, "IsA": True, "UsedFor": False}
    assert set(table.filter(~pl.col("counts"))["system"]) == {"oracle"}
    prompts = held_out_prompts(triples(), LISTED, ["CapableOf"], 250)
    nothing = pl.DataFrame(schema=PROBED)
    statements = said(TARGETS, LETTER)
    table = lift_table(statements, nothing, triples(), TARGETS, ["CapableOf"], prompts, SameLetter(), top=1)
    found = figures(table)
    assert found["quality/swap_lift/held_out"] is None
    assert found["quality/swap_lift/profession"] == found["quality/swap_lift/all"] == pytest.approx(100)
