"""Swap lift: the rate at which tails are accepted as plausible with their own head minus the rate with other heads.
Tails that suit any head, which need no knowledge, raise the share of accepted tails but not swap lift. The caller
chooses the classifier."""

import math
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from mitigate.measure.intervals import Bootstrap, cluster_numbers
from mitigate.score.validity import is_echo

OTHERS = 4
"""The number of other heads with which the tails of a head are combined."""

ROUNDING = 1e-9
"""Percentage points by which a sum that is exactly 0 may be off."""

PROMPT = ["group", "head", "relation"]


class Lift(NamedTuple):
    """A swap lift in percentage points, and the bounds of its interval; None where there is nothing to measure."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


def other_heads(prompts: pl.DataFrame, count: int = OTHERS, seed: int = 1) -> pl.DataFrame:
    """Draw `count` other heads for each prompt (group, head, relation), of its group and with the same relation: a
    table (group, head, relation, other).

    The heads of a relation are put into a circle in an order drawn by seed, and the others of a head are those behind
    it, so that each head is drawn equally often. Relations with too few heads are left out."""
    found = []
    for (group, relation), rows in prompts.group_by("group", "relation", maintain_order=True):
        heads = rows["head"].unique().sort().to_numpy()
        if len(heads) <= count:
            continue
        draws = np.random.default_rng([seed, crc32(f"{group}\t{relation}".encode())])
        circle = heads[draws.permutation(len(heads))]
        found += [
            pl.DataFrame({"group": group, "head": circle, "relation": relation, "other": np.roll(circle, -step)})
            for step in range(1, count + 1)
        ]
    schema = dict.fromkeys([*PROMPT, "other"], pl.String)
    return pl.concat([pl.DataFrame(schema=schema), *(frame.cast(pl.Schema(schema)) for frame in found)])


def shares(
    prompts: pl.DataFrame, own: pl.DataFrame, swapped: pl.DataFrame, num_tails: int | None = None
) -> pl.DataFrame:
    """The prompts (group, head, relation) with `accepted`, the percentage of their tails that is accepted with their
    own head, and `elsewhere`, the same with the other heads.

    own: (group, head, relation, tail, accepted); swapped: the same with `other`, the head with which a tail is accepted
    or not. A tail that repeats its head (is_echo) is not accepted, whatever the classifier returns: a generator that
    repeats heads would otherwise score by phrases such as "a dog is a dog". num_tails: of each prompt; missing
    tails count as not accepted, so that a generator does not gain by leaving out uncertain tails. None: only
    the tails present count, and prompts without any are left out."""
    here = own.with_columns(pl.col("accepted") & ~is_echo()).group_by(PROMPT).agg(pl.len(), pl.col("accepted").sum())
    there = swapped.with_columns(pl.col("accepted") & ~is_echo("other"))
    there = there.group_by(PROMPT).agg(pl.col("accepted").sum().alias("elsewhere"), pl.col("other").n_unique())
    table = prompts.select(PROMPT).unique(maintain_order=True)
    for found in (here, there):
        table = table.join(found, on=PROMPT, how="left" if num_tails else "inner", maintain_order="left")
    size = pl.lit(num_tails) if num_tails else pl.col("len")
    return table.select(
        *PROMPT,
        accepted=(100 * pl.col("accepted") / size).fill_null(0.0),
        elsewhere=(100 * pl.col("elsewhere") / (size * pl.col("other"))).fill_null(0.0),
    )


def with_weights(table: pl.DataFrame) -> pl.DataFrame:
    """The prompts with `weight`: all groups of heads have the same weight, and so have the prompts of one group."""
    return table.with_columns(weight=1 / pl.len().over("group"))


def swap_lift(
    table: pl.DataFrame, clusters: Mapping[str, str] | None = None, bootstrap: Bootstrap | None = None
) -> Lift:
    """The mean over prompts (group, head, accepted, elsewhere, weight) of

        lift = accepted with the own head - accepted with other heads, in percentage points,

    with its interval over heads (BCa; prompts about one head, and inflections of one word by `clusters`, are drawn
    together). 0: the tails suit other heads as well; 100: all tails are accepted, and with no other head. A generator
    that has the same tails for every head scores 0 by construction, because other_heads takes each head equally often;
    one that repeats the head scores 0 or less. The idea is that of permuted pairs in evaluations of dialogue and
    retrieval: a reply that suits any question does not answer this one.

    Source: this project; no paper defines it."""
    if table.is_empty():
        return Lift()
    values = (table["accepted"] - table["elsewhere"]).to_numpy()[:, None]
    weights = table["weight"].to_numpy()[:, None]
    value = float((weights * values).sum() / weights.sum())
    value = 0.0 if abs(value) < ROUNDING else value
    if bootstrap is None:
        return Lift(value)
    interval = bootstrap.weighted_mean(values, weights, cluster_numbers(table, clusters or {}, "head"))
    bounds = [bound.item() for bound in interval]
    return Lift(value, *(None if math.isnan(bound) else bound for bound in bounds))
