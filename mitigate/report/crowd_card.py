"""The model card of the crowd classifier."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.metrics import bounds
from mitigate.report.markdown import environment

SCORERS = {"crowd": "`crowd`", "ngram": "`ngram`", "keyword": "`keyword`", "one rater": "one rater"}


def render(
    accuracy: pl.DataFrame, passed: pl.DataFrame, settings: Mapping[str, Any], num_rated: int, num_implied: int
) -> str:
    """The card as Markdown with the hub's front matter.

    accuracy: a row for each template, source and category; passed: a row for each scorer; both with statements,
    polarised and figures from 0 to 1 with _low and _high."""
    template = environment(Path(__file__).parent).get_template("crowd_card.md.jinja")
    return template.render(
        accuracy=accuracy.rows(named=True),
        passed=passed.rows(named=True),
        scorers=SCORERS,
        settings=settings,
        num_rated=num_rated,
        num_implied=num_implied,
        percent=percent,
        plain=plain,
    )


def percent(row: Mapping[str, Any], name: str) -> str:
    """ "78.1 [74.0, 82.0]" of a figure from 0 to 1 and its interval; a dash where it has none."""
    return _worded([row[key] if row[key] is None else 100 * row[key] for key in (name, *bounds(name))], 1)


def plain(row: Mapping[str, Any], name: str) -> str:
    """ "0.649 [0.602, 0.695]"."""
    return _worded([row[key] for key in (name, *bounds(name))], 3)


def _worded(values: Sequence[float | None], decimals: int) -> str:
    value, low, high = ("–" if value is None else f"{value:.{decimals}f}" for value in values)
    return value if low == "–" else f"{value} [{low}, {high}]"
