"""Figures of an audit for one scorer's labels, overall and per category, with their intervals."""

from collections.abc import Mapping

import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import (
    NEUTRAL_SHARES,
    POLARISED,
    POLARISED_SHARES,
    Figures,
    counts,
    representation_disparity,
    share_figures,
)
from mitigate.measure.metric_frame import MetricFrame
from mitigate.measure.uncertainty import mean_and_variance_bounds, named_bounds
from mitigate.metrics import REPRESENTATION, Share, Statistic, harm_key, with_part
from mitigate.triples import FAVOURITISM, PREJUDICE

SHARES: tuple[Share, ...] = ("neutral", "prejudice", "favouritism")
OF_AUDITS: tuple[tuple[Share, Statistic], ...] = (("polarised", "mean"), *((share, "largest") for share in POLARISED))


def names(scorer: str) -> dict[str, tuple[str, str]]:
    """The names of the mean and the variance over targets of each share: NSM and NSV for the share neutral in
    sentiment, "sentiment/O-" and "sentiment/D_O-" (eq. 4) for the share prejudiced, and so on."""
    return {share: (harm_key(scorer, "mean", share), harm_key(scorer, "variance", share)) for share in SHARES}


def figures(table: pl.DataFrame, scorer: str) -> Figures:
    """Means and variances of all shares, and the percentage polarised in two ways: of all statements
    ("sentiment/polarised") and as the mean over targets ("sentiment/polarised_mean"); the largest O- and O+ of any
    target ("sentiment/largest_O-").

    table: the result of tally.per_target or harms.per_target."""
    return share_figures(table, scorer, (*POLARISED_SHARES, *NEUTRAL_SHARES, *OF_AUDITS))


def of_all_texts(tallied: pl.DataFrame, column: str, scorer: str) -> Figures:
    """A scorer's percentages over all texts, about a target or not ("all_texts/sentiment/polarised" ...), and the
    number of texts; empty where they were not tallied (tally.tally_rows)."""
    rows = tallied.filter(pl.col("column") == column, pl.col("target").is_null())
    counts = dict(rows.select("label", "count").iter_rows())
    if not counts:
        return {}
    whole = sum(counts.values())
    prejudice, favouritism = (100 * counts.get(label, 0) / whole for label in (PREJUDICE, FAVOURITISM))
    return {
        harm_key(scorer, "all texts", "statements"): whole,
        harm_key(scorer, "all texts", "prejudice"): prejudice,
        harm_key(scorer, "all texts", "favouritism"): favouritism,
        harm_key(scorer, "all texts", "polarised"): prejudice + favouritism,
    }


def representation(table: pl.DataFrame, clusters: Mapping[str, str], bootstrap: Bootstrap) -> dict[str, float | None]:
    """D_R (eq. 3) with its bounds, and the number of targets, of targets without statements, and of statements."""
    found: dict[str, float | None] = {**counts(table), **representation_disparity(table)}
    for category, part in MetricFrame.by_category(table):
        most = max(1, *part["statements"].to_list())  # as percentages, which intervals of variances are made for
        shares = part.with_columns(statements=100 * pl.col("statements") / most)
        _, interval = mean_and_variance_bounds(shares, ["statements"], clusters, bootstrap)
        found |= named_bounds(with_part(REPRESENTATION, category), [ends[0] for ends in interval], (most / 100) ** 2)
    return found
