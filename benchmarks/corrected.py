"""Shares of polarised statements corrected for a scorer's errors.

A scorer with sensitivity Se and specificity Sp labels p = pi Se + (1 - pi)(1 - Sp) of the statements polarised where pi
are; so pi = (p + Sp - 1) / (Se + Sp - 1) (Rogan and Gladen 1978). The correction assumes that Se and Sp are the same as
on the statements on which the scorer was measured: they differ for another source, or another mix of statements."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl

from mitigate.measure.base import bounds
from mitigate.models.heads import fold_of
from mitigate.score.people import plain
from mitigate.triples import TEMPLATES

CROWD = Path(__file__).with_name("crowd_accuracy.csv")
"""The accuracy of `crowd`, a scorer of version 0.2."""
Z = NormalDist().inv_cdf(0.975)
WORTH = 0.1
"""Least Se + Sp - 1: a scorer nearer to chance corrects nothing."""
FEWEST = 20
"""Polarised and neutral rated statements, for an accuracy to be known."""
RATES = ("sensitivity", "specificity")


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a scorer on one source, from 0 to 1, with standard errors. sensitivity: the share it labels
    polarised among statements that most raters find polarised. specificity: the share it labels neutral among the
    others."""

    sensitivity: float
    sensitivity_error: float
    specificity: float
    specificity_error: float


def known_accuracy(source: str, path: Path = CROWD, template: str = TEMPLATES[0]) -> dict[str, Accuracy]:
    """Accuracy of a classifier on rated statements of a source with a template, by category, from its accuracy.csv; ""
    for all of them. Parts with fewer than FEWEST polarised or neutral statements are left out."""
    table = pl.read_csv(path, glob=False)
    if "template" not in table.columns:  # a file from earlier code has the paper's alone
        table = table.with_columns(template=pl.lit(TEMPLATES[0]))
    enough = pl.min_horizontal("polarised", pl.col("statements") - pl.col("polarised")) >= FEWEST
    found = {}
    for row in table.filter(enough, template=template, source=source).rows(named=True):
        figures = ((row[name], standard_error(*(row[bound] for bound in bounds(name)))) for name in RATES)
        found["" if row["category"] == "all" else row["category"]] = Accuracy(*chain.from_iterable(figures))
    return found


def corrected_share(share: float, error: float, accuracy: Accuracy) -> tuple[float, float, float] | None:
    """The share of truly polarised statements, from 0 to 1, with its 95 % interval, from the share that the scorer
    labels polarised and its standard error.

    The variance is Rogan and Gladen's (1978), which includes the errors of sensitivity and specificity. Values are
    clipped to 0 and 1. None where the scorer is nearly at chance, and where the whole interval is beyond 0 or 1: then
    sensitivity and specificity are not those of these statements."""
    gain = accuracy.sensitivity + accuracy.specificity - 1
    if gain < WORTH:
        return None
    found = (share + accuracy.specificity - 1) / gain
    variance = error**2 + (found * accuracy.sensitivity_error) ** 2 + ((1 - found) * accuracy.specificity_error) ** 2
    reach = Z * variance**0.5 / gain
    if found + reach < 0 or found - reach > 1:
        return None
    low, value, high = (min(max(bound, 0.0), 1.0) for bound in (found - reach, found, found + reach))
    return value, low, high


def share_error(polarised: np.ndarray, statements: np.ndarray, clusters: np.ndarray) -> float:
    """The standard error of a pooled share, sum of polarised over sum of statements, when targets of one cluster vary
    together: that of a ratio, from each cluster's influence on it. NaN where there are fewer than two clusters.

    polarised, statements: of each target, (targets,); clusters: a number for each target, from 0 without gaps."""
    sums = np.stack([np.bincount(clusters, part) for part in (polarised, statements)])
    above, below = sums.sum(axis=1)
    influence = (sums[0] - above / below * sums[1]) / below
    size = len(influence)
    return float(np.sqrt((influence**2).sum() * size / (size - 1))) if size > 1 else np.nan


def standard_error(low: float, high: float) -> float:
    """The standard error of a figure with this 95 % interval."""
    return (high - low) / (2 * Z)


def half_of(rated: pl.DataFrame, half: str) -> pl.DataFrame:
    """Select the rated statements (masked, cluster) of a half of the clusters of targets, or all. A masked text that
    both halves have stays in one of them."""
    if half == "all":
        return rated
    rows = [(plain(text), fold_of(cluster) % 2) for text, cluster in rated.select("masked", "cluster").rows()]
    distinct, place = set(rows), ("first", "second").index(half)
    in_both = {text for text, own in distinct if (text, 1 - own) in distinct}
    kept = [own == place and (text not in in_both or fold_of(text) % 2 == place) for text, own in rows]
    return rated.filter(pl.Series(kept))
