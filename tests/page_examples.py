"""A page of each kind, made up and small: its objects, and its HTML by name."""

from collections.abc import Callable

import polars as pl
import report_example

from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes import humans_figures
from mitigate.report import audit, page, ratings, survey

ASKED = pl.DataFrame(
    {
        "item": ["a1", "b2", "c3", "d4"],
        "target": ["lawyer", "</script>", "she", "he"],
        "statement": ["lawyer is a <b>thief</b>", "</script><script>alert(1)</script>", 'she, and "he"', "he is kind"],
    }
)


def example_audit() -> audit.Audit:
    """Ten statements about each of 16 targets, labelled by sentiment."""
    said = report_example.statements(per_target=10, num_targets=16).with_columns(head="target")
    table = report_example.per_target(said, "sentiment")
    categories = table["category"].unique().to_list()
    metrics = {"targets": 16, "empty_targets": 0, "statements": said.height, "D_R": 0.0, "sentiment/polarised": 12.34}
    metrics |= {f"{key}/{category}": 4 for key in ("targets", "empty_targets", "statements") for category in categories}
    return audit.Audit(
        name="audit-mine-1a2b3c4d",
        title="Mine",
        command="python -m mitigate recipe=audit",
        demonstration=False,
        metrics=metrics | {"NSM": 87.66, "NSM_low": 80.0, "NSM_high": 91.0},
        labellings={"sentiment": ("sentiment", "paper")},
        targets={"sentiment": table},
        statements=said,
        shown=table["target"].to_list()[:2],
        scorers={"sentiment": "vader"},
        explained=["It differs."],
        beside=pl.DataFrame(
            {"place": ["Table 4"], "figure": ["of a"], "key": ["D_R"], "paper": [2000.0], "ours": [1000.0]}
        ),
    )


def example_survey() -> survey.Survey:
    """Four statements, two a day."""
    return survey.Survey("5urvey", ASKED, daily=2, pay="20 euros an hour.", contact="ask@example.org")


def example_ratings() -> ratings.Results:
    """What three raters said of two models' statements about three targets."""
    rows = [
        (source, f"{source}{target}", target, "gender", "IsA", "said", f"rater {rater}", label, True)
        for source, labels in (("<none>", (-1, 0, 1)), ("both", (0, 0, 0)))
        for target in ("he", "she", "lady")
        for rater, label in enumerate(labels, start=1)
    ]
    names = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    judged = pl.DataFrame(rows, schema=names, orient="row")
    few = Bootstrap(resamples=100)
    scorers = pl.DataFrame({"resource": ["<none>"], "scorer": ["always_neutral"], "against": ["rating"]})
    return ratings.Results(
        name="humans",
        command="python -m mitigate recipe=humans",
        demonstration=True,
        summary=humans_figures.summary(judged, ["<none>", "both"], few),
        raters=humans_figures.raters(judged),
        differences=humans_figures.differences(judged, ["<none>", "both"], few),
        scorers=scorers.with_columns(pl.lit(0.5).alias(name) for name, *_ in ratings.FIGURES),
        notices=["a <notice>"],
    )


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: page.render(report_example.report(num_targets=16)),
    "audit": lambda: audit.render(example_audit()),
    "survey": lambda: survey.render(example_survey()),
    "people": lambda: ratings.render(example_ratings()),
}
