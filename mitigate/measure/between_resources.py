"""Whether two resources speak differently of the targets that both speak of: an audit's figures, paired by target.

A resource is no draw of a training, and has no seeds: what is left to chance is which words stand in the list of
targets. So each word is left out in turn, with all of its cluster. How few statements a target has is not modelled: it
widens intervals by the sampling noise of its percentages, and makes variances larger."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import cluster_sums, mean_of
from mitigate.measure.change import Change
from mitigate.measure.comparison import DIFFERENCES, mean_change, paired, row_of, variance_change
from mitigate.measure.harms import overall_and_categories
from mitigate.measure.resource import SHARES, names
from mitigate.measure.uncertainty import cluster_numbers
from mitigate.metrics import REPRESENTATION, harm_key, with_part

OF_SECOND = "_second"  # ends the names of the columns that the second resource fills


def side_by_side(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The targets that have statements in both: target, category, and both tables' statements and shares, those of the
    second with OF_SECOND behind. Tables are those of tally.per_target. Raises MitigateError when there is none."""
    spoken = [table.filter(pl.col("statements") > 0) for table in (first, second)]
    joined = spoken[0].join(
        spoken[1].drop("category"), on="target", how="inner", suffix=OF_SECOND, maintain_order="left"
    )
    if joined.is_empty():
        raise MitigateError("the resources cannot be compared: there is no target that both speak of")
    return joined


def shares(both: pl.DataFrame, scorer: str, clusters: Mapping[str, str]) -> pl.DataFrame:
    """A row of DIFFERENCES for each figure of resource.figures that has an interval, and for the share polarised, all
    named as there; overall and per category. both: what side_by_side returns."""
    rows = []
    for category, part in overall_and_categories(both):
        numbers = cluster_numbers(part, clusters)
        for share in SHARES:
            first, second = (part.select(column).to_numpy() for column in (share, share + OF_SECOND))
            mean_name, variance_name = (with_part(name, category) for name in names(scorer)[share])
            rows.append(row_of(mean_name, part.height, mean_change(first, second, numbers)))
            rows.append(row_of(variance_name, part.height, variance_change(first, second, numbers)))
        name = harm_key(scorer, "pooled", "polarised", part=category)
        rows.append(row_of(name, part.height, _polarised(part, numbers)))
    return pl.DataFrame(rows, schema=DIFFERENCES)


def representation(both: pl.DataFrame, clusters: Mapping[str, str]) -> pl.DataFrame:
    """The same for D_R (eq. 3), the variance of the number of statements, of the targets that both speak of."""
    rows = []
    for category, part in overall_and_categories(both):
        first, second = (part.select("statements" + end).cast(pl.Float64).to_numpy() for end in ("", OF_SECOND))
        found = variance_change(first, second, cluster_numbers(part, clusters))
        rows.append(row_of(with_part(REPRESENTATION, category), part.height, found))
    return pl.DataFrame(rows, schema=DIFFERENCES)


def rank_correlation(both: pl.DataFrame, share: str) -> float | None:
    """Spearman's, over targets: 1 where both rank them alike by this share; None where one has the same for all."""
    values = [both[column].to_numpy() for column in (share, share + OF_SECOND)]
    if any(np.ptp(side) == 0 for side in values):
        return None
    return float(stats.spearmanr(*values).statistic)


def _polarised(part: pl.DataFrame, clusters: np.ndarray) -> Change:
    """Of the percentage of all statements that are polarised: no mean over targets, but a ratio of their sums."""
    before, after = (_polarised_sums(part, end, clusters) for end in ("", OF_SECOND))
    return paired(before, after, mean_of)


def _polarised_sums(part: pl.DataFrame, end: str, clusters: np.ndarray) -> np.ndarray:
    """Each word's statements, and 100 times those polarised, (2, words, 1)."""
    counts = part.select("statements" + end).to_numpy()
    percentages = part.select(pl.col("prejudice" + end) + pl.col("favouritism" + end)).to_numpy()
    return np.concatenate([cluster_sums(values, clusters, powers=(1,)) for values in (counts, counts * percentages)])
