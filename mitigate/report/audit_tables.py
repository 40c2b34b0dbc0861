"""An audit's measures as a table: for files, for the page and for the terminal."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from mitigate import metrics as keys
from mitigate.metrics import ENDS, Share, Statistic, find, harm_key, with_part
from mitigate.report.legend import Metrics, interval, number, ordered
from mitigate.report.reasons import explained, note

Wording = tuple[str, str]
"""A scorer, and the template of the statements it labelled."""


class Row(NamedTuple):
    """One line: a measure, and the key of its figure over all targets."""

    section: str
    name: str
    key: str
    decimals: int


_OF_TARGETS = keys.metric(keys.REPRESENTATION)
REPRESENTATION = Row("statements", _OF_TARGETS.symbol, _OF_TARGETS.key, _OF_TARGETS.decimals)
OF_LABELS: tuple[tuple[Share, Statistic], ...] = (
    ("prejudice", "mean"),
    ("favouritism", "mean"),
    ("prejudice", "variance"),
    ("favouritism", "variance"),
    ("neutral", "mean"),
    ("neutral", "variance"),
    ("polarised", "pooled"),
)
"""The lines of each scorer, in the order they are read."""


def section(wording: Wording) -> str:
    """The name of the labels: "sentiment", or "sentiment, neutral template"."""
    scorer, template = wording
    return scorer if template == "paper" else f"{scorer}, neutral template"


def rows(wordings: Sequence[Wording]) -> list[Row]:
    """The lines, in the order they are read."""
    return [REPRESENTATION, *(row for wording in wordings for row in _of(wording))]


def meanings(shown: Sequence[Row]) -> dict[str, str]:
    """The meaning of each line, by name; lines with the same meaning share one: {"A, B": ...}."""
    names: dict[str, dict[str, None]] = {}
    for row in shown:
        names.setdefault(keys.parse(row.key).metric.meaning, {})[row.name] = None
    return {", ".join(alike): meaning for meaning, alike in names.items()}


def _of(wording: Wording) -> list[Row]:
    scorer, template = wording
    found = [harm_key(scorer, statistic, share, template) for share, statistic in OF_LABELS]
    rows_of = [(key, keys.parse(key).metric) for key in found]
    return [Row(section(wording), metric.symbol, key, metric.decimals) for key, metric in rows_of]


def categories(metrics: Metrics) -> list[str]:
    """The categories that have figures of their own, in order."""
    parsed = [key for key in map(find, metrics) if key is not None and not key.variant]
    return ordered(key.part for key in parsed if key.stem == keys.TARGETS and key.part)


def measures(metrics: Metrics, wordings: Sequence[Wording]) -> pl.DataFrame:
    """The measures as a frame: section, measure, part (a category, or all), value, low, high, and in words why one of
    them is missing."""
    keys_of = {(row, part): with_part(row.key, part) for row in rows(wordings) for part in ("", *categories(metrics))}
    lines = [
        (row.section, row.name, part or "all", *(metrics.get(key + end) for end in ENDS), note(metrics, key))
        for (row, part), key in keys_of.items()
    ]
    numbers = dict.fromkeys(("value", "low", "high"), pl.Float64)
    schema = {**dict.fromkeys(("section", "measure", "part"), pl.String), **numbers, "note": pl.String}
    return pl.DataFrame(lines, schema=schema, orient="row")


def console(metrics: Metrics, wordings: Sequence[Wording]) -> str:
    """The measures for the terminal: all targets with the interval, then each category; and why figures are missing."""
    parts = categories(metrics)
    lines = [f"{'':<18}{'all targets':>12}{'95 % interval':>24}" + "".join(f"{part:>12}" for part in parts)]
    shown = ""
    for row in rows(wordings):
        if row.section != shown:
            shown = row.section
            lines.append(shown)
        cells = [number(metrics.get(with_part(row.key, part)), row.decimals) for part in parts]
        own = f"{number(metrics.get(row.key), row.decimals):>12}{interval(metrics, row.key, row.decimals):>24}"
        lines.append(f"  {row.name:<16}{own}" + "".join(f"{cell:>12}" for cell in cells))
    named = {
        with_part(row.key, part): f"{row.name} ({part or 'all'})" for row in rows(wordings) for part in ("", *parts)
    }
    return "\n".join([*lines, *explained({"": metrics}, named)])


def console_beside(beside: pl.DataFrame) -> str:
    """The paper's figures with ours for the terminal."""
    lines = [f"{'':<14}{'':<46}{'the paper':>12}{'ours':>14}"]
    for place, figure, _, paper, ours in beside.select("place", "figure", "key", "paper", "ours").iter_rows():
        lines.append(f"{place:<14}{figure:<46}{_short(paper):>12}{_short(ours):>14}")
    return "\n".join(lines)


def _short(value: float) -> str:
    return number(value, 0 if abs(value) >= 1000 else 2)
