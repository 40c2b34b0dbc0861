"""Tails of generators that know nothing of a head, or of one that knows what is written: what swap lift is held
against. As files they can take a generator's place (model=tails)."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import polars as pl

from mitigate.tasks.quality import is_neutral
from mitigate.triples import ROLES

TOP = 10  # tails of a prompt
POOL = 100  # random tails of a relation: a classifier reads each phrase, and many phrases take long


def constant_tails(labelled: pl.DataFrame, top: int = TOP, scorers: Sequence[str] = ROLES) -> pl.DataFrame:
    """The `top` commonest tails of each relation among the neutral training triples, the commonest first: (relation,
    tail), to be said of every head. labelled: triples labelled by the scorers, such as a run's score.parquet."""
    counted = _training(labelled, scorers).group_by("relation", "tail").len()
    ranked = counted.sort("relation", "len", "tail", descending=[False, True, False])
    return ranked.group_by("relation", maintain_order=True).head(top).select("relation", "tail")


def echo_tails(prompts: pl.DataFrame) -> pl.DataFrame:
    """For each prompt (head, relation) its head as the tail: (head, relation, tail)."""
    return prompts.select("head", "relation", tail="head").unique(maintain_order=True)


def random_tails(
    labelled: pl.DataFrame, prompts: pl.DataFrame, top: int = TOP, seed: int = 1, scorers: Sequence[str] = ROLES
) -> pl.DataFrame:
    """For each prompt (head, relation, and whatever else) `top` draws, without the repeats, from POOL tails of the
    relation that were drawn from its neutral training triples, a common tail more often: the prompts with `tail`."""
    training = _training(labelled, scorers).sort("relation", "tail").partition_by("relation", as_dict=True)
    found = []
    for (relation,), rows in prompts.unique(maintain_order=True).group_by("relation", maintain_order=True):
        if (relation,) not in training:
            continue
        random = np.random.default_rng([seed, crc32(str(relation).encode())])
        pool = random.choice(training[relation,]["tail"].to_numpy(), POOL)
        tails = random.choice(pool, (len(rows), top)).tolist()
        found.append(rows.with_columns(tail=pl.Series(tails, dtype=pl.List(pl.String))))
    empty = prompts.clear().with_columns(tail=pl.lit(None, pl.List(pl.String)))
    return pl.concat([empty, *found]).explode("tail").unique(maintain_order=True)


def _training(labelled: pl.DataFrame, scorers: Sequence[str]) -> pl.DataFrame:
    return labelled.filter(pl.col("split") == "train", is_neutral(scorers))
