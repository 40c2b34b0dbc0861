"""An audit's measures as a table: for files, for the page and for the terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from mitigate import metrics as keys
from mitigate.metrics import Share, Statistic, find, harm_key, with_part
from mitigate.report import metrics_table
from mitigate.report.metric_display import Metrics, abbreviations, number, ordered, with_all
from mitigate.report.metrics_table import Row, crossed, measured
from mitigate.report.table import Cell, Column, Table, as_text, figures, grouped, text
from mitigate.report.table_declarations import declared
from mitigate.words.outside_text import counted

Wording = tuple[str, str]
"""A scorer, and the template of the statements it labelled."""


_OF_TARGETS = keys.metric(keys.REPRESENTATION)
REPRESENTATION = Row("statements", _OF_TARGETS.symbol, "", _OF_TARGETS.key, _OF_TARGETS.decimals)
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


def headlines(wordings: Iterable[Wording]) -> dict[str, str]:
    """Scorer -> the template that sentences and pictures are in: the paper's, or the neutral one where that alone was
    measured."""
    found: dict[str, str] = {}
    for scorer, template in sorted(wordings, key=lambda wording: wording[1] != "paper"):
        found.setdefault(scorer, template)
    return found


def rows(wordings: Sequence[Wording]) -> list[Row]:
    """The lines, in the order they are read."""
    return [REPRESENTATION, *(row for wording in wordings for row in _of(wording))]


def meanings(shown: Sequence[Row]) -> dict[str, str]:
    """The meaning of each line, by name; lines with the same meaning share one: {"A, B": ...}."""
    names = grouped(shown, lambda row: keys.parse(row.key).metric.meaning)
    return {", ".join(dict.fromkeys(row.measure for row in alike)): meaning for meaning, alike in names.items()}


def _of(wording: Wording) -> Iterator[Row]:
    scorer, template = wording
    for share, statistic in OF_LABELS:
        key = harm_key(scorer, statistic, share, template)
        metric = keys.parse(key).metric
        yield Row(section(wording), metric.symbol, "", key, metric.decimals)


def categories(metrics: Metrics) -> list[str]:
    """The categories that have figures of their own, in order."""
    parsed = [key for key in map(find, metrics) if key is not None and not key.variant]
    return ordered(key.part for key in parsed if key.stem == keys.TARGETS and key.part)


def _by_part(metrics: Metrics, wordings: Sequence[Wording]) -> list[Row]:
    """The lines over all targets and of each category."""
    parts = ("", *categories(metrics))
    return [row._replace(part=part or "all", key=with_part(row.key, part)) for row in rows(wordings) for part in parts]


def measures(metrics: Metrics, wordings: Sequence[Wording]) -> pl.DataFrame:
    """The measures as a frame: section, measure, part (a category, or all), value, low, high."""
    found = metrics_table.measures({"value": metrics}, _by_part(metrics, wordings))
    return found.rename({f"value_{name}": name for name in ("low", "high")})


def measure_table(metrics: Metrics, shown: Sequence[Row]) -> Table:
    """The counts and the measures over all targets and by category, each with its interval."""
    counts = {keys.TARGETS: "targets", keys.EMPTY_TARGETS: "without statements", keys.STATEMENTS: "statements"}
    named = {"": [(name, key) for key, name in counts.items()]}
    for row in shown:
        named.setdefault("" if row == REPRESENTATION else row.section, []).append((row.measure, row.key))
    squared = f" ({_OF_TARGETS.symbol}: squared statements)" if REPRESENTATION in shown else ""
    words: dict[str, Any] = {"squared": squared, "abbreviations": abbreviations(metrics)}
    return crossed("audit measures", metrics, named, with_all(categories(metrics)), with_part, **words)


def sizes(metrics: Metrics) -> str:
    """The numbers of rows, statements and targets for the terminal: a row about two targets is two statements."""
    names = (keys.ROWS, keys.ROWS_ABOUT_A_TARGET, keys.STATEMENTS, keys.TARGETS, keys.EMPTY_TARGETS)
    rows, about, statements, targets, empty = (int(metrics[name] or 0) for name in names)
    return (
        f"  {counted(rows, 'row')}, {about:,} about a target: {counted(statements, 'statement')} about "
        f"{targets - empty:,} of {counted(targets, 'target')}"
    )


def console(metrics: Metrics, wordings: Sequence[Wording]) -> str:
    """The measures for the terminal: all targets with the interval, then each category."""
    columns = [
        text("", "measure"),
        Column("all targets, 95 % interval", lambda row: measured(metrics, row.key)),
        *(_part_column(metrics, part) for part in categories(metrics)),
    ]
    return as_text(Table("", columns, grouped(rows(wordings), lambda row: row.section)))


def _part_column(metrics: Metrics, part: str) -> Column:
    return Column(part, lambda row: Cell(number(metrics.get(with_part(row.key, part)), row.decimals)))


def beside_table(beside: pl.DataFrame) -> Table:
    """The paper's figures with ours, and by how much ours differ."""
    cells = {
        "papers_figure": lambda row: number(row["paper"], 0 if row["paper"] >= 1000 else 2),
        "our_figure": lambda row: number(row["ours"], 0 if row["paper"] >= 1000 else 2),
        "relative_difference": lambda row: f"{number(100 * (row['ours'] / row['paper'] - 1), 1)} %",
    }
    return declared("audit beside the paper", beside, cells=cells)


def console_beside(beside: pl.DataFrame) -> str:
    """The paper's figures with ours for the terminal."""
    figure, place, *numbers, _ = beside_table(beside).columns
    return as_text(Table("", [place, figure, *numbers], beside))


def variant_table(variants: pl.DataFrame) -> Table:
    """The figures that each reading of the paper gives."""

    def figure(name: str) -> Column:
        title = name.replace("polarised_mean", "polarised, mean").replace("/", " ").replace("-", "−")
        return Column(title, lambda row: number(row[name], 0 if row[name] and row[name] >= 1000 else 2))

    first, *others = variants.columns
    return Table("", [text(first, first), *map(figure, others)], variants, label="Figures by rule", kind="named")


def relation_table(relations: pl.DataFrame, titles: Mapping[str, str]) -> Table:
    """The share of polarised statements by relation. relations: relation, statements, and shares by label column, whose
    titles these are."""
    shares = figures(1, **{name: titles[name] for name in relations.columns[2:]})
    return declared("audit relations", relations, more=shares, number=relations.height)
