"""Whether two resources speak differently of the targets that both speak of: an audit's figures, paired by target.

A resource is no draw of a training, and has no seeds: what is left to chance is which words stand in the list of
targets. So words are resampled, inflections together, and the p-value is that of a sign-flip test over words: how often
figures would lie as far apart if it did not matter for each word which resource is which. How few statements a target
has is not modelled: it widens intervals by the sampling noise of its percentages, and makes variances larger."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.comparison import DIFFERENCES, mean_difference, paired, variance_difference
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


def shares(both: pl.DataFrame, scorer: str, clusters: Mapping[str, str], bootstrap: Bootstrap) -> pl.DataFrame:
    """A row of DIFFERENCES for each figure of resource.figures that has an interval, and for the share polarised, all
    named as there; overall and per category. both: what side_by_side returns."""
    rows: list[tuple] = []
    for category, part in overall_and_categories(both):
        numbers = cluster_numbers(part, clusters)
        for share in SHARES:
            first, second = (part.select(column).to_numpy() for column in (share, share + OF_SECOND))
            mean_name, variance_name = (with_part(name, category) for name in names(scorer)[share])
            rows.append((mean_name, part.height, *mean_difference(first, second, numbers, bootstrap)))
            rows.append((variance_name, part.height, *variance_difference(first, second, numbers, bootstrap)))
        found = _polarised(part, numbers, bootstrap)
        rows.append((harm_key(scorer, "pooled", "polarised", part=category), part.height, *found))
    return pl.DataFrame(rows, schema=DIFFERENCES, orient="row").fill_nan(None)


def representation(both: pl.DataFrame, clusters: Mapping[str, str], bootstrap: Bootstrap) -> pl.DataFrame:
    """The same for D_R (eq. 3), the variance of the number of statements, of the targets that both speak of."""
    counts = ["statements", "statements" + OF_SECOND]
    unit = both.select(counts).to_numpy().max() / 100  # percentages are what intervals of variances are made for
    rows = []
    for category, part in overall_and_categories(both):
        first, second = (part.select(column).to_numpy() / unit for column in counts)
        *figures, p, detectable = variance_difference(first, second, cluster_numbers(part, clusters), bootstrap)
        squared = [unit**2 * figure for figure in figures]
        rows.append((with_part(REPRESENTATION, category), part.height, *squared, p, unit**2 * detectable))
    return pl.DataFrame(rows, schema=DIFFERENCES, orient="row").fill_nan(None)


def rank_correlation(both: pl.DataFrame, share: str) -> float | None:
    """Spearman's, over targets: 1 where both rank them alike by this share; None where one has the same for all."""
    values = [both[column].to_numpy() for column in (share, share + OF_SECOND)]
    if any(np.ptp(side) == 0 for side in values):
        return None
    return float(stats.spearmanr(*values).statistic)


def _polarised(part: pl.DataFrame, clusters: np.ndarray, bootstrap: Bootstrap) -> tuple:
    """Of the percentage of all statements that are polarised. It is no mean over targets, so what a target adds to the
    difference is its jackknife pseudo-value: the difference, and how far it hangs on that target. Where a few targets
    have most of the statements (a log-normal spread of 1 to 1.5) interval and test err in 7 to 14 % of cases, not 5."""
    (first, first_weights), (second, second_weights) = (
        (
            part.select(pl.col("prejudice" + end) + pl.col("favouritism" + end)).to_numpy(),
            part.select(pl.col("statements" + end) / pl.col("statements" + end).sum()).to_numpy(),
        )
        for end in ("", OF_SECOND)
    )
    before, after = (first * first_weights).sum(), (second * second_weights).sum()
    influence = second_weights * (second - after) - first_weights * (first - before)
    gains = after - before + part.height * influence
    interval = bootstrap.weighted_mean_difference((first, first_weights), (second, second_weights), clusters)
    return before, after, *paired(gains, interval, clusters, bootstrap)
