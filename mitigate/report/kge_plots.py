"""Figures of a run on knowledge-graph embeddings: scores against counts, and bias against quality."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mitigate.metrics import bounds
from mitigate.report.drawing import BOTH, FAVOURITISM, INK, KEPT, PREJUDICE, legend, name_points, panel, styled

NAMED = 14  # professions
LONGEST_LINE = 60  # characters that fit beside the axes
MARKERS = ("o", "v", "^", "D", "s", "P", "X")  # as trained, and after each mitigation
COLOURS = (INK, PREJUDICE, FAVOURITISM, BOTH, KEPT, PREJUDICE, INK)


@styled
def scatter(professions: pl.DataFrame, changes: np.ndarray, names: Sequence[str]) -> Figure:
    """The change of each profession's score against its log count ratio: the mean over seeds, and each seed.
    professions: in any order, with the columns row, log_ratio, change; changes: (seeds, professions), by row."""
    figure, axes = panel(4.2)
    across, change = professions["log_ratio"].to_numpy(), professions["change"].to_numpy()
    if len(changes) > 1:
        for number, row in enumerate(changes[:, professions["row"].to_numpy()]):
            label = None if number else "single seed"
            axes.plot(across, row, ".", color=INK, ms=2.5, alpha=0.45, label=label)
    above = change > 0
    for chosen, colour, marker, name in ((above, FAVOURITISM, "o", names[0]), (~above, PREJUDICE, "^", names[1])):
        points, label = (across[chosen], change[chosen]), fill(f"towards {name}", LONGEST_LINE)
        axes.scatter(*points, s=18, c=colour, marker=marker, alpha=0.8, lw=0, label=label)
    axes.axhline(0, color=INK, lw=0.6)
    axes.set_xlabel(fill(f"log ratio of counts, {names[0]} to {names[1]}", LONGEST_LINE))
    axes.set_ylabel("change of score, equation 1")
    legend(axes, columns=1 if max(map(len, names)) > LONGEST_LINE // 3 else 2)
    _name_outliers(figure, axes, professions["profession"], across, change)
    return figure


@styled
def front(points: pl.DataFrame, figure_name: str, axis: str) -> Figure:
    """A figure of bias against MRR, before and after mitigations: means with their intervals over trainings, and the
    bias by chance. points: as report.kge.front_table has them."""
    figure, axes = panel(3.2)
    for marker, colour, row in zip(MARKERS, COLOURS, points.rows(named=True), strict=False):
        if row[figure_name] is None or row["mrr"] is None:
            continue
        reach = _reach(row, figure_name), _reach(row, "mrr")
        style = {"color": colour, "ms": 5, "lw": 0.8, "label": row["mitigation"]}
        axes.errorbar(row["mrr"], row[figure_name], *reach, marker, **style)
    if chance := points[f"{figure_name}_by_chance"].drop_nulls().to_list():
        axes.axhline(float(np.mean(chance)), color=INK, lw=0.8, ls=":", label="by chance")
    axes.locator_params("x", nbins=6)
    axes.set_xlabel("mean reciprocal rank, higher is better")
    axes.set_ylabel(axis)
    legend(axes, columns=2)
    return figure


def _reach(row: Mapping[str, Any], name: str) -> list[list[float]] | None:
    """The lengths of an error bar below and above a figure; None without an interval."""
    low, high = (row[bound] for bound in bounds(name))
    return None if low is None or high is None else [[row[name] - low], [high - row[name]]]


def _name_outliers(figure: Figure, axes: Axes, professions: pl.Series, ratio: np.ndarray, change: np.ndarray) -> None:
    """Write the names of professions with the largest changes and furthest from a straight line through all, where
    there is space."""
    slope, start = np.polyfit(ratio, change, 1) if np.ptp(ratio) else (0.0, float(change.mean()))
    furthest = np.argsort(-np.abs(change - start - slope * ratio), kind="stable")[: NAMED // 2]
    order = np.argsort(-np.abs(change), kind="stable")
    chosen = list(dict.fromkeys([*furthest.tolist(), *order.tolist()]))[:NAMED]
    name_points(figure, axes, professions.to_list(), np.stack([ratio, change], axis=1), chosen)
