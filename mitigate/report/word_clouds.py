"""The harms paper's word clouds (Fig. 12), as lines of a text."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from mitigate.report.drawing import WIDTH, styled


@styled
def words(phrases: pl.DataFrame, most: int = 40) -> Figure:
    """The commonest of the phrases (phrase, count), the larger the commoner, in lines like a text (Fig. 12)."""
    chosen = phrases.sort("count", "phrase", descending=[True, False]).head(most)
    lines: list[list[tuple[str, float, float]]] = []  # (phrase, size, width in points)
    line_width = 72 * WIDTH
    left = 0.0
    for phrase, count in chosen.select(pl.col("phrase").str.slice(0, 40), "count").iter_rows():
        per_point = 0.62 * (len(phrase) + 1)  # wide enough for any font of a page
        size = min(7 + 13 * count / chosen["count"][0], line_width / per_point)
        width = per_point * size
        if width > left:
            lines.append([])
            left = line_width
        lines[-1].append((phrase, size, width))
        left -= width
    heights = [1.5 * max(size for _, size, _ in line) for line in lines]
    figure = Figure(figsize=(WIDTH, sum(heights) / 72))
    for line, top in zip(lines, np.cumsum([0.0, *heights]), strict=False):
        x = (line_width - sum(width for *_, width in line)) / 2
        for phrase, size, width in line:
            figure.text((x + width / 2) / line_width, 1 - top / sum(heights), phrase, size=size, ha="center", va="top")
            x += width
    return figure
