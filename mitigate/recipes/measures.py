"""Every figure of a run, from its tables, as the one flat object that metrics.json holds."""

from typing import TYPE_CHECKING, Any

import polars as pl

from mitigate.measure import harms, quality
from mitigate.triples import TEMPLATES, label_columns

if TYPE_CHECKING:
    from mitigate.recipes.mitigate import Plan

CODE = (harms, quality)
SCORERS = ("sentiment", "regard")
PREFIX = {"paper": "", "neutral": "neutral_template/"}
