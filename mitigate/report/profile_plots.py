"""The picture of a profile: a target's percentages among those of its peers."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from mitigate.report.drawing import FAVOURITISM, INK, PREJUDICE, legend, panel, styled


@styled
def among_peers(figures: pl.DataFrame, target: str) -> Figure:
    """A row for each figure and run: the target as a dot, its peers as strokes. figures: run, target, figure (such as
    "regard/negative") and value, in percent, of all targets of a category."""
    rows = figures.select("run", "figure").unique(maintain_order=True)
    rows = rows.sort(pl.col("figure").str.ends_with("positive"), "figure", maintain_order=True)
    several = rows["run"].n_unique() > 1
    panelled, axes = panel(0.75 + 0.28 * rows.height)
    names = []
    for place, (run, figure) in enumerate(rows.iter_rows()):
        scorer, _, sign = figure.rpartition("/")
        names.append(f"{sign} by {scorer}" + (f", {run}" if several else ""))
        mine = figures.filter(run=run, figure=figure)
        peers = mine.filter(pl.col("target") != target)["value"].to_numpy()
        label = "peers" if place == 0 else None
        axes.plot(peers, np.full(len(peers), place), "|", color=INK, ms=9, alpha=0.6, label=label)
        colour, marker = (PREJUDICE, "o") if sign == "negative" else (FAVOURITISM, "s")
        value = mine.filter(pl.col("target") == target)["value"].item()
        axes.plot([value], [place], marker, color=colour, ms=6.5, label=target if place == 0 else None)
    axes.set_yticks(range(rows.height), names)
    axes.invert_yaxis()
    axes.margins(y=0.12)
    axes.set_xlim(left=min(0, axes.get_xlim()[0]))
    axes.set_xlabel("% of a target's statements")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    legend(axes)
    return panelled
