"""A page of each kind, made up and small: its HTML by name."""

from collections.abc import Callable

import polars as pl
import report_example
from audit_example import example_audit, example_stories
from compared_runs import example_comparison
from ratings_example import example_ratings

from mitigate.measure.results import as_rows
from mitigate.report import page
from mitigate.report.page import render
from mitigate.studies import kge
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


PROFESSIONS = [*(f"profession {number}" for number in range(11)), "<b>nurse</b>"]


def example_kge(low: float | None = 0.1, high: float | None = 0.4) -> page.Page:
    """Twelve professions, three trainings, before and after a mitigation; the interval of the correlation."""
    change = (pl.col("log_ratio") + 0.1) / 100
    table = pl.DataFrame({"profession": PROFESSIONS, "log_ratio": [3.0 - number / 2 for number in range(12)]})
    professions = table.with_columns(people=40, of_a=12, of_b=30, change=change)
    professions = professions.with_columns(low=pl.col("change") - 0.01, high=pl.col("change") + 0.01)
    figures = {"mrr": 0.25, "parity": 40.0, "parity_by_chance": 7.0, "rank_correlation": 0.25, "seeds/agreement": 0.8}
    interval = {"low": low, "high": high}
    rows = [
        {"measure": name, "variant": variant, "value": value / divisor, **interval}
        for variant, divisor in {"": 1, "projected": 2}.items()
        for name, value in figures.items()
    ]
    rows += [{"measure": name, "value": 120} for name in ("people_a", "people_b")]
    return kge.page(
        as_rows(rows),
        professions,
        name="kge-fb15k237-transe_l2-gender-1a2b3c4d",
        command="python -m mitigate recipe=kge",
        names=("male", "<i>female</i>"),
        sensitive="gender",
        fewest=20,
        published=pl.DataFrame({"mrr": [0.313], "source": ["Ruffinelli et al. 2020"]}),
        demonstration=False,
        notices=["There is a <thing>."],
    )


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
