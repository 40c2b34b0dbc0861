"""The harms paper's regions of prejudice and favouritism (Fig. 2, 8, 9): the region of each target, and the scatter
plot of them. Regions are relative: a target can be in "more negative" at 1 %."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mitigate.report.drawing import BOTH, FAVOURITISM, INK, PREJUDICE, legend, name_points, panel, styled

REGIONS = {  # region -> colour and marker (Fig. 2's red, blue, purple and the rest)
    "more negative": (PREJUDICE, "v"),
    "more positive": (FAVOURITISM, "^"),
    "more of both": (BOTH, "D"),
    "neither": (INK, "o"),
}


def with_regions(targets: pl.DataFrame) -> pl.DataFrame:
    """Assign targets with statements to regions: more negative, more positive, more of both or neither.

    The paper draws its regions by eye; here more is above the upper quartile of all targets given."""
    against, towards = (
        pl.col(column) > pl.col(column).quantile(0.75, "linear") for column in ("prejudice", "favouritism")
    )
    region = (
        pl.when(against & towards)
        .then(pl.lit("more of both"))
        .when(against)
        .then(pl.lit("more negative"))
        .when(towards)
        .then(pl.lit("more positive"))
        .otherwise(pl.lit("neither"))
    )
    return targets.drop_nulls(["prejudice", "favouritism"]).with_columns(region=region)


@styled
def regions(targets: pl.DataFrame, category: str) -> Figure:
    """Prejudice against favouritism for each target of a category, by region (Fig. 2, 8, 9).

    Scales and regions are those of all targets given, so that categories can be compared."""
    figure, axes = panel(3.6)
    everyone = with_regions(targets)
    rows = everyone.filter(pl.col("category") == category).sort("target")
    for region, (colour, marker) in REGIONS.items():
        points = rows.filter(pl.col("region") == region)
        axes.scatter(
            points["prejudice"], points["favouritism"], s=20, c=colour, marker=marker, alpha=0.75, lw=0, label=region
        )
    for draw, column in ((axes.axvline, "prejudice"), (axes.axhline, "favouritism")):
        draw(everyone[column].quantile(0.75, "linear") or 0.0, color=INK, lw=0.6, ls=(0, (4, 3)))
    axes.set_xlim(*_limits(everyone["prejudice"]))
    axes.set_ylim(*_limits(everyone["favouritism"]))
    axes.set_xlabel("% negative")
    axes.set_ylabel("% positive")
    legend(axes)
    _name_outliers(figure, axes, rows)
    return figure


def _limits(values: pl.Series) -> tuple[float, float]:
    """Axis limits from just below 0, so that points on the axis are not cut, to just above the largest value."""
    top = max(values.to_list(), default=0.0) or 1.0
    return -0.03 * top, 1.08 * top


def _name_outliers(figure: Figure, axes: Axes, rows: pl.DataFrame, most: int = 16) -> None:
    """Write the names of the targets furthest from the origin."""
    scaled = [pl.col(column) / (pl.col(column).max() + 1e-9) for column in ("prejudice", "favouritism")]
    furthest = rows.with_row_index().sort(scaled[0] ** 2 + scaled[1] ** 2, descending=True, maintain_order=True)
    points = rows.select("prejudice", "favouritism").to_numpy()
    name_points(figure, axes, rows["target"].to_list(), points, furthest["index"].head(most).to_list())
