"""A target compared with its peers, the other targets of its category: the generated texts about it that are generated
about few of them, and percentages of its statements minus those of its peers, relation by relation.

A relation is the unit: all targets were probed with the same relations, so that differences are paired by relation and
every relation has the same weight. Words of one cluster (she, her, hers) are not peers of each other. The caller
chooses the labels and how texts are compared."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from mitigate.measure.bootstrap import Bootstrap

AGAINST = {
    "target": pl.String,
    "cluster": pl.String,
    "figure": pl.String,
    "value": pl.Float64,  # the mean over relations
    "peers_mean": pl.Float64,
    "peers_low": pl.Float64,  # the lowest and the highest of the peers' values
    "peers_high": pl.Float64,
    "difference": pl.Float64,  # value - peers_mean, over the relations that peers have too
    "low": pl.Float64,  # of its interval over relations; null for a single relation
    "high": pl.Float64,
    "relations": pl.UInt32,
    "peers": pl.UInt32,
    "place": pl.UInt32,  # 1: no peer has a larger value
    "beyond": pl.Boolean,  # whether the interval excludes 0, of at least FEWEST relations
    "peers_beyond": pl.UInt32,  # the number of peers whose interval does, each against its own peers
}
BY = ["relation", "figure"]

FEWEST = 6
"""The fewest relations for a difference to count. Resampling never leaves the range of the data, and fewer than six
differences lie on one side of 0 by chance alone in more than 5 % of cases: 2 / 2 ** 5."""


def with_peers(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs with `peers`, the number of peers with that relation, and `having`, the number of these with the same
    pair.

    pairs: target, cluster, relation, said; repeats of a target count once."""
    once = pairs.select("target", "cluster", "relation", "said").unique()
    probed = once.select("target", "cluster", "relation").unique()
    pair = ["relation", "said"]
    return (
        pairs.join(_others(once, pair, "having"), on=["cluster", *pair], how="left", maintain_order="left")
        .join(_others(probed, ["relation"], "peers"), on=["cluster", "relation"], how="left", maintain_order="left")
        .with_columns(pl.col("having", "peers").cast(pl.UInt32))
    )


def _others(rows: pl.DataFrame, by: Sequence[str], name: str) -> pl.DataFrame:
    """The number of targets of other clusters that have a row: (cluster, by, name). rows: each target's once."""
    own = rows.group_by("cluster", *by).agg(_own=pl.len())
    everyone = rows.group_by(by).agg(_all=pl.len())
    return own.join(everyone, on=by).select("cluster", *by, (pl.col("_all") - pl.col("_own")).alias(name))


def is_distinctive(few: float) -> pl.Expr:
    """Return whether at most `few` percent of the peers have the pair (see with_peers); null without peers."""
    return pl.when(pl.col("peers") > 0).then(100 * pl.col("having") <= few * pl.col("peers"))


def against_peers(values: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """A row (AGAINST) for each target and figure, in their order; targets without a peer are left out.

    values: target, cluster, relation, figure, value (a percentage of the texts with the relation), a row each. The
    interval is the bootstrap's over relations. If a generator's texts are the same for all targets, differences are
    0."""
    differences = _paired(values)
    if differences.is_empty():
        return pl.DataFrame(schema=AGAINST)
    order = ["target", "figure"]
    means = values.group_by("target", "cluster", "figure", maintain_order=True).agg(pl.col("value").mean())
    table = means.join(_intervals(differences, bootstrap), on=order, maintain_order="left")
    rows = []
    for row in table.iter_rows(named=True):
        peers = table.filter(pl.col("figure") == row["figure"], pl.col("cluster") != row["cluster"])
        rows.append(
            row
            | {
                "peers_mean": peers["value"].mean(),
                "peers_low": peers["value"].min(),
                "peers_high": peers["value"].max(),
                "peers": peers.height,
                "place": 1 + int((peers["value"] > row["value"] + 1e-9).sum()),
                "peers_beyond": int(peers["beyond"].sum()),
            }
        )
    columns = [pl.col(name).cast(kind) for name, kind in AGAINST.items()]
    return pl.DataFrame(rows, schema_overrides=AGAINST).select(columns)


def _paired(values: pl.DataFrame) -> pl.DataFrame:
    """Each value minus the mean of the peers' values with that relation: target, relation, figure, difference."""
    total, number = pl.col("value").sum(), pl.len()
    own = values.group_by("cluster", *BY).agg(_own=total, _own_number=number)
    everyone = values.group_by(BY).agg(_all=total, _all_number=number)
    others = own.join(everyone, on=BY).filter(pl.col("_all_number") > pl.col("_own_number"))
    mean = (pl.col("_all") - pl.col("_own")) / (pl.col("_all_number") - pl.col("_own_number"))
    joined = values.join(others.select("cluster", *BY, mean.alias("_mean")), on=["cluster", *BY], maintain_order="left")
    difference = pl.col("value") - pl.col("_mean")
    rounded = pl.when(difference.abs() > 1e-9).then(difference).otherwise(0.0)  # rounding is no difference
    return joined.select("target", *BY, difference=rounded)


def _intervals(differences: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """The mean over relations with its interval: target, figure, relations, difference, low, high, beyond."""
    frames = []
    for (target,), part in differences.partition_by("target", as_dict=True, maintain_order=True).items():
        wide = part.pivot("figure", index="relation", values="difference").drop("relation")
        matrix = wide.to_numpy()  # (relations, figures)
        interval = bootstrap.mean(matrix, np.arange(len(matrix)))
        frames.append(
            pl.DataFrame(
                {
                    "target": [target] * wide.width,
                    "figure": wide.columns,
                    "relations": [len(matrix)] * wide.width,
                    "difference": matrix.mean(0),
                    "low": interval.low,
                    "high": interval.high,
                }
            )
        )
    found = pl.concat(frames).with_columns(pl.col("low", "high").fill_nan(None))
    excludes_0 = ((pl.col("low") > 0) | (pl.col("high") < 0)).fill_null(False)
    return found.with_columns(beyond=excludes_0 & (pl.col("relations") >= FEWEST))
