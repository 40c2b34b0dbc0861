"""The model cards of the measures that learnt from people's ratings, and their figures for W&B."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mitigate.report.crowd_card import percent, plain
from mitigate.report.markdown import environment

KEYS = {
    "validity": ("relation", "label"),
    "seen": ("text", "target"),
    "accuracy": ("template", "source", "category"),
    "shares": ("source", "part"),
    "identity": ("part", "error"),
}
"""The columns that tell the rows of each table apart."""


def render(name: str, tables: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The card of people_valid, or of a scorer of polarity, as Markdown with the hub's front matter. tables: lists of
    rows, as tasks.people.figures.measure_validity and measure_polarity return them."""
    kind = "people_valid_card" if name == "people_valid" else "polarity_card"
    template = environment(Path(__file__).parent).get_template(f"{kind}.md.jinja")
    return template.render(name=name, settings=settings, percent=percent, plain=plain, **tables)


def figures(name: str, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Each number under {name}/{table}/{what tells the row apart}/{column}; those of `validity` without the table."""
    found: dict[str, Any] = {}
    for table, columns in KEYS.items():
        for row in tables.get(table, ()):
            place = "/".join(str(row[column]) for column in columns)
            start = name if table == "validity" else f"{name}/{table}"
            numbers = {key: value for key, value in row.items() if isinstance(value, int | float)}
            found |= {f"{start}/{place}/{key}": value for key, value in numbers.items()}
    return found
