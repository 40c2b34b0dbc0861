"""A page of each kind, made up and small: its HTML by name."""

from collections.abc import Callable

import polars as pl
import report_example
from audit_example import example_audit, example_stories
from compared_runs import example_comparison
from ratings_example import example_ratings
from study_examples import example_kge

from mitigate.report.page import render
from mitigate.studies.humans import render_survey

ASKED = pl.DataFrame(
    [
        ("a1", "lawyer", "lawyer is a <b>thief</b>"),
        ("b2", "</script>", "</script><script>alert(1)</script>"),
        ("c3", "she", 'she, and "he"'),
        ("d4", "he", "he is kind"),
    ],
    schema=["item", "target", "statement"],
    orient="row",
)
UNLEARNT = {"training/steps": 3}


def example_survey() -> str:
    """Four statements, two a day."""
    asked = {"name": "5urvey", "daily": 2, "statements": ASKED.rows()}
    return render_survey(asked, pay="20 euros an hour.", contact="ask@example.org")


PAGES: dict[str, Callable[[], str]] = {
    "kge": lambda: render(example_kge()),
    "report": lambda: render(report_example.report(num_targets=16)),
    "unlearnt": lambda: render(report_example.report(num_targets=16, results=report_example.results(**UNLEARNT))),
    "audit": lambda: render(example_audit()),
    "comparison": example_comparison,
    "stories": lambda: render(example_stories()),
    "survey": example_survey,
    "people": lambda: render(example_ratings()),
}
