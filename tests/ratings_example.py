"""Ratings of two models' statements by three people, made up, and their page."""

from typing import Any

import polars as pl

from mitigate.measure.intervals import Bootstrap
from mitigate.recipes.rated_scorers import agreement
from mitigate.report import ratings
from mitigate.report.page import Page
from mitigate.tasks.ratings import anchors, figures
from mitigate.tasks.ratings.agreement import FIGURES


def frames() -> dict[str, pl.DataFrame]:
    """What three raters said of two models' statements about three targets, and two pairs of sources of different
    batches, of which one has too few anchors."""
    rows = [
        (source, f"{source}{target}", target, "gender", "IsA", "said", f"rater {rater}", label, True)
        for source, labels in (("<none>", (-1, 0, 1)), ("both", (0, 0, 0)))
        for target in ("he", "she", "lady")
        for rater, label in enumerate(labels, start=1)
    ]
    names = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    rated, few = pl.DataFrame(rows, schema=names, orient="row"), Bootstrap(resamples=100)
    drifts = [
        {"source": source, "baseline": "earlier", "figure": "polarised", "weights": weights, "anchors": number}
        | {"total": -4.0, "total_low": -7.0, "total_high": -1.0}
        | ({} if number < 9 else {"drift": -3.0, "remaining": -1.0, "remaining_low": -4.0, "remaining_high": 2.0})
        for source, number in (("both", 2), ("<none>", 90))
        for weights in (anchors.AS_THEY_ARE, anchors.EQUALLY)[: 1 if number < 9 else 2]
    ]
    scorers = pl.DataFrame({"resource": ["<none>"], "scorer": ["always_neutral"], "against": ["rating"]})
    return {
        "summary": figures.summary(rated, ["<none>", "both"], few),
        "raters": figures.raters(rated),
        "differences": figures.differences(rated, ["<none>", "both"], few),
        "drift": pl.DataFrame(drifts, schema=anchors.DRIFT),
        "scorers": scorers.with_columns(pl.lit(0.5).alias(name) for name in FIGURES),
    }


def example_ratings(source: str = "both", **changed: Any) -> Page:
    """changed: tables in place of those of frames()."""
    shown = {**frames(), **changed}
    about = {"name": "humans", "command": "python -m mitigate recipe=humans", "notices": ["a <notice>"]}
    return ratings.page(shown, source, agreement(shown["scorers"]), demonstration=True, **about)
