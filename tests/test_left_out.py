"""What was cut, dropped, left untrained or linked elsewhere is reported, and a repeated command says where
its results are."""

import polars as pl

from mitigate.measure.run import untrained, untrained_notices
from mitigate.score.labels import LONG, long_texts


def ledger(*rows: tuple[str, float, int], added: int = 0) -> pl.DataFrame:
    """(relation, weight, number of triples); the last `added` triples are the policy's."""
    spread = [(relation, weight) for relation, weight, number in rows for _ in range(number)]
    table = pl.DataFrame(spread, schema={"relation": pl.String, "weight": pl.Float32}, orient="row")
    sources = [None] * (table.height - added) + [1] * added
    return table.with_columns(split=pl.lit("train"), source_row=pl.Series(sources, dtype=pl.UInt32))


def test_relations_that_are_asked_about_and_were_never_trained() -> None:
    table = ledger(("IsA", 1.0, 2), ("Desires", 0.0, 3))
    assert untrained(table, ["IsA", "Desires", "MadeOf"]) == {"Desires": 3, "MadeOf": 0}
    statements = pl.DataFrame({"relation": ["IsA", "Desires", "IsA", "Desires"]})
    (found,) = untrained_notices(table, statements)
    assert found == (
        "There is no training triple of 1 probed relation: the policy dropped all of Desires (3). 2 of 4 generated "
        "statements have such a relation, and their labels say nothing about what the generator has learnt."
    )
    assert untrained_notices(ledger(("IsA", 1.0, 1), ("Desires", 1.0, 1)), statements) == []


def test_texts_that_are_longer_than_scorers_are_made_for() -> None:
    assert long_texts(pl.Series(["word " * LONG])) == []
    (said,) = long_texts(pl.Series(["good bad " * 60, "he is kind"]))
    assert said.startswith("1 of 2 texts has more than 40 words, up to 120.")
