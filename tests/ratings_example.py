"""Made-up ratings: of two models' statements by three people, with their page."""

from typing import Any

import polars as pl

from mitigate.measure.agreement import FIGURES
from mitigate.measure.intervals import Bootstrap
from mitigate.report.page import Page
from mitigate.studies import humans


def frames() -> dict[str, pl.DataFrame]:
    """What three raters said of two models' statements about three targets."""
    rows = [
        (source, f"{source}{target}", target, "gender", "IsA", "said", f"rater {rater}", label, True)
        for source, labels in (("<none>", (-1, 0, 1)), ("both", (0, 0, 0)))
        for target in ("he", "she", "lady")
        for rater, label in enumerate(labels, start=1)
    ]
    names = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    rated, few = pl.DataFrame(rows, schema=names, orient="row"), Bootstrap(resamples=100)
    scorers = pl.DataFrame({"resource": ["<none>"], "scorer": ["always_neutral"], "against": ["rating"]})
    return {
        "summary": humans.summary(rated, ["<none>", "both"], few),
        "raters": humans.by_rater(rated),
        "differences": humans.differences(rated, ["<none>", "both"], few),
        "scorers": scorers.with_columns(pl.lit(0.5).alias(name) for name in FIGURES),
    }


def example_ratings(source: str = "both", **changed: Any) -> Page:
    """changed: tables in place of those of frames()."""
    shown = {**frames(), **changed}
    about = {"name": "humans", "command": "python -m mitigate recipe=humans", "notices": ["a <notice>"]}
    return humans.page(shown, shown.pop("scorers"), source, demonstration=True, **about)
