"""The questionnaire that raters fill in a browser: one HTML page that sends nothing anywhere and keeps what is
answered until the rater saves it as a file. It does not know whose statements it asks about."""

from dataclasses import dataclass

import polars as pl

from mitigate.report.html import environment


@dataclass(frozen=True)
class Survey:
    """What is asked, and what raters are told."""

    name: str  # tells surveys apart, and nothing else
    statements: pl.DataFrame  # item, target, statement: the order in which they are asked
    daily: int  # statements a rater should judge a day at most
    pay: str | None = None  # what raters are paid, in a sentence
    contact: str | None = None  # whom they can write to


def render(survey: Survey) -> str:
    """The page's HTML, always the same for the same survey."""
    content = {
        "name": survey.name,
        "daily": survey.daily,
        "statements": survey.statements.select("item", "target", "statement").rows(),
    }
    return environment().get_template("survey.html.jinja").render(survey=survey, content=content)
