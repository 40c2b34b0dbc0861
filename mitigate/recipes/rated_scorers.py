"""Scorers beside people, and what their labels owe to identity terms, on the terminal."""

import polars as pl

from mitigate.metrics import bounds
from mitigate.tasks.agreement import FIGURES
from mitigate.tasks.identity import farthest


def printed(frame: pl.DataFrame) -> str:
    """The table for the terminal."""
    width = max(map(len, frame["resource"]))
    lines = [" " * (width + 27) + "".join(f"{heading:>9}" for heading in FIGURES.values())]
    for row in frame.rows(named=True):
        cells = "".join(f"{'' if row[name] is None else format(row[name], '.3f'):>9}" for name in FIGURES)
        lines.append(f"{row['resource']:<{width}}  {row['scorer']:<15}{row['against']:<10}{cells}")
    return "\n".join(lines)


def printed_intervals(frame: pl.DataFrame) -> str:
    """Agreement with the majority of raters for the terminal, with 95 % intervals over targets and texts."""
    figures = frame["figure"].unique(maintain_order=True).to_list()
    width = max(map(len, frame["resource"])) + 2
    lines = [f"{'against the majority of raters':<{width + 20}}" + "".join(f"{name:>22}" for name in figures)]
    for (resource, scorer), rows in frame.group_by("resource", "scorer", maintain_order=True):
        found = {name: (value, low, high) for _, _, name, value, low, high in rows.iter_rows()}
        cells = "".join(f"{_with_interval(*found.get(name, (None, None, None)), decimals=3):>22}" for name in figures)
        lines.append(f"{resource:<{width}}{scorer:<20}{cells}")
    return "\n".join(lines)


def printed_drops(frame: pl.DataFrame) -> str:
    """What each policy drops of the rated statements for the terminal, %, with intervals over targets and texts."""
    headings = {"precision": "precision", "recall": "recall", "before": "polarised before", "after": "after"}
    lines = [f"{'% of rated statements':<28}{'dropped':>8}" + "".join(f"{name:>22}" for name in headings.values())]
    for row in frame.rows(named=True):
        ends = {name: bounds(name) for name in headings}
        cells = (_with_interval(row[name], row[low], row[high], decimals=1) for name, (low, high) in ends.items())
        start = f"{row['resource']:<12}{row['policy']:<16}{row['dropped']:>8.1f}"
        lines.append(start + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines)


def printed_identity(terms: pl.DataFrame, summed: pl.DataFrame) -> str:
    """Errors on unseen identity terms and frames for the terminal: the mean over terms, the term that is farthest from
    it with its 95 % interval over frames, and the share of the three farthest and of masked frames."""
    headings = f"{'mean':>7}{'farthest from the mean':>27}{'beyond 5':>10}{'masked':>8}  farthest terms"
    lines = [f"{'% of unseen identity terms':<31}{headings}"]
    for row in summed.filter(pl.col("part") == "unseen", pl.col("number") == "both").rows(named=True):
        low, high = (row[bound] for bound in bounds("largest"))
        gap = f"{row['largest']:+.1f} [{low:+.1f}, {high:+.1f}]"
        named = ", ".join(f"{term} {share:.1f}" for term, share in farthest(terms, row["scorer"], row["error"]))
        start = f"{row['scorer']:<14}{row['error'].replace('_', ' '):<17}{row['mean']:>7.1f}{gap:>27}"
        lines.append(f"{start}{row['beyond']:>4} of {row['terms']:<3}{row['masked']:>7.1f}  {named}")
    return "\n".join(lines)


def _with_interval(value: float | None, low: float | None, high: float | None, decimals: int) -> str:
    if value is None:
        return "–"
    ends = "" if low is None or high is None else f" [{low:.{decimals}f}, {high:.{decimals}f}]"
    return f"{value:.{decimals}f}{ends}"
