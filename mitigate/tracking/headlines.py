"""The figures that W&B shows first and their names there, and the charts of a run and of a comparison as plain tables.

A name is group/what_unit, such as "harm/neutral_by_regard_percent": W&B makes a section of each group, and sorts and
filters only by names of letters, digits and underscores. A measure is a headline where its declaration says so, and
every measure of a user's own is. Charts are drawn by presets of W&B's own, so that no view has to be saved."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import polars as pl

from mitigate.measure.base import Figure, Measure, find, measures, own_measures

LONGEST = 60
UNITS = {"%": "percent", "%²": "variance", "points": "points"}


class Headline(NamedTuple):
    """A figure that is shown first."""

    place: int  # of its measure among all
    figure: Figure

    @property
    def key(self) -> str:
        return self.figure.key

    @property
    def metric(self) -> Measure:
        return self.figure.declared

    @property
    def group(self) -> str:
        """harm, disparity, quality, cost, size, or own."""
        return self.metric.headline or "own"

    @property
    def charted(self) -> bool:
        """Return whether it is drawn: sizes are not, and of figures of labels those with the paper's wording."""
        return self.group != "size" and self.figure.template != "paper"

    @property
    def what(self) -> str:
        """The figure in words: "neutral by regard"."""
        wording = ", the paper's wording" if self.figure.template == "paper" else ""
        of = f", {self.figure.group}" if self.figure.group else ""
        return f"{self.metric.title.replace('{k}', str(self.figure.k))}{of}{wording}"

    @property
    def label(self) -> str:
        """The figure with its unit: "neutral by regard, %"."""
        return f"{self.what}, {self.metric.unit}" if self.metric.unit in UNITS else self.what

    @property
    def name(self) -> str:
        """In W&B: "harm/neutral_by_regard_percent". W&B refuses charts with long names."""
        words = [self.what.replace(", the paper's wording", " paper"), UNITS.get(self.metric.unit, "")]
        return f"{self.group}/{re.sub(r'[^a-zA-Z0-9]+', '_', ' '.join(filter(None, words))).strip('_')}"[:LONGEST]

    @property
    def said_better(self) -> str:
        """The better direction: " (higher is better)"; "" where there is none."""
        return f" ({self.metric.said_better})" if self.metric.said_better else ""

    @property
    def caption(self) -> str:
        """The figure, its unit and the better direction: "Neutral by regard, % (higher is better)"."""
        return f"{self.label[0].upper()}{self.label[1:]}{self.said_better}"


def headline(key: str) -> Headline | None:
    """The headline of a key of metrics.json; None for any other key."""
    figure = find(key)
    return None if figure is None else _of(figure)


def _of(figure: Figure) -> Headline | None:
    declared = figure.declared
    is_shown = declared.headline or declared.name in [one.name for one in own_measures()]
    if figure.variant or not is_shown or figure.by not in ("all", "subset") or figure.k not in (None, 10):
        return None
    names = [one.name for one in measures()]
    return Headline(names.index(declared.name), figure) if figure.group == declared.headline_group else None


def headlines(metrics: Mapping[str, Any]) -> dict[Headline, float]:
    """The headlines among a run's metrics, with their numbers, in the order of declaration."""
    found = {row: value for key, value in metrics.items() if isinstance(value, int | float) and (row := headline(key))}
    return dict(sorted(found.items(), key=lambda item: (item[0].place, item[0].name)))


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart for W&B. Axes and legends have the names of the columns.

    bars: (name, number); points: (number across, number up, name); lines: the same, a line for each name."""

    kind: Literal["bars", "points", "lines"]
    title: str
    rows: pl.DataFrame


DIFFERENCES = {
    **dict.fromkeys(("policy", "against", "key", "measure"), pl.String),
    **dict.fromkeys(("baseline", "value", "difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("unit", "better"), pl.String),
}
"""A policy's headline: the baseline's value, its own, the difference, the 95 % interval of that, and its unit."""
POINTS = "percentage points"  # the unit of a difference of percentages
RELATIVE = "% of the baseline"  # of a difference between figures that are compared by their ratio


def beside(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Chart]:
    """Bars for each drawn headline of the last run: its own, and that of the others, such as its baseline. runs:
    metrics by the run's name."""
    found = {}
    for row in headlines(list(runs.values())[-1]):
        if row.charted:
            bars = [(name, metrics[row.key]) for name, metrics in runs.items() if metrics.get(row.key) is not None]
            rows = pl.DataFrame(bars, schema={"run": pl.String, _plain(row.label): pl.Float64}, orient="row")
            found[f"beside_the_baseline/{_slug(row)}"] = Chart("bars", row.caption, rows)
    return found


def headline_differences(policy: str, against: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table DIFFERENCES of the headlines among a comparison's rows (measure.compare.DIFFERENCES), in the headlines'
    order."""
    found = [(row, given) for given in rows if (row := headline(given["figure"]))]
    lines = []
    for row, given in sorted(found, key=lambda pair: pair[0].place):
        numbers = {"difference": given["change"], "low": given["low"], "high": given["high"]}
        unit = POINTS if row.metric.unit in ("%", "points") else row.metric.unit
        if given["as"] == "ratio":
            unit = RELATIVE
            numbers = {name: None if value is None else 100 * (value - 1) for name, value in numbers.items()}
        line = {"policy": policy, "against": against, "key": row.key, "measure": row.label, **numbers, "unit": unit}
        lines.append(line | {"baseline": given["baseline"], "value": given["value"], "better": row.metric.better})
    return pl.DataFrame(lines, schema=DIFFERENCES)


def summary(rows: pl.DataFrame) -> dict[str, float]:
    """The differences of the drawn headlines by a name in W&B: "both/harm_neutral_by_regard_percent_difference". rows:
    DIFFERENCES."""
    found = {}
    for line in rows.drop_nulls("difference").iter_rows(named=True):
        row, policy = headline(line["key"]), re.sub(r"\W+", "_", line["policy"])
        if row and row.charted:
            found[f"{policy}/{_slug(row)}_difference"] = line["difference"]
    return found


def compared(rows: pl.DataFrame, first: str = "regard") -> dict[str, Chart]:
    """The charts of a comparison: for each drawn headline a line from the lower to the upper bound of each policy's
    difference, at the height of its number in the legend; and the differences of the first harm against the first
    headline of quality and of cost, the baseline at the origin. rows: DIFFERENCES of all policies; first: the scorer in
    regard's place, whose harm comes first."""
    named = [headline(key) for key in rows["key"].unique(maintain_order=True)]
    drawn = sorted(
        (row for row in named if row and row.charted), key=lambda row: (row.metric.scorer != first, row.place)
    )
    found = {}
    for row in drawn:
        known = rows.filter(key=row.key).drop_nulls(["difference", "low", "high"])
        lines = [(0.0, up, "0 no difference") for up in (0.5, known.height + 0.5)]
        for number, line in enumerate(known.iter_rows(named=True), start=1):
            lines += [(line[end], float(number), f"{number} {line['policy']}") for end in ("low", "difference", "high")]
        if known.height:
            across = f"difference from {_against(known)}, {known['unit'][0]}"
            found[f"differences/{_slug(row)}"] = Chart(
                "lines", row.caption, _points(lines, across, "number in the legend")
            )
    firsts = {group: next((row for row in drawn if row.group == group), None) for group in ("harm", "quality", "cost")}
    harm = firsts.pop("harm")
    for group, other in firsts.items():
        if not (harm and other):
            continue
        right, up = (rows.filter(key=row.key).drop_nulls("difference") for row in (other, harm))
        both = right.join(up, on=["policy", "against"], suffix="_up", maintain_order="left")
        if both.height:
            axes = [f"{row.what}, {side['unit'][0]}{row.said_better}" for row, side in ((other, right), (harm, up))]
            points = [(0.0, 0.0, _against(both)), *both.select("difference", "difference_up", "policy").rows()]
            title = f"Harm against {group}: differences from {_against(both)}"
            found[f"harm_against_{other.name}_scatter"] = Chart("points", title, _points(points, *axes))
    return found


def _points(rows: Iterable[tuple[float, float, str]], across: str, up: str) -> pl.DataFrame:
    schema = {_plain(across): pl.Float64, _plain(up): pl.Float64, "policy": pl.String}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def _against(rows: pl.DataFrame) -> str:
    return " and ".join(rows["against"].unique(maintain_order=True))


def _plain(text: str) -> str:
    """The text without characters that Vega, which draws the charts, reads as the path to a column."""
    return re.sub(r"[.'\"\[\]\\]", " ", text)


def _slug(row: Headline) -> str:
    return row.name.replace("/", "_")
