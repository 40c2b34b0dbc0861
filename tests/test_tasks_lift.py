"""Swap lift of a generator and of baselines on the same heads, with a classifier whose answer is a rule."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from mitigate.measure.intervals import Bootstrap
from mitigate.measure.lift import lift_groups, lift_table
from mitigate.measure.quality import BASELINES
from mitigate.measure.results import Results, measured
from mitigate.probe.beams import held_out_prompts
from mitigate.triples import PROBED, Labels
from mitigate.words.targets import list_of

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
