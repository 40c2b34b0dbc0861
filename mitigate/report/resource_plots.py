"""Two resources in one figure, in the style of the paper's Figures 1, 3 and 4: the first hollow, the second filled.

Frames have a row for each target that both mention: target, category, and each of statements, prejudice and
favouritism twice, the second resource's with the suffix `_second`."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from mitigate.report.drawing import FAVOURITISM, INK, KEPT, PREJUDICE, note, panel, styled
from mitigate.report.legend import ordered
from mitigate.report.plots import boxplot, categories_below, name_targets, values_of

HOLLOW, FULL = 0.0, 0.6  # opacities
COLOURS = {"prejudice": PREJUDICE, "favouritism": FAVOURITISM, "statements": KEPT}
SIGNS = {"prejudice": "negative", "favouritism": "positive"}


@styled
def boxes(targets: pl.DataFrame, column: str, titles: tuple[str, str]) -> Figure:
    """Box plots of a share over the targets of each category (Fig. 1), or of the number of statements, which has a
    logarithmic scale (Fig. 4)."""
    figure, axes = panel(3.2)
    categories = ordered(targets["category"].to_list())
    for end, opacity, shift in (("", HOLLOW, -0.19), ("_second", FULL, 0.19)):
        values = values_of(targets, categories, column + end)
        boxplot(axes, values, np.arange(len(categories)) + shift, COLOURS[column], opacity)
    categories_below(axes, categories)
    if column == "statements":
        axes.set_yscale("symlog", linthresh=10)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_ylabel("statements about a target")
    else:
        axes.set_ylabel(f"% {SIGNS[column]} of a target's statements")
    axes.set_ylim(bottom=0)
    _legend(axes, [_patch(COLOURS[column], *which) for which in zip((HOLLOW, FULL), titles, strict=True)])
    return figure


@styled
def bars(targets: pl.DataFrame, titles: tuple[str, str]) -> Figure:
    """Prejudice to the left and favouritism to the right, two bars for each target in the order given (Fig. 3)."""
    figure, axes = panel(0.9 + 0.42 * targets.height)
    places = np.arange(targets.height)
    for column, side, align in (("prejudice", -1, "right"), ("favouritism", 1, "left")):
        for end, opacity, shift in (("", HOLLOW, -0.19), ("_second", FULL, 0.19)):
            lengths = side * targets[column + end].to_numpy()
            colour = COLOURS[column]
            axes.barh(places + shift, lengths, height=0.32, color=to_rgba(colour, opacity), ec=colour, lw=0.8)
            for place, length in zip(places + shift, lengths, strict=True):
                note(axes, f"{abs(length):.0f}", (length, float(place)), 3 * side, align)
    name_targets(axes, targets["target"].to_list())
    signs = [_patch(COLOURS[column], FULL, sign) for column, sign in SIGNS.items()]
    _legend(axes, [*(_patch(INK, *which) for which in zip((HOLLOW, FULL), titles, strict=True)), *signs])
    return figure


def _patch(colour: str, opacity: float, label: str) -> Patch:
    return Patch(facecolor=to_rgba(colour, opacity), edgecolor=colour, lw=0.8, label=label)


def _legend(axes: Axes, patches: list[Patch]) -> None:
    """In lines above the axes, two names each: names of resources may be long."""
    axes.legend(handles=patches, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.3)
