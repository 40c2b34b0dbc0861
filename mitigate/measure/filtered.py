"""Effects of a policy on training triples: counts, and notices of relations that it drops."""

from collections.abc import Sequence

import polars as pl

from mitigate.measure.quality import OF_RESOURCE, kept_by_target
from mitigate.measure.results import by_category, measured
from mitigate.triples import valid_rows

MUCH = 90.0
"""Percent of a relation's training triples; a policy that takes more of them is reported."""
NAMED = 8  # relations in a notice
EMPTY = pl.col("lost") == 100.0


def by_relation(ledger: pl.DataFrame) -> pl.DataFrame:
    """Training triples of each relation (relation, triples, lost), the commonest first: the number in the resource, and
    the percentage of their weight that the policy takes away, net of what it adds."""
    train = valid_rows(ledger.filter(split="train"))
    sums = train.group_by("relation").agg(
        triples=OF_RESOURCE.sum(), weight=pl.col("weight").cast(pl.Float64).sum(), kept=(pl.col("weight") > 0).sum()
    )
    lost = pl.when(pl.col("kept") == 0).then(100.0).otherwise(100 * (1 - pl.col("weight") / pl.col("triples")))
    found = sums.filter(pl.col("triples") > 0).select("relation", "triples", lost=lost.clip(0.0))
    return found.sort("triples", "relation", descending=[True, False])


def loss_notices(ledger: pl.DataFrame) -> list[str]:
    """Notices of relations that lose all training triples, or nearly all, to a policy."""
    table, nearly = by_relation(ledger), f"takes more than {MUCH:.0f} % of the"
    found = []
    for takes, condition in (("drops all", EMPTY), (nearly, (pl.col("lost") > MUCH) & ~EMPTY)):
        rows = table.filter(condition).select("relation", "triples").iter_rows()
        if relations := [f"{name} ({triples:,})" for name, triples in rows]:
            found.append(f"The policy {takes} training triples of {named(relations)}.")
    return found


def untrained(ledger: pl.DataFrame, probed: Sequence[str]) -> dict[str, int]:
    """The probed relations without a training triple left, with the number that the resource has."""
    table = by_relation(ledger)
    triples = dict(table.select("relation", "triples").iter_rows())
    trained = set(table.filter(~EMPTY)["relation"])
    return {relation: triples.get(relation, 0) for relation in probed if relation not in trained}


def named(relations: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(relations) - NAMED} more" if len(relations) > NAMED else ""
    return ", ".join(relations[:NAMED]) + more


def measure_filter(ledger: pl.DataFrame) -> pl.DataFrame:
    """Results (measure.results.SCHEMA): numbers of training triples that the policy kept, dropped and added, and the
    shares of those about targets that it kept. ledger: what apply_policy returns."""
    of_targets = kept_by_target(ledger)
    found = measured("ledger", ledger.filter(pl.col("split") == "train"))
    return pl.concat([found, measured("training triples", of_targets, by_category(of_targets))])
