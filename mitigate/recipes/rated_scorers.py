"""Scorers beside people, and what their labels owe to identity terms, on the terminal."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate.report.legend import number
from mitigate.report.table import Cell, Column, Table, as_text, bounded, figures, text, with_bounds
from mitigate.tasks.agreement import FIGURES
from mitigate.tasks.identity import farthest


def printed(frame: pl.DataFrame) -> str:
    """The table for the terminal."""
    names = [text("", "resource"), text("", "scorer"), text("", "against")]
    return as_text(Table("", [*names, *figures(3, **dict(FIGURES))], frame))


def printed_intervals(frame: pl.DataFrame) -> str:
    """Agreement with the majority of raters for the terminal, with 95 % intervals over targets and texts."""

    def figure(name: str) -> Column:
        return Column(name, lambda rows: with_bounds(rows.get(name, {}), "value", 3, of=""))

    known = frame["figure"].unique(maintain_order=True).to_list()
    rows = [
        {"resource": resource, "scorer": scorer} | {row["figure"]: row for row in found.rows(named=True)}
        for (resource, scorer), found in frame.group_by("resource", "scorer", maintain_order=True)
    ]
    first = text("against the majority of raters", "resource")
    return as_text(Table("", [first, text("", "scorer"), *map(figure, known)], rows))


def printed_drops(frame: pl.DataFrame) -> str:
    """What each policy drops of the rated statements for the terminal, %, with intervals over targets and texts."""
    headings = {"precision": "precision", "recall": "recall", "before": "polarised before", "after": "after"}
    names = [text("% of rated statements", "resource"), text("", "policy"), Column("dropped", "dropped", show=1)]
    return as_text(Table("", [*names, *(bounded(title, name) for name, title in headings.items())], frame))


def printed_identity(terms: pl.DataFrame, summed: pl.DataFrame) -> str:
    """Errors on unseen identity terms and frames for the terminal: the mean over terms, the term that is farthest from
    it with its 95 % interval over frames, and the share of the three farthest and of masked frames."""

    def gap(row: Mapping[str, Any]) -> Cell:
        cell = with_bounds(row, "largest", 1)
        return cell._replace(text=f"{'+' if row['largest'] > 0 else ''}{cell.text}")

    def most(row: Mapping[str, Any]) -> str:
        return ", ".join(f"{term} {number(share, 1)}" for term, share in farthest(terms, row["scorer"], row["error"]))

    columns = [
        text("% of unseen identity terms", "scorer"),
        text("", lambda row: row["error"].replace("_", " ")),
        Column("mean", "mean", show=1),
        Column("farthest from the mean", gap),
        Column("beyond 5", lambda row: f"{row['beyond']} of {row['terms']}"),
        Column("masked", "masked", show=1),
        text("farthest terms", most),
    ]
    return as_text(Table("", columns, summed.filter(part="unseen", number="both")))
