"""The measures of runs as a table: for files, and for the terminal at the end of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from mitigate import metrics as table
from mitigate.metrics import (
    ABOUT_BITS,
    ABOUT_PERPLEXITY,
    BASELINE_LIFTS,
    COVERAGE,
    DROPPED,
    ENDS,
    KEPT,
    LEAST_COVERAGE,
    SWAP_LIFT,
    TAIL_COVERAGE,
    WEIGHT,
    lift_of,
    quality,
    with_part,
)
from mitigate.report.legend import (
    LIFT_GROUPS,
    OF_PROFESSIONS,
    PROBED,
    QUALITY,
    SUBSETS,
    TEMPLATE_NAMES,
    VALIDITY,
    Measure,
    Metrics,
    categories,
    harm_key,
    harms,
    quality_key,
)
from mitigate.report.reasons import explained, measured, note
from mitigate.report.table import Column, Table, as_text, grouped, text


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
    return [row for row in _all_rows(harms(present), categories(present)) if row.key in present]


def _all_rows(harmful: Sequence[Measure], parts: Sequence[str]) -> Iterator[Row]:
    for template, name in TEMPLATE_NAMES.items():
        for measure in harmful:
            for part in ("", *parts):
                key = harm_key(measure, template, part)
                yield Row(f"harms, {name}", f"{measure.title} {measure.arrow}", part, key, measure.decimals)
    for measure in QUALITY:
        for subset in SUBSETS:
            part = "" if subset == "all" else subset
            key = quality_key(measure, subset)
            yield Row("quality, held-out triples", measure.named, part, key, measure.decimals)
    for measure in VALIDITY:
        for subset in (*PROBED, *parts, *OF_PROFESSIONS):
            part = "" if subset == "all" else subset
            key = quality_key(measure, subset)
            yield Row("quality, probed statements", measure.named, part, key, measure.decimals)
    for name in (SWAP_LIFT, *map(lift_of, BASELINE_LIFTS)):
        measure = quality(name)
        for subset in dict.fromkeys((*LIFT_GROUPS, *parts)):
            part = "" if subset == "all" else subset
            yield Row("quality, swap lift", measure.named, part, quality_key(measure, subset), measure.decimals)
    for about in map(quality, (ABOUT_PERPLEXITY, ABOUT_BITS)):
        for subset in (*PROBED, *parts):
            part = "" if subset == "all" else subset
            yield Row("quality, published triples", about.named, part, quality_key(about, subset), about.decimals)
    for key in (KEPT, DROPPED, WEIGHT):
        metric = table.metric(key)
        yield Row("filter, triples", metric.name, "", key, metric.decimals)
    for key in (COVERAGE, TAIL_COVERAGE, LEAST_COVERAGE):
        for part in ("", *parts):
            yield Row("filter, triples about targets", table.metric(key).named, part, with_part(key, part), 1)
    for metric in table.table().values():
        if metric.family == table.EMBEDDINGS:
            yield Row("knowledge-graph embeddings", metric.named, "", metric.key, metric.decimals)


def measures(runs: Mapping[str, Metrics]) -> pl.DataFrame:
    """The measures as a frame: section, measure, part, and for each run its value, low and high, and in words why one
    of them is missing."""
    lines = rows(key for metrics in runs.values() for key in metrics)
    named = pl.DataFrame([line[:3] for line in lines], schema=dict.fromkeys(Row._fields[:3], pl.String), orient="row")
    columns: list[pl.Series] = []
    for run, metrics in runs.items():
        for end in ENDS:
            columns.append(pl.Series(f"{run}{end}", [metrics.get(line.key + end) for line in lines], pl.Float64))
        columns.append(pl.Series(f"{run}_note", [note(metrics, line.key) for line in lines], pl.String))
    return named.with_columns(columns)


def console(runs: Mapping[str, Metrics], width: int = 100) -> str:
    """The measures of one run, or of several side by side, and the reasons for those that are missing."""
    lines = rows(key for metrics in runs.values() for key in metrics)
    first = text("", lambda line: f"  {line.part}" if line.part else line.measure)
    columns = [_of_run(name, metrics) for name, metrics in runs.items()]
    named = {line.key: f"{line.measure.rstrip(' ↑↓')} ({line.part or 'all'})" for line in lines}
    shown = as_text(Table("", [first, *columns], grouped(lines, lambda line: line.section)), width)
    return "\n".join([shown, *explained(runs, named, width)])


def _of_run(name: str, metrics: Metrics) -> Column:
    return Column(name, lambda line: measured(metrics, line.key, line.decimals))
