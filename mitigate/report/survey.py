"""The questionnaire that raters fill in a browser: one HTML page that sends nothing and stores the answers in the
browser until the rater saves them as a file. It does not know which source a statement comes from."""

import math
from dataclasses import dataclass

import polars as pl

from mitigate.report.html import environment


@dataclass(frozen=True)
class Survey:
    """The statements to be rated, and the information for raters."""

    name: str  # identifies the survey
    statements: pl.DataFrame  # item, target, statement: the order in which they are asked
    daily: int  # the recommended largest number of statements for a rater and day
    pay: str | None = None  # what raters are paid, in a sentence
    contact: str | None = None  # whom they can write to

    @property
    def parts(self) -> int:
        """Parts of the survey, a day's work each; a rater begins with one and continues with the next."""
        return math.ceil(self.statements.height / self.daily)


def render(survey: Survey) -> str:
    """The HTML of the page, the same for the same survey."""
    content = {
        "name": survey.name,
        "daily": survey.daily,
        "parts": survey.parts,
        "statements": survey.statements.select("item", "target", "statement").rows(),
    }
    return environment().get_template("survey.html.jinja").render(survey=survey, content=content)
