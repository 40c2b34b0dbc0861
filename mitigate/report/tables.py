"""Measures as text: the table at the end of a run, and CSV and LaTeX files of any frame."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
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
    interval,
    number,
    quality_key,
)
from mitigate.report.reasons import explained, note
from mitigate.report.verdicts import p_value
from mitigate.runs import files


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
    """The measures of one run, or of several side by side.

    Where the columns do not fit the width, the intervals go first; then the runs are shown in blocks."""
    lines = rows(key for metrics in runs.values() for key in metrics)
    labels = [f"    {line.part}" if line.part else f"  {line.measure}" for line in lines]
    margin = max(map(len, labels), default=0)
    columns = [_column(run, metrics, lines, intervals=True) for run, metrics in runs.items()]
    if margin + sum(map(_width, columns)) > width:
        columns = [_column(run, metrics, lines, intervals=False) for run, metrics in runs.items()]
    found = "\n\n".join(_block(lines, labels, margin, block) for block in _blocks(columns, width - margin))
    named = {line.key: f"{line.measure.rstrip(' ↑↓')} ({line.part or 'all'})" for line in lines}
    return "\n".join([found, *explained(runs, named, width)])


def _column(run: str, metrics: Metrics, lines: Sequence[Row], intervals: bool) -> list[str]:
    """The run's name and its cells, all of one width."""
    values = [number(metrics.get(line.key), line.decimals) for line in lines]
    ranges = [interval(metrics, line.key, line.decimals) if intervals else "" for line in lines]
    value_width, range_width = max(map(len, values), default=0), max(map(len, ranges), default=0)
    cells = [
        f"{value:>{value_width}} {text:>{range_width}}" if range_width else value
        for value, text in zip(values, ranges, strict=True)
    ]
    width = max(map(len, [run, *cells]))
    return [f"  {text:>{width}}" for text in [run, *cells]]


def _width(column: Sequence[str]) -> int:
    return len(column[0])


def _blocks(columns: Sequence[list[str]], width: int) -> Iterator[list[list[str]]]:
    block: list[list[str]] = []
    for column in columns:
        if block and sum(map(_width, block)) + _width(column) > width:
            yield block
            block = []
        block.append(column)
    yield block


def _block(lines: Sequence[Row], labels: Sequence[str], margin: int, columns: Sequence[list[str]]) -> str:
    heads, *cells = zip(*columns, strict=True)
    text = [" " * margin + "".join(heads)]
    section = ""
    for line, label, values in zip(lines, labels, cells, strict=True):
        if line.section != section:
            section = line.section
            text.append(section)
        text.append(f"{label:<{margin}}" + "".join(values))
    return "\n".join(line.rstrip() for line in text)


def save_csv(frame: pl.DataFrame, path: Path) -> Path:
    return files.write(path, frame.write_csv(float_precision=4))


def save_latex(frame: pl.DataFrame, path: Path, caption: str) -> Path:
    """The frame as a LaTeX table; needs the package booktabs."""
    return files.write(path, latex(frame, caption))


def with_p_as_shown(frame: pl.DataFrame) -> pl.DataFrame:
    """Its p-values as words: two decimals would make 0.05 of 0.049."""
    shown = [name for name in ("p", "p_holm") if name in frame.columns]
    return frame.with_columns(pl.Series(name, [p_value(p) for p in frame[name]]) for name in shown)


def latex(frame: pl.DataFrame, caption: str) -> str:
    alignment = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    body = [frame.columns, *frame.with_columns(pl.col(pl.String).fill_null("")).iter_rows()]
    head, *lines = (" & ".join(_latex_cell(value) for value in row) + r" \\" for row in body)
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_latex_cell(caption)}}}",
            rf"  \begin{{tabular}}{{{alignment}}}",
            r"    \toprule",
            f"    {head}",
            r"    \midrule",
            *(f"    {line}" for line in lines),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$", "–": "--", "−": "$-$"}
)


def _latex_cell(value: object) -> str:
    text = number(value) if isinstance(value, int | float) or value is None else str(value)
    return text.translate(_LATEX)
