"""Figures of runs as tables for pages, and for the terminal at the end of a run."""

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from mitigate.measure.base import Figure, find
from mitigate.report.metric_display import TEMPLATE_NAMES, Metrics, interval, number
from mitigate.report.table import Cell, Column, Table, as_text, grouped, text
from mitigate.report.table_declarations import declared


def console(runs: Mapping[str, Metrics], width: int = 100) -> str:
    """The figures of one run, or of several side by side, without those of single relations."""
    known = {key: figure for metrics in runs.values() for key in metrics if (figure := find(key))}
    lines = [(key, figure) for key, figure in known.items() if figure.by != "relation" and not figure.variant]

    def section(line: tuple[str, Figure]) -> str:
        figure = line[1]
        return ", ".join(filter(None, (figure.declared.family, TEMPLATE_NAMES.get(figure.template, ""))))

    columns = [_of_run(name, metrics) for name, metrics in runs.items()]
    first = text("", lambda line: f"  {line[1].group}" if line[1].group else line[1].declared.named)
    return as_text(Table("", [first, *columns], grouped(lines, section)), width)


def _of_run(name: str, metrics: Metrics) -> Column:
    return Column(name, lambda line: measured(metrics, line[0]))


def measured(metrics: Metrics, key: str, decimals: int | None = None) -> Cell:
    """A figure with its interval. decimals: by default those of the table of metrics."""
    found = find(key)
    places = decimals if decimals is not None else found.declared.decimals if found else 2
    bounds_shown, value = interval(metrics, key, places), metrics.get(key)
    deviation = ""
    if found and found.declared.unit == "%²" and isinstance(value, int | float):
        deviation = f" (sd {number(value**0.5, 1)})"
    return Cell(number(value, places) + deviation, [bounds_shown] if bounds_shown else [])


def crossed(
    name: str,
    metrics: Metrics,
    rows: Iterable[tuple[str, Any]] | Mapping[str, Iterable[tuple[str, Any]]],
    columns: Mapping[Any, str],
    key: Callable[[Any, Any], str],
    *,
    decimals: int | None = None,
    **words: Any,
) -> Table:
    """A declared table with a figure for each row and column. rows: name and argument of `key` of each, or groups of
    these; columns: arguments of `key`, and headings."""

    def column(part: Any, title: str) -> Column:
        return Column(title, lambda row: measured(metrics, key(row[1], part), decimals))

    more = (column(part, title) for part, title in columns.items())
    return declared(name, rows, cells=FIRST, more=more, **words)


FIRST = dict.fromkeys(
    ("measure", "figure", "heads_named", "triples_named", "statements_named", "sentences_named"), itemgetter(0)
)
"""The first columns of crossed tables: the names of their rows."""
