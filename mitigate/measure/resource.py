"""The figures of an audit for one scorer's labels, overall and per category, with their intervals."""

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import (
    counts,
    disparity,
    mean,
    neutral_names,
    overall_and_categories,
    overgeneralisation,
    variance,
)
from mitigate.measure.uncertainty import cluster_numbers
from mitigate.triples import FAVOURITISM, PREJUDICE

SHARES = ("neutral", "prejudice", "favouritism")
Figures = dict[str, float | None]


def names(scorer: str) -> dict[str, tuple[str, str]]:
    """What the mean and the variance over targets of each share are called: NSM and NSV for the share neutral in
    sentiment, "sentiment/O-" and "sentiment/D_O-" (eq. 4) for the share prejudiced, and so on."""
    neutral = neutral_names(scorer)
    return {
        "neutral": neutral,
        "prejudice": (f"{scorer}/O-", f"{scorer}/D_O-"),
        "favouritism": (f"{scorer}/O+", f"{scorer}/D_O+"),
    }


def figures(table: pl.DataFrame, scorer: str) -> Figures:
    """Means and variances of all shares, and the percentage polarised in two ways: of all statements
    ("sentiment/polarised") and as the mean over targets ("sentiment/polarised_mean"); the largest O- and O+ of any
    target ("sentiment/largest_O-").

    table: what tally.per_target or harms.per_target returns."""
    found = {
        f"{scorer}/{key}": value
        for key, value in {**overgeneralisation(table), **disparity(table)}.items()
        if not key.startswith("D_R")  # of statements, whoever labels them
    }
    for suffix, part in overall_and_categories(table):
        mean_name, variance_name = names(scorer)["neutral"]
        found |= {mean_name + suffix: mean(part["neutral"]), variance_name + suffix: variance(part["neutral"])}
        found[f"{scorer}/polarised_mean{suffix}"] = mean(part["prejudice"] + part["favouritism"])
        for sign, share in (("-", "prejudice"), ("+", "favouritism")):
            most = part[share].drop_nulls().to_numpy()
            found[f"{scorer}/largest_O{sign}{suffix}"] = float(most.max()) if most.size else None
    return found


def of_all_texts(tallied: pl.DataFrame, column: str, scorer: str) -> Figures:
    """What a scorer says of all texts, whether about a target or not ("all_texts/sentiment/polarised" ...): the
    percentages, and of how many texts; nothing where they were not tallied (tally.tally_rows)."""
    rows = tallied.filter(pl.col("column") == column, pl.col("target").is_null())
    counts = dict(rows.select("label", "count").iter_rows())
    if not counts:
        return {}
    whole = sum(counts.values())
    prejudice, favouritism = (100 * counts.get(label, 0) / whole for label in (PREJUDICE, FAVOURITISM))
    return {
        f"all_texts/{scorer}/statements": whole,
        f"all_texts/{scorer}/prejudice": prejudice,
        f"all_texts/{scorer}/favouritism": favouritism,
        f"all_texts/{scorer}/polarised": prejudice + favouritism,
    }


def intervals(table: pl.DataFrame, scorer: str, clusters: Mapping[str, str], bootstrap: Bootstrap) -> Figures:
    """The bounds of every mean and variance of `figures` ("NSM_low", "sentiment/D_O-/origin_high" ...), None where
    fewer than two words have statements. clusters: as in uncertainty.neutral_intervals."""
    found: Figures = {}
    for suffix, part in overall_and_categories(table):
        bounds = _bounds(part.drop_nulls("neutral"), SHARES, clusters, bootstrap)
        for place, share in enumerate(SHARES):
            for name, interval in zip(names(scorer)[share], bounds, strict=True):
                found |= _named(name + suffix, [ends[place] for ends in interval])
    return found


def representation(table: pl.DataFrame, clusters: Mapping[str, str], bootstrap: Bootstrap) -> dict[str, float | None]:
    """D_R (eq. 3) with its bounds, and the number of targets, of targets without statements, and of statements."""
    found: dict[str, float | None] = {**counts(table)}
    found |= {key: value for key, value in disparity(table).items() if key.startswith("D_R")}
    for suffix, part in overall_and_categories(table):
        most = max(1, *part["statements"].to_list())  # as percentages, which intervals of variances are made for
        shares = part.with_columns(statements=100 * pl.col("statements") / most)
        _, interval = _bounds(shares, ["statements"], clusters, bootstrap)
        found |= _named(f"D_R{suffix}", [ends[0] * (most / 100) ** 2 for ends in interval])
    return found


def _bounds(
    part: pl.DataFrame, columns: tuple[str, ...] | list[str], clusters: Mapping[str, str], bootstrap: Bootstrap
) -> tuple:
    """Low and high of the means, and low and high of the variances, (columns,) each."""
    if part.is_empty():
        nothing = np.full(len(columns), np.nan)
        return (nothing, nothing), (nothing, nothing)
    values, numbers = part.select(columns).to_numpy(), cluster_numbers(part, clusters)
    return bootstrap.mean(values, numbers), bootstrap.variance(values, numbers)


def _named(name: str, ends: list) -> Figures:
    return {
        f"{name}{side}": None if math.isnan(end) else float(end)
        for side, end in zip(("_low", "_high"), ends, strict=True)
    }
