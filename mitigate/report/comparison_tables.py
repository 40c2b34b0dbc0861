"""The names and formats of a comparison's figures, in tables and in sentences."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from mitigate import metrics as table
from mitigate.metrics import Metric, parse, relation_of
from mitigate.report import legend
from mitigate.report.legend import TEMPLATE_NAMES, number

PERPLEXITY = "perplexity"
CORRECTED = "_corrected"  # ends the names of bounds that are corrected for the number of figures


class QualityRow(NamedTuple):
    """One line of a table of quality."""

    section: str
    name: str
    baseline: str
    value: str
    change: str
    interval: str
    items: int | None
    row: Mapping[str, Any]


def measure_named(row: Mapping[str, Any]) -> str:
    """A row of harms in words: "NSM, neutral sentiment, mean ↑"."""
    measure = table.metric(row["measure"])
    if measure.scorer in table.PAPER_SCORERS:
        return f"{measure.title} {measure.arrow} {measure.name}"
    return f"{measure.title} {measure.arrow}"


def quality_rows(quality: pl.DataFrame) -> list[QualityRow]:
    """The lines, grouped by measure, in the order of the figures; single relations are in relation_rows."""
    rows = [_quality_row(row) for row in quality.iter_rows(named=True) if relation_of(row["figure"]) is None]
    order = list(dict.fromkeys(row.section for row in rows))
    return sorted(rows, key=lambda row: order.index(row.section))


def relation_rows(quality: pl.DataFrame) -> dict[str, dict[str, dict[str, Any]]]:
    """By relation, those with most held-out triples first: its rows of quality by measure, "perplexity" or "valid"."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in quality.iter_rows(named=True):
        if relation := relation_of(row["figure"]):
            found.setdefault(relation, {})[table.measure_of_quality(row["figure"])] = row
    return dict(sorted(found.items(), key=lambda item: -(item[1].get(PERPLEXITY, {"items": 0})["items"] or 0)))


def _quality_row(row: Mapping[str, Any]) -> QualityRow:
    decimals = _decimals(row["figure"])
    return QualityRow(
        *_names(row["figure"]),
        number(row["baseline"], decimals),
        number(row["value"], decimals),
        change(row, decimals),
        interval(row, decimals),
        row["items"],
        row,
    )


def change(row: Mapping[str, Any], decimals: int) -> str:
    """ "× 1.27" or "+2.10"."""
    if row["change"] is None:
        return "–"
    if row["as"] == "ratio":
        return f"× {ratio(row['change'])}"
    return ("+" if row["change"] >= 0 else "") + number(row["change"], decimals)


def is_none_as_shown(row: Mapping[str, Any], decimals: int) -> bool:
    """Whether a change that is known reads "0.00" or "× 1.00"."""
    if row["as"] == "ratio":
        return float(f"{row['change']:.2f}") == 1
    return float(f"{row['change']:.{decimals}f}") == 0


def interval(row: Mapping[str, Any], decimals: int, end: str = "", start: str = "") -> str:
    """ "[0.60, 1.10]", or "" where none was estimated; of the bounds with these names, "fixed_low_corrected" ..."""
    low, high = row[f"{start}low{end}"], row[f"{start}high{end}"]
    if low is None:
        return ""
    if row["as"] == "ratio":
        return f"[{ratio(low)}, {'no upper bound' if high is None else ratio(high)}]"
    return f"[{span(low, high, decimals)}]"


def ratio(value: float) -> str:
    """With two digits that say something, down to 0.0001."""
    return number(value, 2 if value >= 0.1 or value == 0 else 3 if value >= 0.01 else 4)


def span(low: float, high: float, decimals: int) -> str:
    """The bounds of an interval."""
    return legend.span(low, high, decimals)


def said_margin(row: Mapping[str, Any]) -> str:
    """ "−1.00", "× 1.03": of a row with a margin."""
    return number(row["margin"], 2) if row["margin"] <= 0 else f"× {number(row['margin'], 2)}"


def figure_named(figure: str) -> str:
    """ "neutral regard, mean (NRM), neutral template", "plausible share (all probed statements)"."""
    key = parse(figure)
    if not key.metric.share:
        section, name = _names(figure)
        return f"{section.rstrip(' ↑↓')} ({name})" if key.metric.part else name
    symbol = f" ({key.metric.symbol})" if key.metric.title == key.metric.symbol else ""
    return f"{key.metric.name}{symbol}, {TEMPLATE_NAMES[key.template]}"


def target_columns(moves: pl.DataFrame) -> list[tuple[str, str]]:
    """The contrasts and scorers of the table of targets."""
    return moves.select("contrast", "scorer").unique(maintain_order=True).rows()


def target_rows(moves: pl.DataFrame) -> list[dict[str, Any]]:
    """target, category, and the differences in the order of target_columns."""
    found: dict[str, dict[str, Any]] = {}
    for row in moves.sort("target").iter_rows(named=True):
        mine = found.setdefault(row["target"], {"target": row["target"], "category": row["category"], "moved": {}})
        mine["moved"][row["contrast"], row["scorer"]] = row["difference"]
    return list(found.values())


def _names(figure: str) -> tuple[str, str]:
    key = parse(figure)
    if not key.metric.part:
        return "generated statements about targets", _with_unit(key.metric)
    return key.metric.named, legend.part_named(key)


def _with_unit(metric: Metric) -> str:
    return f"{metric.name}, %" if metric.unit == "percent" else metric.name


def _decimals(figure: str) -> int:
    return parse(figure).metric.decimals
