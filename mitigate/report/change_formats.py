"""Compared figures as shown, in tables and in sentences: their names, changes and intervals."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from mitigate.measure.base import find, measure_of_figure
from mitigate.report import metric_display
from mitigate.report.metric_display import TEMPLATE_NAMES, decimals_of, number
from mitigate.report.table import Cell, Column, Table, grouped
from mitigate.report.table_declarations import Cells, declared
from mitigate.report.verdicts import p_value
from mitigate.words.outside_text import counted

Row = Mapping[str, Any]
CORRECTED = "_corrected"  # ends the names of bounds that are corrected for the number of figures


def changed(row: Row, end: str = "") -> Cell:
    """A change with its interval."""
    places = decimals_of(row)
    bounds = interval(row, places, end) or ("2 seeds" if row.get("seeds") == 2 else "")
    return Cell(change(row, places), [bounds] if bounds else [])


def fixed(row: Row, end: str = "") -> Cell:
    """The interval with the targets fixed."""
    bounds = interval(row, decimals_of(row), end, "fixed_")
    return Cell("", [bounds]) if bounds else Cell("–")


def detectable(row: Row) -> str:
    """The minimum detectable change."""
    if row["detectable"] is None:
        return "–"
    return f"× {ratio(row['detectable'])}" if row["as"] == "ratio" else number(row["detectable"])


def by_category(name: str, rows: Iterable[Row], categories: Sequence[str], **words: Any) -> Table:
    """The changes of each measure in each category. name: of the declared table; rows: with section, name and
    category."""

    def change_in(category: str) -> Column:
        def cell(line: Sequence[Row]) -> Cell:
            row = next((row for row in line if row["category"] == category), None)
            if row is None:
                return Cell("–")
            p, found = row["p"], changed(row)
            fixed_targets = ["fixed"] if row.get("drawn") == "seeds" else []
            parts = [*([] if p is None else [f"p {p_value(p)}"]), counted(row["targets"], "target"), *fixed_targets]
            both = [] if row["value"] is None else [values(row)]
            return found._replace(below=[*both, *found.below, ", ".join(parts)])

        return Column(category, cell)

    lines = grouped(rows, itemgetter("section", "name")).values()
    groups = grouped(lines, lambda line: line[0]["section"])
    cells = {"measure": lambda line: line[0]["name"]}
    return declared(name, groups, cells=cells, more=map(change_in, categories), **words)


def values(row: Row) -> str:
    """The two values of a row: "80.00 → 95.00"."""
    return " → ".join(number(row[side], decimals_of(row)) for side in ("baseline", "value"))


def change(row: Row, decimals: int) -> str:
    """A change as text: "× 1.27" or "+2.10"."""
    if row["change"] is None:
        return "–"
    if row["as"] == "ratio":
        return f"× {ratio(row['change'])}"
    return ("+" if row["change"] >= 0 else "") + number(row["change"], decimals)


def is_none_as_shown(row: Row, decimals: int) -> bool:
    """Return whether a change that is known reads "0.00" or "× 1.00"."""
    none, places = (1, 2) if row["as"] == "ratio" else (0, decimals)
    return float(f"{row['change']:.{places}f}") == none


def interval(row: Row, decimals: int, end: str = "", start: str = "") -> str:
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


def measure_in_words(row: Row) -> str:
    """A row of harms in words: "neutral by sentiment, mean (NSM) ↑"."""
    return measure_of_figure(row["figure"]).named


def figure_in_words(key: str) -> str:
    """A figure in words: "neutral by regard (NRM), neutral template", "plausible share (all probed statements)"."""
    figure = find(key)
    if figure is None:
        return key
    if figure.template:
        return f"{figure.declared.title}{figure.declared.brackets}, {TEMPLATE_NAMES[figure.template]}"
    section, name = section_and_part(key)
    return f"{section.rstrip(' ↑↓')} ({name})" if figure.declared.groups else name


def section_and_part(key: str) -> tuple[str, str]:
    """The section of a figure in a table of quality, and its name there."""
    measure = measure_of_figure(key)
    if not measure.groups:
        unit = ", %" if measure.unit == "%" else ""
        return "generated statements about targets", f"{measure.title}{unit}"
    return measure.named, metric_display.part_named(key)


CELLS: Cells = {
    "change": changed,
    "corrected_change": lambda row: changed(row, CORRECTED),
    "targets_fixed": fixed,
    "corrected_fixed": lambda row: fixed(row, CORRECTED),
    "tested_p": lambda row: p_value(row["p"]),
    "tested_fixed_p": lambda row: p_value(row["fixed_p"]),
    "tested_p_holm": lambda row: p_value(row["p_holm"]),
    "minimum_detectable": detectable,
    "figure": lambda row: figure_in_words(row["figure"]),
    "margin": lambda row: f"{'× ' if row['margin'] > 0 else ''}{number(row['margin'], 2)}",
}
"""The cells of compared figures by the names of their columns."""
