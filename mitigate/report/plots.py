"""The harms paper's figures for any run: frames in, matplotlib figures out.

Every frame has one row a target: (target, category, statements, prejudice, favouritism, neutral), in
percent. Figures are narrow enough for a phone, transparent, and use no colour alone to tell things apart."""

import functools
from collections.abc import Callable, Sequence
from io import BytesIO, StringIO
from pathlib import Path

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mitigate.report.saving import save as save_file
from mitigate.targets import CATEGORIES

# Okabe and Ito's palette, which people with colour blindness can tell apart.
PREJUDICE, FAVOURITISM, BOTH, KEPT = "#D55E00", "#0072B2", "#CC79A7", "#009E73"
INK = "#767676"  # 4.5 : 1 against white and against black; a page sees it as its own text colour
STYLE = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.size": 9,
    "legend.frameon": False,
    "savefig.transparent": True,
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
    "svg.hashsalt": "mitigate",  # the same figure, the same ids
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
