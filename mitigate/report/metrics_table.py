"""The measures of runs as a table: for files, and for the terminal at the end of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from mitigate import metrics as table
from mitigate.report import metric_display
from mitigate.report.missing_figures import explained, measured, note
from mitigate.report.table import Column, Table, as_text, grouped, text

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


def _all_rows(harmful: Sequence[metric_display.Measure], parts: Sequence[str]) -> Iterator[Row]:
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


def measures(runs: Mapping[str, metric_display.Metrics]) -> pl.DataFrame:
    """The measures as a frame: section, measure, part, and for each run its value, low and high, and in words why one
    of them is missing."""
    lines = rows(key for metrics in runs.values() for key in metrics)
    named = pl.DataFrame([line[:3] for line in lines], schema=dict.fromkeys(Row._fields[:3], pl.String), orient="row")
    columns: list[pl.Series] = []
    for run, metrics in runs.items():
        for end in table.ENDS:
            columns.append(pl.Series(f"{run}{end}", [metrics.get(line.key + end) for line in lines], pl.Float64))
        columns.append(pl.Series(f"{run}_note", [note(metrics, line.key) for line in lines], pl.String))
    return named.with_columns(columns)


def console(runs: Mapping[str, metric_display.Metrics], width: int = 100) -> str:
    """The measures of one run, or of several side by side, and the reasons for those that are missing."""
    lines = rows(key for metrics in runs.values() for key in metrics)
    first = text("", lambda line: f"  {line.part}" if line.part else line.measure)
    columns = [_of_run(name, metrics) for name, metrics in runs.items()]
    named = {line.key: f"{line.measure.rstrip(' ↑↓')} ({line.part or 'all'})" for line in lines}
    shown = as_text(Table("", [first, *columns], grouped(lines, lambda line: line.section)), width)
    return "\n".join([shown, *explained(runs, named, width)])


def _of_run(name: str, metrics: metric_display.Metrics) -> Column:
    return Column(name, lambda line: measured(metrics, line.key, line.decimals))
