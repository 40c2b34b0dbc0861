"""Tables and columns that data files declare, each once for pages and for the terminal: tables.csv has the captions and
the names of the columns, columns.csv their headings, decimals and better directions."""

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from mitigate.report.metric_display import decimals_of, duration, number, signed
from mitigate.report.table import Column, Table, text
from mitigate.report.verdicts import p_value

Cells = Mapping[str, Callable[[Any], Any]]
"""Functions of a row by the names of the columns whose values are no fields."""
NO_CELLS: Cells = {}
ROW = "row"  # bounds: the fields low and high
OF_METRIC = "metric"  # decimals: those of each row's metric
FORMATS: Mapping[str, Callable[[Any], str]] = {"p": p_value, "signed": signed, "duration": duration}
"""Formats that may stand in place of decimals."""


def declared(
    name: str,
    rows: Any,
    /,
    *,
    first: Column | None = None,
    cells: Cells = NO_CELLS,
    without: Iterable[str] = (),
    more: Iterable[Column] = (),
    **words: object,
) -> Table:
    """The table of a name in tables.csv. rows: as in Table; first and more: columns before and after the declared ones;
    cells: functions of a row by the names of the columns whose values are no fields; without: declared columns that are
    left out; words: the placeholders' values in captions and headings. The first heading is capitalised."""
    row = declarations("tables.csv")[name]
    kinds = row["kind"].split()
    left_out = set(without)
    names = [one for one in row["columns"].split() if one not in left_out]
    columns = [*([first] if first else []), *(column(one, cells.get(one), row["decimals"], **words) for one in names)]
    columns[0] = replace(columns[0], title=columns[0].title[:1].upper() + columns[0].title[1:])
    return Table(
        row["caption"].format(**words),
        [*columns, *more],
        rows,
        label=row["label"].format(**words),
        name=row["id"],
        kind=" ".join(kind for kind in kinds if kind != "unheaded"),
        headed="unheaded" not in kinds,
    )


def column(name: str, value: Callable[[Any], Any] | None = None, decimals: str = "", /, **words: object) -> Column:
    """The column of a name in columns.csv. value: a function of a row in place of the field; decimals: where the column
    has none of its own; words: the placeholders' values in the heading."""
    row = declarations("columns.csv")[name]
    title, field = row["title"].format(**words) or name.replace("_", " "), row["value"] or name
    found = value or (field.format_map if "{" in field else field)
    if "text" in row["kind"]:
        return text(title, found, row["kind"].removeprefix("text").strip())
    places, _, ends = (row["decimals"] or decimals or "2").partition("/")
    if places == OF_METRIC:
        return Column(title, value or (lambda line: number(line[field], decimals_of(line))), kind=row["kind"])
    return Column(
        title,
        found,
        better=row["better"],
        show=FORMATS[places] if places in FORMATS else int(places),
        kind=row["kind"],
        note=row["note"],
        bounds="" if row["bounds"] == ROW else row["bounds"] or None,
        ends=int(ends) if ends else None,
    )


@cache
def declarations(name: str) -> dict[str, dict[str, str]]:
    """The rows of a file of mitigate/data by their first column."""
    with files("mitigate").joinpath("data", name).open(encoding="utf-8") as lines:
        return {next(iter(row.values())): row for row in csv.DictReader(lines)}


def present(table: Table) -> Table:
    """The table with its first column and those in which some row has a figure."""
    rows = [row for _, group in table.groups for row in group]
    first, *others = table.columns
    return replace(table, columns=[first, *(one for one in others if any(one.cell(row).text != "–" for row in rows))])
