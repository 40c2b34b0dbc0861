"""The names and formats of compared figures, in tables and in sentences."""

from collections.abc import Mapping
from typing import Any

from mitigate import metrics
from mitigate.report import metric_display
from mitigate.report.metric_display import TEMPLATE_NAMES, number
from mitigate.report.missing_figures import why_no_change, why_no_interval, why_no_p, why_not_fixed
from mitigate.report.table import Cell, Column
from mitigate.report.verdicts import p_value

PERPLEXITY = "perplexity"
CORRECTED = "_corrected"  # ends the names of bounds that are corrected for the number of figures


def measure_in_words(row: Mapping[str, Any]) -> str:
    """A row of harms in words: "NSM, neutral sentiment, mean ↑"."""
    measure = metrics.metric(row["measure"])
    if measure.scorer in metrics.PAPER_SCORERS:
        return f"{measure.title} {measure.arrow} {measure.name}"
    return f"{measure.title} {measure.arrow}"


def decimals_of(row: Mapping[str, Any]) -> int:
    """The decimals of a row's metric, whose key is in `figure` or in `key`."""
    return metrics.parse(row.get("figure") or row["key"]).metric.decimals


def number_column(title: str, name: str) -> Column:
    """A column of numbers, with the decimals of each row's metric."""
    return Column(title, lambda row: number(row[name], decimals_of(row)))


def blank(reason: str) -> Cell:
    """A dash in place of a figure, and the reason for it."""
    return Cell("–", reason=reason)


def changed(row: Mapping[str, Any], seeds: int, end: str = "") -> Cell:
    """A change with its interval, or why either is missing. seeds: of the side that has fewer."""
    if unknown := why_no_change(row):
        return blank(unknown)
    known = interval(row, 2, end)
    reason = "" if known else f"no interval: {why_no_interval(row, seeds)}"
    return Cell(change(row, 2), [known] if known else [], reason)


def fixed(row: Mapping[str, Any], seeds: int, end: str = "") -> Cell:
    """The interval with the targets fixed, or why it is missing."""
    known = interval(row, 2, end, "fixed_")
    return Cell("", [known]) if known else blank(why_no_change(row) or why_not_fixed(row, seeds))


def tested(p: float | None, seeds: int) -> Cell:
    """A p-value, or why nothing was tested."""
    unknown = why_no_p(p, seeds)
    return blank(unknown) if unknown else Cell(p_value(p))


def change(row: Mapping[str, Any], decimals: int) -> str:
    """A change as text: "× 1.27" or "+2.10"."""
    if row["change"] is None:
        return "–"
    if row["as"] == "ratio":
        return f"× {ratio(row['change'])}"
    return ("+" if row["change"] >= 0 else "") + number(row["change"], decimals)


def is_none_as_shown(row: Mapping[str, Any], decimals: int) -> bool:
    """Return whether a change that is known reads "0.00" or "× 1.00"."""
    if row["as"] == "ratio":
        return float(f"{row['change']:.2f}") == 1
    return float(f"{row['change']:.{decimals}f}") == 0


def interval(row: Mapping[str, Any], decimals: int, end: str = "", start: str = "") -> str:
    """An interval as text, "[0.60, 1.10]", from the bounds {start}low{end} and {start}high{end}; "" without them."""
    low, high = row[f"{start}low{end}"], row[f"{start}high{end}"]
    if low is None:
        return ""
    if row["as"] == "ratio":
        return f"[{ratio(low)}, {'no upper bound' if high is None else ratio(high)}]"
    return f"[{metric_display.span(low, high, decimals)}]"


def ratio(value: float) -> str:
    """A ratio with two significant digits, down to 0.0001."""
    return number(value, 2 if value >= 0.1 or value == 0 else 3 if value >= 0.01 else 4)


def margin_in_words(row: Mapping[str, Any]) -> str:
    """The margin of a row: "−1.00", "× 1.03"."""
    return number(row["margin"], 2) if row["margin"] <= 0 else f"× {number(row['margin'], 2)}"


def figure_in_words(figure: str) -> str:
    """A figure in words: "neutral regard, mean (NRM), neutral template", "plausible share (all probed statements)"."""
    key = metrics.parse(figure)
    if not key.metric.share:
        section, name = section_and_part(figure)
        return f"{section.rstrip(' ↑↓')} ({name})" if key.metric.part else name
    symbol = f" ({key.metric.symbol})" if key.metric.title == key.metric.symbol else ""
    return f"{key.metric.name}{symbol}, {TEMPLATE_NAMES[key.template]}"


def section_and_part(figure: str) -> tuple[str, str]:
    """The section of a figure in a table of quality, and its name there."""
    key = metrics.parse(figure)
    if not key.metric.part:
        unit = ", %" if key.metric.unit == "percent" else ""
        return "generated statements about targets", f"{key.metric.name}{unit}"
    return key.metric.named, metric_display.part_named(key)
