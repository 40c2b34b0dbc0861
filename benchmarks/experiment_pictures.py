"""The three pictures of the experiment, from the rows of experiment.csv."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.experiment_effects import share_of, worst
from benchmarks.experiment_plan import Arm
from benchmarks.experiment_row import CATEGORIES, RELATIONS, of_category, of_relation
from mitigate.metrics import SWAP_LIFT, quality_key
from mitigate.report.drawing import INK, WIDTH, save, styled
from mitigate.report.pareto import mark

HELD_OUT = quality_key(SWAP_LIFT, "held_out")


def write_all(rows: pl.DataFrame, there: Sequence[str], known: Mapping[str, Arm], folder: Path) -> None:
    """All pictures as PNG and SVG files."""
    primary = [name for name in there if known[name].part == "primary"]
    save(harm_against_quality(rows, there), folder / "harm-against-quality")
    save(by_category(rows, primary), folder / "by-category")
    save(by_relation(rows, primary), folder / "by-relation")


@styled
def harm_against_quality(rows: pl.DataFrame, there: Sequence[str]) -> Figure:
    """A small mark for each run, a large one for the mean of its arm.

    Harm is the share of the endpoint as labelled. The corrected share does not exist where fewer are labelled polarised
    than the scorer's false alarms on rated statements alone (mitigate.measure.confusion), as under
    `both_neutral`."""
    figure = Figure(figsize=(6.4, 4.2 + 0.16 * -(-len(there) // 4)))
    axes = figure.add_subplot()
    for place, arm in enumerate(there):
        colour, marker = mark(place)
        mine = rows.filter(pl.col("polarised_alike").is_not_null(), pl.col(HELD_OUT).is_not_null(), arm=arm)
        if mine.is_empty():
            continue
        lifts, shares = mine.sort("seed")[HELD_OUT].to_list(), share_of(mine, arm, end="_alike")
        if mine.height > 1:
            axes.scatter(lifts, shares, s=16, c=colour, marker=marker, alpha=0.4, lw=0)
        axes.scatter(fmean(lifts), fmean(shares), s=65, c=colour, marker=marker, lw=0, label=arm, zorder=3)
    axes.grid()
    axes.margins(0.12)
    axes.set_xlabel("swap lift, heads that are no targets, points (better →)")
    axes.set_ylabel("polarised by crowd, % (← better)")
    _legend(axes, columns=4)
    return figure


@styled
def by_category(rows: pl.DataFrame, there: Sequence[str]) -> Figure:
    """A large mark for each arm's mean share of polarised statements, a small one for each run, by category and of the
    worst tenth of words, which the models of `none` chose."""
    names = [name for name in CATEGORIES if rows[of_category(name)].is_not_null().any()]
    places = worst(rows, "none") if "none" in there else []
    columns = {
        arm: [_values(rows, arm, of_category(name)) for name in names]
        + ([share_of(rows, arm, places) if arm != "none" else []] if places else [])
        for arm in there
    }
    return _side_by_side({"polarised by crowd, %": columns}, [*names, *(["worst tenth"] if places else [])])


@styled
def by_relation(rows: pl.DataFrame, there: Sequence[str]) -> Figure:
    """The same by relation, harm and perplexity."""
    found = {
        said: {arm: [_values(rows, arm, of_relation(figure, name)) for name in RELATIONS] for arm in there}
        for figure, said in (("polarised", "polarised by crowd, %"), ("perplexity", "perplexity, test triples"))
    }
    return _side_by_side(found, RELATIONS)


def _values(rows: pl.DataFrame, arm: str, column: str) -> list[float]:
    return rows.filter(arm=arm)[column].drop_nulls().to_list()


def _side_by_side(panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], names: Sequence[str]) -> Figure:
    """A panel for each figure; in each, at each name, the values of each arm's runs and their mean, arms beside one
    another."""
    figure = Figure(figsize=(WIDTH, 2.6 * len(panels) + 0.5))
    for number, (said, columns) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(len(panels), 1, number)
        for place, (arm, values) in enumerate(columns.items()):
            colour, marker = mark(place)
            beside = 0.7 * (place / max(1, len(columns) - 1) - 0.5)
            runs = [(x + beside, y) for x, each in enumerate(values) for y in each]
            points = [(x + beside, fmean(each)) for x, each in enumerate(values) if each]
            small = {"s": 9, "c": colour, "marker": marker, "alpha": 0.4, "lw": 0}
            axes.scatter([x for x, _ in runs], [y for _, y in runs], **small)
            axes.scatter([x for x, _ in points], [y for _, y in points], s=36, c=colour, marker=marker, lw=0, label=arm)
        for border in range(1, len(names)):
            axes.axvline(border - 0.5, color=INK, lw=0.4, alpha=0.4)
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(said)
        axes.set_ylim(bottom=0, top=1.06 * axes.dataLim.y1 if axes.dataLim.y1 > 0 else None)
        axes.grid(axis="y")
        if number == 1:
            _legend(axes)
    return figure


def _legend(axes: Axes, columns: int = 3) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0, handletextpad=0.3, columnspacing=1.2
    )
