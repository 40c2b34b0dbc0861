"""Uncertainty of figures of one run: intervals of the neutral means and variances, and categories with too few
targets."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mitigate.measure.bootstrap import MOST_VARIANCE, Bootstrap, Interval, cluster_numbers, variance_interval
from mitigate.measure.harms import neutral_names
from mitigate.measure.metric_frame import MetricFrame
from mitigate.metrics import bounds as ends_of
from mitigate.metrics import with_part

FEW_TARGETS = 20
"""The fewest different words for figures that hold for others; the paper's religion has twelve."""


def neutral_intervals(
    table: pl.DataFrame, scorer: str, clusters: Mapping[str, str], bootstrap: Bootstrap | None = None
) -> dict[str, float | None]:
    """The bounds of all figures of harms.neutral_metrics, as intervals_of: "NSM_low", "NSM_high", "NSM/origin_low"."""
    return intervals_of(table, {"neutral": neutral_names(scorer)}, clusters, bootstrap or Bootstrap())


def intervals_of(
    table: pl.DataFrame, names: Mapping[str, tuple[str, str]], clusters: Mapping[str, str], bootstrap: Bootstrap
) -> dict[str, float | None]:
    """The 95 % bounds of means and variances over targets, overall and per category; None for fewer than two words, and
    for an upper bound that does not exist.

    table: the result of harms.per_target. names: of mean and variance, by the column of their percentages. clusters: as
    bootstrap.cluster_numbers has them."""
    found: dict[str, float | None] = {}
    for category, part in MetricFrame.by_category(table):
        bounds = mean_and_variance_bounds(part.drop_nulls("neutral"), list(names), clusters, bootstrap)
        for place, pair in enumerate(names.values()):
            for name, interval in zip(pair, bounds, strict=True):
                found |= named_bounds(with_part(name, category), [ends[place] for ends in interval])
    return found


def mean_and_variance_bounds(
    part: pl.DataFrame, columns: Sequence[str], clusters: Mapping[str, str], bootstrap: Bootstrap
) -> tuple[Interval, Interval]:
    """The intervals of the means and of the variances of percentages, (columns,) each."""
    if part.is_empty():
        unknown = np.full(len(columns), np.nan)
        return Interval(unknown, unknown), Interval(unknown, unknown)
    values, numbers = part.select(columns).to_numpy(), cluster_numbers(part, clusters)
    return share_interval(values, numbers, bootstrap), variance_interval(values, numbers, bootstrap.level)


def named_bounds(name: str, ends: Sequence[float], unit: float = 1.0) -> dict[str, float | None]:
    """The bounds of a figure by their keys, in multiples of a unit."""
    bounds = [as_bound(end) for end in ends]
    return {key: None if end is None else end * unit for key, end in zip(ends_of(name), bounds, strict=True)}


def mean_over_targets(
    table: pl.DataFrame, clusters: Mapping[str, str], bootstrap: Bootstrap
) -> tuple[float | None, float | None, float | None]:
    """The mean of the percentages of targets (target, share) with the bounds of its interval; None without targets, and
    for bounds of fewer than two words."""
    if table.is_empty():
        return None, None, None
    values = table["share"].to_numpy()[:, None]
    interval = share_interval(values, cluster_numbers(table, clusters), bootstrap)
    low, high = (None if math.isnan(end.item()) else end.item() for end in interval)
    return float(values.mean()), low, high


def share_interval(values: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> Interval:
    """The interval of the mean of percentages of targets, (targets, figures): the bootstrap's, and where all are 0, or
    all are 100, the rule of three (Hanley and Lippman-Hand 1983), without rounding. If none of n words differs, up to 1
    - 0.05 ** (1 / n) of all words may differ, about 3 / n, and these may differ completely. n counts words and not
    statements, since statements about one word are correlated. NaN for a single word, and where all have the same
    percentage between 0 and 100."""
    interval = bootstrap.mean(values, clusters)
    others = 100 * (1 - (1 - bootstrap.level) ** (1 / (clusters.max() + 1)))
    constant, first = (values == values[0]).all(axis=0) & ~np.isnan(interval.low), values[0]
    return Interval(
        np.select([~constant, first == 100, first == 0], [interval.low, 100 - others, 0], np.nan),
        np.select([~constant, first == 0, first == 100], [interval.high, others, 100], np.nan),
    )


def as_bound(value: float) -> float | None:
    """A bound of an interval of percentages; None for NaN and for MOST_VARIANCE, which bounds all variances."""
    return None if math.isnan(value) or value >= MOST_VARIANCE else float(value)


def few_targets(table: pl.DataFrame, clusters: Mapping[str, str]) -> list[str]:
    """The categories with fewer than FEW_TARGETS different words that have statements."""
    known = table.filter(pl.col("statements") > 0)
    return [
        category
        for category in table["category"].unique(maintain_order=True)
        if len(set(cluster_numbers(known.filter(category=category), clusters))) < FEW_TARGETS
    ]
