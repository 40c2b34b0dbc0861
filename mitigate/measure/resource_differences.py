"""Differences between two resources in an audit's figures, paired by the targets that both have. A resource has no
training and no seeds: only the list of targets is left to chance. So each word is left out in turn, with all of its
cluster. The number of statements of a target is not modelled: few statements widen intervals by the sampling noise of
percentages, and make variances larger."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.audit_figures import SHARES, names
from mitigate.measure.bootstrap import cluster_numbers, cluster_sums, mean_of
from mitigate.measure.comparison import DIFFERENCES, mean_change, paired, row_of, variance_change
from mitigate.measure.metric_frame import MetricFrame
from mitigate.metrics import REPRESENTATION, harm_key, with_part

OF_SECOND = "_second"  # the suffix of the second resource's columns


def side_by_side(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The targets that have statements in both: target, category, and both tables' statements and shares, the second's
    with the suffix OF_SECOND. Tables are those of tally.per_target. Raises MitigateError when there is none."""
    before, after = (table.filter(pl.col("statements") > 0) for table in (first, second))
    joined = before.join(after.drop("category"), on="target", how="inner", suffix=OF_SECOND, maintain_order="left")
    if joined.is_empty():
        raise MitigateError("the resources cannot be compared: no target has statements in both")
    return joined


def shares(both: pl.DataFrame, scorer: str, clusters: Mapping[str, str]) -> pl.DataFrame:
    """A row of DIFFERENCES for each figure of resource.figures that has an interval, and for the share polarised, all
    named as there; overall and per category. both: the result of side_by_side."""
    rows = []
    for category, part in MetricFrame.by_category(both):
        numbers = cluster_numbers(part, clusters)
        for share in SHARES:
            first, second = (part.select(column).to_numpy() for column in (share, share + OF_SECOND))
            mean_name, variance_name = (with_part(name, category) for name in names(scorer)[share])
            rows.append(row_of(mean_name, part.height, mean_change(first, second, numbers)))
            rows.append(row_of(variance_name, part.height, variance_change(first, second, numbers)))
        name = harm_key(scorer, "pooled", "polarised", part=category)
        before, after = (_polarised_sums(part, end, numbers) for end in ("", OF_SECOND))
        rows.append(row_of(name, part.height, paired(before, after, mean_of)))
    return pl.DataFrame(rows, schema=DIFFERENCES)


def representation(both: pl.DataFrame, clusters: Mapping[str, str]) -> pl.DataFrame:
    """The rows of `shares` for D_R (eq. 3), the variance of the number of statements over the targets that both
    resources have."""
    rows = []
    for category, part in MetricFrame.by_category(both):
        first, second = (part.select("statements" + end).cast(pl.Float64).to_numpy() for end in ("", OF_SECOND))
        found = variance_change(first, second, cluster_numbers(part, clusters))
        rows.append(row_of(with_part(REPRESENTATION, category), part.height, found))
    return pl.DataFrame(rows, schema=DIFFERENCES)


def rank_correlation(both: pl.DataFrame, share: str) -> float | None:
    """Spearman's rank correlation over targets: 1 where both rank them the same by this share; None where one has the
    same share for all."""
    values = [both[column].to_numpy() for column in (share, share + OF_SECOND)]
    if any(np.ptp(side) == 0 for side in values):
        return None
    return float(stats.spearmanr(*values).statistic)


def _polarised_sums(part: pl.DataFrame, end: str, clusters: np.ndarray) -> np.ndarray:
    """Each word's number of statements and 100 times its polarised ones, (2, words, 1): their ratio is the percentage
    of all statements that are polarised, which is not a mean over targets."""
    counts = part.select("statements" + end).to_numpy()
    percentages = part.select(pl.col("prejudice" + end) + pl.col("favouritism" + end)).to_numpy()
    return np.concatenate([cluster_sums(values, clusters, powers=(1,)) for values in (counts, counts * percentages)])
