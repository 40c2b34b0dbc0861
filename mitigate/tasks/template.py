"""What the wording of relations adds to labels: each phrase's own, and how many triples each policy drops by it."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.filter import Policy, apply
from mitigate.relations import comet_relations
from mitigate.triples import ROLES, TEMPLATES
from mitigate.verbalise import MASK

POLICIES: Mapping[str, Sequence[str]] = {**{role: [role] for role in ROLES}, "both": list(ROLES)}
"""The paper's filters: name -> the scorers whose polarised triples they drop."""


def carriers() -> pl.DataFrame:
    """COMeT's 34 relations, each phrase behind "this person" and with nothing after it: relation, phrase,
    neutral_phrase, masked, masked_neutral."""
    wanted = comet_relations()
    return pl.DataFrame(
        {
            "relation": [relation.name for relation in wanted],
            "phrase": [relation.phrase for relation in wanted],
            "neutral_phrase": [relation.neutral_phrase for relation in wanted],
            "masked": [f"{MASK} {relation.phrase}" for relation in wanted],
            "masked_neutral": [f"{MASK} {relation.neutral_phrase}" for relation in wanted],
        }
    )


def count_drops(labelled: pl.DataFrame) -> pl.DataFrame:
    """A row for each relation: its triples, and in the column {policy}/{template} how many of them that drops."""
    columns = [f"{policy}/{template}" for policy in POLICIES for template in TEMPLATES]
    dropped = [
        (apply(Policy(policy, scorers, template), labelled)["weight"] == 0).alias(f"{policy}/{template}")
        for policy, scorers in POLICIES.items()
        for template in TEMPLATES
    ]
    rows = labelled.select("relation").with_columns(dropped)
    return rows.group_by("relation", maintain_order=True).agg(pl.len().alias("triples"), pl.col(columns).sum())


def totals(drops: pl.DataFrame) -> dict[str, Any]:
    """The same over all relations."""
    return drops.drop("relation").sum().row(0, named=True)
