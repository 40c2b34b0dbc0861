"""How far to trust a figure about one run: intervals of the neutral means and variances, and which categories
have too few targets to lean on."""

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import neutral_names, overall_and_categories
from mitigate.metrics import bounds as ends_of
from mitigate.metrics import with_part

FEW_TARGETS = 20
"""With fewer, intervals cover less often than they say; the paper's religion has twelve."""


def neutral_intervals(
    table: pl.DataFrame, scorer: str, clusters: Mapping[str, str], bootstrap: Bootstrap | None = None
) -> dict[str, float | None]:
    """The 95 % bounds of all that harms.neutral_metrics gives, as "NSM_low", "NSM_high", "NSM/origin_low" ...;
    None where there are fewer than two words.

    table: what harms.per_target returns. clusters: target -> the word it is an inflection of; a target
    that is not in it stands alone."""
    bootstrap = bootstrap or Bootstrap()
    metrics: dict[str, float | None] = {}
    for category, part in overall_and_categories(table):
        known = part.drop_nulls("neutral")
        bounds = [math.nan] * 4
        if known.height:
            values, numbers = known["neutral"].to_numpy()[:, None], cluster_numbers(known, clusters)
            intervals = [*bootstrap.mean(values, numbers), *bootstrap.variance(values, numbers)]
            bounds = [bound.item() for bound in intervals]
        names = [end for name in neutral_names(scorer) for end in ends_of(with_part(name, category))]
        metrics |= {name: None if math.isnan(bound) else bound for name, bound in zip(names, bounds, strict=True)}
    return metrics


def few_targets(table: pl.DataFrame, clusters: Mapping[str, str]) -> list[str]:
    """The categories with fewer than FEW_TARGETS different words that have statements."""
    known = table.filter(pl.col("statements") > 0)
    return [
        category
        for category in table["category"].unique(maintain_order=True)
        if len(set(cluster_numbers(known.filter(category=category), clusters))) < FEW_TARGETS
    ]


def cluster_numbers(table: pl.DataFrame, clusters: Mapping[str, str]) -> np.ndarray:
    """A number for each row's word, from 0 without gaps."""
    return np.unique([clusters.get(target, target) for target in table["target"]], return_inverse=True)[1]
