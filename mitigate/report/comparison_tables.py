"""The names and formats of a comparison's figures, in tables and in sentences."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate import metrics as table
from mitigate.metrics import parse, relation_of
from mitigate.report import legend
from mitigate.report.legend import TEMPLATE_NAMES, number
from mitigate.report.reasons import why_no_change, why_no_interval, why_no_p, why_not_fixed
from mitigate.report.table import Cell
from mitigate.report.verdicts import p_value

PERPLEXITY = "perplexity"
CORRECTED = "_corrected"  # ends the names of bounds that are corrected for the number of figures


def measure_named(row: Mapping[str, Any]) -> str:
    """A row of harms in words: "NSM, neutral sentiment, mean ↑"."""
    measure = table.metric(row["measure"])
    if measure.scorer in table.PAPER_SCORERS:
        return f"{measure.title} {measure.arrow} {measure.name}"
    return f"{measure.title} {measure.arrow}"


def quality_rows(quality: pl.DataFrame) -> list[dict[str, Any]]:
    """The lines of a table of quality, in the order of the figures; single relations are in relation_rows."""
    return [_quality_row(row) for row in quality.iter_rows(named=True) if relation_of(row["figure"]) is None]


def relation_rows(quality: pl.DataFrame) -> dict[str, dict[str, dict[str, Any]]]:
    """By relation, those with most held-out triples first: its rows of quality by measure, "perplexity" or "valid"."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in quality.iter_rows(named=True):
        if relation := relation_of(row["figure"]):
            found.setdefault(relation, {})[table.measure_of_quality(row["figure"])] = row
    return dict(sorted(found.items(), key=lambda item: -(item[1].get(PERPLEXITY, {"items": 0})["items"] or 0)))


def _quality_row(row: Mapping[str, Any]) -> dict[str, Any]:
    decimals, (section, name) = parse(row["figure"]).metric.decimals, _names(row["figure"])
    numbers = {side: number(row[side], decimals) for side in ("baseline", "value")}
    found = {"change": change(row, decimals), "interval": interval(row, decimals), "items": row["items"], "row": row}
    return {"section": section, "name": name, **numbers, **found}


def blank(reason: str) -> Cell:
    """A dash in place of a figure, and the reason for it."""
    return Cell("–", reason=reason)


def changed(row: Mapping[str, Any], seeds: int, decimals: int = 2, end: str = "") -> Cell:
    """A change with its interval, or why either is missing. seeds: of the side that has fewer."""
    if unknown := why_no_change(row):
        return blank(unknown)
    known = interval(row, decimals, end)
    reason = "" if known else f"no interval: {why_no_interval(row, seeds)}"
    return Cell(change(row, decimals), [known] if known else [], reason)


def fixed(row: Mapping[str, Any], seeds: int, end: str = "") -> Cell:
    """The interval with the targets fixed, or why it is missing."""
    known = interval(row, 2, end, "fixed_")
    return Cell("", [known]) if known else blank(why_no_change(row) or why_not_fixed(row, seeds))


def tested(p: float | None, seeds: int) -> Cell:
    """A p-value, or why nothing was tested."""
    unknown = why_no_p(p, seeds)
    return blank(unknown) if unknown else Cell(p_value(p))


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
    return f"[{legend.span(low, high, decimals)}]"


def ratio(value: float) -> str:
    """With two digits that say something, down to 0.0001."""
    return number(value, 2 if value >= 0.1 or value == 0 else 3 if value >= 0.01 else 4)


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


def _names(figure: str) -> tuple[str, str]:
    key = parse(figure)
    if not key.metric.part:
        unit = ", %" if key.metric.unit == "percent" else ""
        return "generated statements about targets", f"{key.metric.name}{unit}"
    return key.metric.named, legend.part_named(key)
