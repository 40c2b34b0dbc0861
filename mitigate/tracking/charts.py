"""Charts of a run and of a comparison in W&B, as plain tables: a run's headlines beside its baseline's, differences of
policies from the baseline, and harm against quality.

W&B draws them by presets of its own, so that no view has to be saved. Their value axes begin at 0, so values that are
close together are drawn as differences."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from mitigate.tracking.headlines import Headline, headline, headlines

DIFFERENCES = {
    **dict.fromkeys(("policy", "against", "key", "measure"), pl.String),
    **dict.fromkeys(("baseline", "value", "difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("unit", "better"), pl.String),
}
"""A policy's headline: the baseline's value, its own, the difference, the 95 % interval of that, and its unit."""
POINTS = {
    "%": "percentage points",
    "points": "percentage points",
}  # the unit of a difference, by the unit of the figure
RELATIVE = "% of the baseline"  # the unit of a difference between figures that are compared by their ratio
TICK = 0.15  # half its height, in policies
SHORT = {"percentage points": "points", RELATIVE: "%"}  # units on the axes of harm against quality


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart for W&B. Axes and legends have the names of the columns.

    bars: (name, number); points: (number across, number up, name); lines: the same, a line for each name."""

    kind: Literal["bars", "points", "lines"]
    title: str
    rows: pl.DataFrame


def beside(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Chart]:
    """Bars for each drawn headline of the last run: its own, and that of the others, such as its baseline. runs:
    metrics by the run's name."""
    found = {}
    for row in headlines(list(runs.values())[-1]):
        if row.charted:
            bars = [(name, metrics[row.key]) for name, metrics in runs.items() if metrics.get(row.key) is not None]
            schema = {"run": pl.String, _plain(row.label): pl.Float64}
            rows = pl.DataFrame(bars, schema=schema, orient="row")
            found[f"beside_the_baseline/{_slug(row)}"] = Chart("bars", row.caption, rows)
    return found


def headline_differences(policy: str, against: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table DIFFERENCES of the headlines among a comparison's rows, in the headlines' order. rows: `figure`,
    `baseline`, `value`, `low`, `high`, and `difference`; or for the last `change` and `as`, which is "difference" or
    "ratio"."""
    found = [(row, given) for given in rows if (row := headline(given["figure"]))]
    return pl.DataFrame(
        [
            {"policy": policy, "against": against, "key": row.key, "measure": row.label}
            | {"baseline": given["baseline"], "value": given["value"], "better": row.metric.better}
            | _difference(row, given)
            for row, given in sorted(found, key=lambda pair: pair[0].place)
        ],
        schema=DIFFERENCES,
    )


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
    """The charts of a comparison: for each drawn headline the differences with their intervals; and the first harm
    against the first headline of quality and the first of cost. rows: DIFFERENCES of all policies; first: the scorer in
    regard's place, whose harm comes first."""
    named = [headline(key) for key in rows["key"].unique(maintain_order=True)]
    charted = (row for row in named if row and row.charted)
    drawn = sorted(charted, key=lambda row: (row.group != "harm" or row.metric.scorer != first, row.place))
    mine = {row: rows.filter(key=row.key) for row in drawn}
    found = {
        f"differences/{_slug(row)}": Chart("lines", row.caption, _intervals(known))
        for row in drawn
        if (known := mine[row].drop_nulls(["difference", "low", "high"])).height
    }
    firsts = {group: next((row for row in drawn if row.group == group), None) for group in ("harm", "quality", "cost")}
    harm = firsts.pop("harm")
    for other in filter(None, firsts.values()):
        if harm is not None:
            found |= dict(_against(harm, mine[harm], other, mine[other]))
    return found


def _difference(row: Headline, given: Mapping[str, Any]) -> dict[str, Any]:
    """difference, low, high and unit of a comparison's row."""
    found = {"difference": given.get("change", given.get("difference")), "low": given["low"], "high": given["high"]}
    if given.get("as") == "ratio":
        relative = {name: None if value is None else 100 * (value - 1) for name, value in found.items()}
        return relative | {"unit": RELATIVE}
    unit = row.metric.unit
    return found | {"unit": POINTS.get(unit, unit)}


def _intervals(known: pl.DataFrame) -> pl.DataFrame:
    """The points of a line from the lower to the upper bound for each policy, at the height of its number in the
    legend, with a tick at the difference; and of a line at no difference. W&B joins the points from left to right."""
    lines = [(0.0, up, "0 no difference") for up in (0.5, known.height + 0.5)]
    for number, line in enumerate(known.iter_rows(named=True), start=1):
        tick = [(line["difference"], number + up) for up in (0.0, TICK, -TICK, 0.0)]
        path = [(line["low"], float(number)), *tick, (line["high"], float(number))]
        lines += [(x, y, f"{number} {line['policy']}") for x, y in path]
    return _points(lines, f"difference from {_against_whom(known)}, {known['unit'][0]}", "number in the legend")


def _against(harm: Headline, harms: pl.DataFrame, other: Headline, others: pl.DataFrame) -> Iterator[tuple[str, Chart]]:
    """Yield the charts of each policy's two differences: as points, and as lines from the baseline, which the legend
    names; none where no policy has both."""
    both = others.join(harms, on="policy", suffix="_up", maintain_order="left").drop_nulls(
        ["difference", "difference_up"]
    )
    if both.is_empty():
        return
    policies = both.select("difference", "difference_up", "policy").rows()
    axes = [
        f"{row.what}, {SHORT.get(rows['unit'][0], rows['unit'][0])}{row.said_better}"
        for row, rows in ((other, others), (harm, harms))
    ]
    origin = _against_whom(both)
    title = f"Harm against {other.group}: differences from {origin}"
    name = f"harm_against_{other.name}"
    yield f"{name}_scatter", Chart("points", title, _points([(0.0, 0.0, origin), *policies], *axes))
    lines = [point for x, y, policy in policies for point in ((0.0, 0.0, policy), (x, y, policy))]
    yield f"{name}_lines", Chart("lines", f"y: {axes[1]}", _points(lines, *axes))


def _points(rows: Iterable[tuple[float, float, str]], across: str, up: str) -> pl.DataFrame:
    schema = {_plain(across): pl.Float64, _plain(up): pl.Float64, "policy": pl.String}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def _against_whom(rows: pl.DataFrame) -> str:
    return " and ".join(rows["against"].unique(maintain_order=True))


def _plain(text: str) -> str:
    """The text without characters that Vega, which draws the charts, reads as the path to a column."""
    return re.sub(r"[.'\"\[\]\\]", " ", text)


def _slug(row: Headline) -> str:
    return row.name.replace("/", "_")
