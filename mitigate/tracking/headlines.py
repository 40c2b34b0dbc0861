"""The figures that W&B shows first, and their names there, from data/headlines.csv; and the table of all figures.

A name is group/what_unit, such as "harm/neutral_regard_percent": W&B makes a section of each group, and sorts and
filters only by names of letters, digits and underscores. `{scorer}` in a row stands for any scorer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from mitigate.metrics import SCORER, Key, Metric, bounds, find, parse
from mitigate.package_data import rows_of

FIGURES = {
    **dict.fromkeys(("family", "measure", "key"), pl.String),
    **dict.fromkeys(("value", "low", "high", "baseline"), pl.Float64),
    **dict.fromkeys(("unit", "better"), pl.String),
}
WHAT_IT_IS = "run"  # the family of metrics that identify the run: its seed, its policy


@dataclass(frozen=True, slots=True)
class Headline:
    """A row of the table. `{scorer}` in key, name and label stands for any scorer, until `headline` fills it in."""

    place: int  # in the table
    key: str  # as in metrics.json
    name: str  # in W&B: "harm/neutral_regard_percent"
    label: str  # in words, with its unit: "neutral by regard, %"
    charted: bool  # whether it is drawn
    recipes: tuple[str, ...]  # whose runs have it as a headline; none: all that have the figure

    @property
    def group(self) -> str:
        """The group: harm, disparity, quality, cost or size."""
        return self.name.partition("/")[0]

    @property
    def metric(self) -> Metric:
        return parse(self.key).metric

    @property
    def what(self) -> str:
        """The label without its unit: "neutral by regard"."""
        return re.sub(r", (%²?|percentage points)$", "", self.label)

    @property
    def said_better(self) -> str:
        """The better direction: " (higher is better)"; "" where there is none."""
        return f" ({self.metric.said_better})" if self.metric.said_better else ""

    @property
    def caption(self) -> str:
        """The figure, its unit and the better direction: "Neutral by regard, % (higher is better)"."""
        return f"{self.label[0].upper()}{self.label[1:]}{self.said_better}"


@cache
def table() -> tuple[Headline, ...]:
    """The rows of data/headlines.csv, in its order."""
    return tuple(
        Headline(place, row["key"], row["name"], row["label"], row["charted"] == "yes", tuple(row["recipes"].split()))
        for place, row in enumerate(rows_of("headlines.csv"))
    )


@cache
def headline(key: str) -> Headline | None:
    """The headline of a key of metrics.json, the scorer filled in; None for any other key. The row of a single key
    goes before one for any scorer."""
    parsed = find(key)
    scorer = parsed.metric.scorer if parsed else ""
    for row in sorted(table(), key=lambda row: SCORER in row.key):
        if row.key.replace(SCORER, scorer) == key:
            name = row.name.replace(SCORER, re.sub(r"\W+", "_", scorer))
            return Headline(row.place, key, name, row.label.replace(SCORER, scorer), row.charted, row.recipes)
    return None


def headlines(metrics: Mapping[str, Any], recipe: str) -> dict[Headline, float]:
    """The headlines of its recipe among a run's metrics, with their numbers, in the table's order."""
    found = {
        row: value
        for key, value in metrics.items()
        if isinstance(value, int | float) and (row := headline(key)) and recipe in (row.recipes or (recipe,))
    }
    return dict(sorted(found.items(), key=lambda item: (item[0].place, item[0].name)))


def figures(metrics: Mapping[str, Any], baseline: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """All of a run's metrics as a table, FIGURES: each with the bounds of its 95 % interval, the baseline's value where
    they are known, its unit, and which direction is better ("up", "down", "closest", "none")."""
    parsed = {key: found for key in metrics if (found := find(key)) and not found.end}
    rows = [
        {
            "family": found.metric.family,
            "measure": ", ".join(filter(None, _parts_of(found))),
            "key": key,
            **dict(zip(("value", "low", "high"), map(metrics.get, (key, *bounds(key))), strict=True)),
            "baseline": (baseline or {}).get(key),
            "unit": found.metric.unit,
            "better": found.metric.better,
        }
        for key, found in parsed.items()
        if found.metric.family != WHAT_IT_IS
    ]
    return pl.DataFrame(rows, schema=FIGURES)


def _parts_of(key: Key) -> tuple[str, ...]:
    """The parts of a figure's name: "neutral regard, mean", "origin", "neutral template"."""
    template = "neutral template" if key.template == "neutral" else ""
    return key.metric.name, key.part, template, key.variant.replace("_", " ")
