"""An audit's measures as a table: for files, for the page and for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from mitigate import metrics as keys
from mitigate.metrics import ENDS, Share, Statistic, find, harm_key, with_part
from mitigate.report.metric_display import Metrics, abbreviations, number, ordered, with_all
from mitigate.report.missing_figures import crossed, explained, measured, note
from mitigate.report.table import Cell, Column, Table, as_text, figures, grouped, text
from mitigate.report.table_declarations import declared

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


def measure_table(metrics: Metrics, shown: Sequence[Row]) -> Table:
    """The counts and the measures over all targets and by category, each with its interval."""
    counts = {keys.TARGETS: "targets", keys.EMPTY_TARGETS: "without statements", keys.STATEMENTS: "statements"}
    named = {"": [(name, key) for key, name in counts.items()]}
    for row in shown:
        named.setdefault("" if row == REPRESENTATION else row.section, []).append((row.name, row.key))
    squared = f" ({_OF_TARGETS.symbol}: squared statements)" if REPRESENTATION in shown else ""
    return crossed(
        metrics,
        f"Means in percent of a target's statements, variances in squared percentage points{squared}; in brackets the "
        f"95 % interval. O is overgeneralisation, D disparity, R representation. {abbreviations(metrics)}",
        "Measure",
        named,
        with_all(categories(metrics)),
        with_part,
    )


def console(metrics: Metrics, wordings: Sequence[Wording]) -> str:
    """The measures for the terminal: all targets with the interval, then each category; and why figures are missing."""
    parts = categories(metrics)
    columns = [
        text("", "name"),
        Column("all targets, 95 % interval", lambda row: measured(metrics, row.key)),
        *(_part_column(metrics, part) for part in parts),
    ]
    named = {
        with_part(row.key, part): f"{row.name} ({part or 'all'})" for row in rows(wordings) for part in ("", *parts)
    }
    table = as_text(Table("", columns, grouped(rows(wordings), lambda row: row.section)))
    return "\n".join([table, *explained({"": metrics}, named)])


def _part_column(metrics: Metrics, part: str) -> Column:
    return Column(part, lambda row: Cell(number(metrics.get(with_part(row.key, part)), row.decimals)))


def beside_table(beside: pl.DataFrame) -> Table:
    """The paper's figures with ours, and by how much ours differ."""
    cells = {
        "papers_figure": lambda row: _short(row["paper"]),
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


def people_table(people: pl.DataFrame) -> Table:
    """The share of rated statements that each policy would drop, and how well that fits people's labels."""
    return declared("audit policies on rated statements", people)


def relation_table(relations: pl.DataFrame, titles: Mapping[str, str]) -> Table:
    """The share of polarised statements by relation. relations: relation, statements, and shares by label column, whose
    titles these are."""
    shares = figures(1, **{name: titles[name] for name in relations.columns[2:]})
    return declared("audit relations", relations, more=shares, number=relations.height)


def _short(value: float) -> str:
    return number(value, 0 if abs(value) >= 1000 else 2)
