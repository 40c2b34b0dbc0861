"""An audit's measures as a table: for files, for the page and for the terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from mitigate.measure.base import find, key_of, measure_of, own_measures
from mitigate.report.metric_display import Metrics, abbreviations, number, ordered, with_all
from mitigate.report.metrics_table import crossed, measured
from mitigate.report.table import Cell, Column, Table, as_text, figures, grouped, text
from mitigate.report.table_declarations import declared
from mitigate.words.outside_text import counted


class Row(NamedTuple):
    """One line of the table of measures."""

    section: str
    measure: str
    part: str  # a category; "" for all of them
    key: str
    decimals: int


Wording = tuple[str, str]
"""A scorer, and the template of the statements it labelled."""


REPRESENTATION = Row("statements", "D_R", "", "D_R", 1)
OF_LABELS = ("neutral_mean", "neutral_variance", "O-", "O+", "D_O-", "D_O+", "polarised")
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
    names = grouped(shown, lambda row: figure.declared.meaning if (figure := find(row.key)) else "")
    return {", ".join(dict.fromkeys(row.measure for row in alike)): meaning for meaning, alike in names.items()}


def _of(wording: Wording) -> Iterator[Row]:
    scorer, template = wording
    for name in (*OF_LABELS, *(one.name for one in own_measures() if one.of == "targets")):
        measure = measure_of(name, scorer)
        yield Row(section(wording), measure.symbol, "", key_of(name, scorer, template), measure.decimals)


def categories(metrics: Metrics) -> list[str]:
    """The categories that have figures of their own, in order."""
    known = [figure for figure in map(find, metrics) if figure and not figure.variant and figure.by == "category"]
    return ordered(figure.group for figure in known if figure.measure == "targets")


def _with_part(key: str, part: str) -> str:
    return f"{key}/{part}" if part else key


def measure_table(metrics: Metrics, shown: Sequence[Row]) -> Table:
    """The counts and the measures over all targets and by category, each with its interval."""
    counts = {"targets": "targets", "empty_targets": "without statements", "statements": "statements"}
    named = {"": [(name, key) for key, name in counts.items()]}
    for row in shown:
        named.setdefault("" if row == REPRESENTATION else row.section, []).append((row.measure, row.key))
    squared = " (D_R: squared statements)" if REPRESENTATION in shown else ""
    words: dict[str, Any] = {"squared": squared, "abbreviations": abbreviations(metrics)}
    return crossed("audit measures", metrics, named, with_all(categories(metrics)), _with_part, **words)


def sizes(metrics: Metrics) -> str:
    """The numbers of rows, statements and targets for the terminal: a row about two targets is two statements."""
    names = ("rows", "rows_about_a_target", "statements", "targets", "empty_targets")
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
    return Column(part, lambda row: Cell(number(metrics.get(_with_part(row.key, part)), row.decimals)))


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


def relation_table(relations: pl.DataFrame, titles: Mapping[str, str]) -> Table:
    """The share of polarised statements by relation. relations: relation, statements, and shares by label column, whose
    titles these are."""
    shares = figures(1, **{name: titles[name] for name in relations.columns[2:]})
    return declared("audit relations", relations, more=shares, number=relations.height)
