"""Runs of any one recipe beside a baseline, as one HTML page that loads nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import polars as pl

from mitigate.measure.base import measure_of_figure
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import number, signed, span
from mitigate.report.table import Cell, Column, Table, as_text, grouped, text

SHOWN = 12  # figures on the terminal


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared(Page):
    """The content of the page."""

    table: pl.DataFrame  # tasks.compare.any_runs.COLUMNS
    recipe: str


def render(page: Compared) -> str:
    tables = [_table(rows, str(run)) for (run,), rows in page.table.group_by("run", maintain_order=True)]
    sentences = [_sentence(rows) for _, rows in page.table.group_by("run", maintain_order=True)]
    return render_page("any_runs.html.jinja", page, sentences=sentences, tables=tables)


def _sentence(rows: pl.DataFrame) -> str:
    """The first two figures of a run beside the baseline's, in words."""
    first = rows.head(2).to_dicts()
    said = "; ".join(f"{row['figure']} {_difference(row).text}" for row in first)
    return f"“{first[0]['run']}” against “{first[0]['against']}”: {said}."


def console(table: pl.DataFrame) -> str:
    """The headline figures of all runs, at most SHOWN of each."""
    chosen = table.filter(pl.col("key").map_elements(lambda key: bool(measure_of_figure(key).headline), pl.Boolean))
    rows = chosen.filter(~pl.col("key").str.contains("/(?:origin|gender|religion|profession)$"))
    parts = [rows.filter(run=run).head(SHOWN) for run in rows["run"].unique(maintain_order=True)]
    return "\n\n".join(as_text(_table(part, part["run"][0])) for part in parts)


def _table(rows: pl.DataFrame, name: str) -> Table:
    against = str(rows["against"].first())
    columns = [
        text("figure", lambda row: row["figure"]),
        Column(against, lambda row: _shown(row, row["baseline"])),
        Column(name, lambda row: _shown(row, row["value"])),
        Column("difference", _difference),
    ]
    return Table(
        f"{name} against {against}. Differences are of means over seeds; with fewer than three seeds a side there is "
        "no interval.",
        columns,
        grouped(rows.to_dicts(), itemgetter("section")),
        label=f"{name} against {against}",
    )


def _shown(row: Mapping[str, Any], value: float) -> str:
    return number(value, measure_of_figure(row["key"]).decimals)


def _difference(row: Mapping[str, Any]) -> Cell:
    places = measure_of_figure(row["key"]).decimals
    below = row["seeds"] if row["low"] is None else f"[{span(row['low'], row['high'], places)}]"
    return Cell(signed(row["change"], places), [below])
