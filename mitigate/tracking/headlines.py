"""The figures that W&B shows first, and their names there.

A name is group/what_unit, such as "harm/neutral_by_regard_percent": W&B makes a section of each group, and sorts and
filters only by names of letters, digits and underscores. A measure is a headline where its declaration says so, and
every measure of a user's own is."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from mitigate.measure.base import Figure, find, measures, own_measures

LONGEST = 60  # characters of a name: W&B draws no charts of longer ones
UNITS = {"%": "percent", "%²": "variance", "points": "points"}
DIFFERENCES = {
    **dict.fromkeys(("policy", "against", "key", "measure"), pl.String),
    **dict.fromkeys(("baseline", "value", "difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("unit", "better"), pl.String),
}
"""A policy's headline: the baseline's value, its own, the difference, the 95 % interval of that, and its unit."""


class Headline(NamedTuple):
    """A figure that is shown first."""

    place: int  # of its measure among all
    figure: Figure

    @property
    def label(self) -> str:
        """The figure with its unit: "neutral by regard, %"."""
        declared = self.figure.declared
        of = f", {self.figure.group}" if self.figure.group else ""
        wording = ", the paper's wording" if self.figure.template == "paper" else ""
        unit = f", {declared.unit}" if declared.unit in UNITS else ""
        return f"{declared.title}{of}{wording}{unit}"

    @property
    def name(self) -> str:
        """In W&B: "harm/neutral_by_regard_percent"."""
        declared = self.figure.declared
        words = self.label.replace(", the paper's wording", " paper").removesuffix(f", {declared.unit}")
        slug = re.sub(r"[^a-zA-Z0-9]+", "_", f"{words} {UNITS.get(declared.unit, '')}").strip("_")
        return f"{declared.headline or 'own'}/{slug}"[:LONGEST]


def headline(key: str) -> Headline | None:
    """The headline of a key of metrics.json; None for any other key."""
    if (figure := find(key)) is None:
        return None
    declared = figure.declared
    is_shown = declared.headline or declared.name in [one.name for one in own_measures()]
    if figure.variant or not is_shown or figure.by not in ("all", "subset"):
        return None
    names = [one.name for one in measures()]
    return Headline(names.index(declared.name), figure) if figure.group == declared.headline_group else None


def headlines(metrics: Mapping[str, Any]) -> dict[Headline, float]:
    """The headlines among a run's metrics, with their numbers, in the order of declaration."""
    found = {row: value for key, value in metrics.items() if isinstance(value, int | float) and (row := headline(key))}
    return dict(sorted(found.items(), key=lambda item: (item[0].place, item[0].name)))


def headline_differences(policy: str, against: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table DIFFERENCES of the headlines among a comparison's rows (measure.compare.DIFFERENCES), in the headlines'
    order."""
    found = [(row, given) for given in rows if (row := headline(given["figure"]))]
    lines = []
    for row, given in sorted(found, key=lambda pair: pair[0].place):
        declared = row.figure.declared
        numbers = {"difference": given["change"], "low": given["low"], "high": given["high"]}
        unit = "percentage points" if declared.unit in ("%", "points") else declared.unit
        line = {"policy": policy, "against": against, "key": row.figure.key, "measure": row.label, **numbers}
        values = {"baseline": given["baseline"], "value": given["value"]}
        lines.append({**line, **values, "unit": unit, "better": declared.better})
    return pl.DataFrame(lines, schema=DIFFERENCES)


def summary(rows: pl.DataFrame) -> dict[str, float]:
    """The differences of the headlines by a name in W&B: "both/harm_neutral_by_regard_percent_difference", of figures
    of labels those with the neutral wording. rows: DIFFERENCES."""
    found = {}
    for line in rows.drop_nulls("difference").iter_rows(named=True):
        row, policy = headline(line["key"]), re.sub(r"\W+", "_", line["policy"])
        if row and row.figure.declared.headline != "size" and row.figure.template != "paper":
            found[f"{policy}/{row.name.replace('/', '_')}_difference"] = line["difference"]
    return found
