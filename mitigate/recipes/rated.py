"""Scorers beside people, on the terminal."""

import polars as pl

from mitigate.tasks.agreement import FIGURES


def printed(frame: pl.DataFrame) -> str:
    """The table for the terminal."""
    width = max(map(len, frame["resource"]))
    lines = [" " * (width + 27) + "".join(f"{heading:>9}" for heading in FIGURES.values())]
    for row in frame.rows(named=True):
        cells = "".join(f"{'' if row[name] is None else format(row[name], '.3f'):>9}" for name in FIGURES)
        lines.append(f"{row['resource']:<{width}}  {row['scorer']:<15}{row['against']:<10}{cells}")
    return "\n".join(lines)
