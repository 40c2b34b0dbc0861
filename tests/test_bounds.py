"""Intervals without an upper bound, and variances of a single target."""

import math

import polars as pl

from mitigate.measure import bootstrap
from mitigate.measure.audit_figures import representation
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import neutral_metrics, representation_disparity, share_figures
from mitigate.measure.uncertainty import as_bound, neutral_intervals


def per_target(*neutral: float) -> pl.DataFrame:
    """A table of so many targets, each of its own category but for the first two."""
    names = [f"word {number}" for number in range(len(neutral))]
    categories = ["gender", "gender", "origin", "own"][: len(neutral)]
    return pl.DataFrame({"target": names, "category": categories, "neutral": list(neutral)}).with_columns(
        statements=pl.lit(10), prejudice=100 - pl.col("neutral"), favouritism=pl.lit(0.0)
    )


def test_variances_of_a_single_target_and_without_an_upper_bound() -> None:
    """Of two targets every second resample is constant, so that nothing bounds the variance."""
    found = neutral_metrics(per_target(50.0, 70.0, 80.0), "sentiment")
    assert (found["NSV/gender"], found["NSM/origin"], found["NSV/origin"]) == (100, 80, None)
    names = [f"{name}{part}" for name in ("D_R", "ngram/D_O-", "ngram/D_O+") for part in ("", "/gender")]
    disparity = [("prejudice", "variance"), ("favouritism", "variance")]
    found = representation_disparity(per_target(50.0)) | share_figures(per_target(50.0), "ngram", disparity)
    assert found == dict.fromkeys(names)
    table, few = per_target(50.0, 70.0), Bootstrap(resamples=200)
    found = neutral_intervals(table, "sentiment", {}, few)
    found |= representation(table.with_columns(statements=pl.Series([10, 30])), {}, few)
    for name in ("NSV", "D_R"):
        assert found[f"{name}_high"] is None
        assert found[f"{name}_low"] is not None
    bounds = (bootstrap.MOST_VARIANCE, math.nan, math.inf, 99.5)
    assert [as_bound(bound) for bound in bounds] == [None, None, None, 99.5]
