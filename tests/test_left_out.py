"""What was cut, dropped, left untrained or linked elsewhere is reported, and a repeated command says where
its results are."""

from pathlib import Path

import polars as pl
import pytest
from small_models import save_gpt1

from mitigate.measure.filtered import loss_notices, untrained
from mitigate.measure.run import RunMeasurement, untrained_notices
from mitigate.measure.statements import LONG, long_texts
from mitigate.train.base_model import cut_notices
from mitigate.train.generator import open_generator

LONG_TARGETS = ["a b c d e f g h i j k", "a b c d e f g h i j l"]  # eleven letters, each a token


def asked(*targets: str) -> pl.DataFrame:
    return pl.DataFrame({"target": targets, "head": targets})


def triples(*pairs: tuple[str, str]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={"head": pl.String, "tail": pl.String}, orient="row")


def test_heads_and_tails_beyond_the_slots(tmp_path: Path) -> None:
    start = open_generator(save_gpt1(tmp_path / "gpt1", ["a b c d e f g h i j k l m n o p q r"] * 9))
    assert cut_notices(start, asked("a b", "k"), triples(("a", "b c"))) == []
    one = cut_notices(start, asked("a b", LONG_TARGETS[0]), triples())
    assert one == [
        "1 head of the probe is longer than the 10 tokens that the model reads of a head, and cut: "
        f"{LONG_TARGETS[0]!r}."
    ]
    both = cut_notices(start, asked("b", *LONG_TARGETS), triples())
    assert both[1] == (
        f"The first 10 tokens of {LONG_TARGETS[0]!r} and {LONG_TARGETS[1]!r} are the same, and the model reads no "
        "more: it generates the same tails for them. Choose targets that differ within these tokens."
    )
    fits, long = "b c d e f g h i j k l m n o p", "b c d e f g h i j k l m n o p q"
    rows = triples(("a", long), ("b", long), (LONG_TARGETS[0], "b"), ("a", fits))
    assert cut_notices(start, asked("a"), rows) == [
        "Of 4 training triples some are cut: 1 head to 10 tokens, 2 tails to 15 tokens."
    ]


def ledger(*rows: tuple[str, float, int], added: int = 0) -> pl.DataFrame:
    """(relation, weight, number of triples); the last `added` triples are the policy's."""
    spread = [(relation, weight) for relation, weight, number in rows for _ in range(number)]
    table = pl.DataFrame(spread, schema={"relation": pl.String, "weight": pl.Float32}, orient="row")
    sources = [None] * (table.height - added) + [1] * added
    return table.with_columns(split=pl.lit("train"), source_row=pl.Series(sources, dtype=pl.UInt32))


@pytest.mark.parametrize(
    ("table", "notices"),
    [
        (ledger(("IsA", 1.0, 5), ("Desires", 0.0, 3)), ["The policy drops all training triples of Desires (3)."]),
        (ledger(("IsA", 0.0, 91), ("IsA", 1.0, 9)), ["takes more than 90 % of the training triples of IsA (100)."]),
        (ledger(("IsA", 0.0, 90), ("IsA", 1.0, 10)), []),
        (ledger(("IsA", 0.0, 4), ("IsA", 1.0, 4), added=4), []),
        (ledger(("IsA", 0.0, 4)).with_columns(split=pl.lit("dev")), []),
    ],
)
def test_relations_that_lose_their_triples(table: pl.DataFrame, notices: list[str]) -> None:
    found = loss_notices(table)
    assert bool(found) == bool(notices)
    assert all(part in found[0] for part in notices)


def test_relations_that_are_asked_about_and_were_never_trained() -> None:
    table = ledger(("IsA", 1.0, 2), ("Desires", 0.0, 3))
    assert untrained(table, ["IsA", "Desires", "MadeOf"]) == {"Desires": 3, "MadeOf": 0}
    neutral = {"IsA": 0, "Desires": 1}
    statements = pl.DataFrame(
        [
            {"target": target, "category": "profession", "relation": relation, "regard": label, "regard_neutral": label}
            for target in ("lawyer", "nurse")
            for relation, label in neutral.items()
        ]
    )
    targets = statements.select("target", "category").unique(maintain_order=True)
    how = RunMeasurement(targets, ["regard"])
    (found,) = untrained_notices(table, statements, how)
    assert found == (
        "1 probed relation without a training triple: the policy dropped all of Desires (3). 2 of 4 generated "
        "statements have such a relation, and their labels say nothing about what the generator has learnt (neutral "
        "template: NRM is 50.0 with them and 100.0 without)."
    )
    assert untrained_notices(ledger(("IsA", 1.0, 1), ("Desires", 1.0, 1)), statements, how) == []


def test_texts_that_are_longer_than_scorers_are_made_for() -> None:
    assert long_texts(pl.Series(["word " * LONG])) == []
    (said,) = long_texts(pl.Series(["good bad " * 60, "he is kind"]))
    assert said.startswith("1 of 2 texts has more than 40 words, up to 120.")
