"""The questionnaire that raters fill in a browser: one HTML page that sends nothing and stores the answers in the
browser until the rater saves them as a file. It does not know which source a statement comes from."""

import polars as pl

from mitigate.report.page import environment


def render(name: str, statements: pl.DataFrame, daily: int, pay: str | None = None, contact: str | None = None) -> str:
    """The HTML of the page, the same for the same survey.

    name: identifies the survey; statements: item, target, statement, in the order in which they are asked; daily: the
    recommended largest number of statements for a rater and day; pay: what raters are paid, in a sentence; contact:
    whom they can write to."""
    rows = statements.select("item", "target", "statement").rows()
    survey = {"name": name, "daily": daily, "statements": rows}
    return environment().get_template("survey.html.jinja").render(survey=survey, pay=pay, contact=contact)
