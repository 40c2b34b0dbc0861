"""The measures of runs and audits as tables: for files, for pages, and for the terminal at the end of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import polars as pl

from mitigate import metrics as table
from mitigate.report import metric_display
from mitigate.report.metric_display import Metrics, interval, number
from mitigate.report.table import Cell, Column, Table, as_text, grouped, text
from mitigate.report.table_declarations import declared

SECTIONS = {
    "held-out triples": (table.TEST_TRIPLES,),
    "probed statements": metric_display.VALIDITY,
    "swap lift": (table.HEADS,),
    "published triples": (table.PUBLISHED,),
}
"""The rows of the measures of quality."""


class Row(NamedTuple):
    """One line of the table of measures."""

    section: str
    measure: str  # with an arrow that points to the better direction
    part: str  # a category, or a subset of the triples; "" for all of them
    key: str
    decimals: int


def rows(keys: Iterable[str]) -> list[Row]:
    """The lines that metrics with these keys can fill, in the order they are read."""
    present = set(keys)
    return [
        row
        for row in _all_rows(metric_display.harms(present), metric_display.categories(present))
        if row.key in present
    ]


def _all_rows(harmful: Sequence[table.Metric], parts: Sequence[str]) -> Iterator[Row]:
    for template, name in metric_display.TEMPLATE_NAMES.items():
        for measure in harmful:
            for part in ("", *parts):
                key = metric_display.harm_key(measure, template, part)
                yield Row(f"harms, {name}", f"{measure.title} {measure.arrow}", part, key, measure.decimals)
    for section, names in SECTIONS.items():
        for measure in metric_display.grouped_measures(names):
            for group in table.titles_of_groups(names, parts):
                part = "" if group == "all" else group
                key = table.with_part(measure.key, group)
                yield Row(f"quality, {section}", measure.named, part, key, measure.decimals)
    for key in (table.KEPT, table.DROPPED, table.WEIGHT):
        metric = table.metric(key)
        yield Row("filter, triples", metric.name, "", key, metric.decimals)
    for key in (table.COVERAGE, table.TAIL_COVERAGE, table.LEAST_COVERAGE):
        for part in ("", *parts):
            yield Row("filter, triples about targets", table.metric(key).named, part, table.with_part(key, part), 1)
    for metric in table.table().values():
        if metric.family == table.EMBEDDINGS:
            yield Row("knowledge-graph embeddings", metric.named, "", metric.key, metric.decimals)


def measures(runs: Mapping[str, Metrics], lines: Sequence[Row] | None = None) -> pl.DataFrame:
    """The measures as a frame: section, measure, part, and for each run its value, low and high. lines: all that the
    runs can fill, if not given."""
    shown = rows(key for metrics in runs.values() for key in metrics) if lines is None else lines
    named = pl.DataFrame([line[:3] for line in shown], schema=dict.fromkeys(Row._fields[:3], pl.String), orient="row")
    columns: list[pl.Series] = []
    for run, metrics in runs.items():
        for end in table.ENDS:
            columns.append(pl.Series(f"{run}{end}", [metrics.get(line.key + end) for line in shown], pl.Float64))
    return named.with_columns(columns)


def console(runs: Mapping[str, Metrics], width: int = 100) -> str:
    """The measures of one run, or of several side by side."""
    lines = rows(key for metrics in runs.values() for key in metrics)
    first = text("", lambda line: f"  {line.part}" if line.part else line.measure)
    columns = [_of_run(name, metrics) for name, metrics in runs.items()]
    return as_text(Table("", [first, *columns], grouped(lines, lambda line: line.section)), width)


def _of_run(name: str, metrics: Metrics) -> Column:
    return Column(name, lambda line: measured(metrics, line.key, line.decimals))


def measured(metrics: Metrics, key: str, decimals: int | None = None) -> Cell:
    """A figure with its interval. decimals: by default those of the table of metrics."""
    found = table.find(key)
    places = decimals if decimals is not None else found.metric.decimals if found else 2
    bounds_shown = interval(metrics, key, places)
    return Cell(number(metrics.get(key), places), [bounds_shown] if bounds_shown else [])


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
