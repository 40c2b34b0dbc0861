"""What must be said beside figures, whichever recipe found them."""

import polars as pl

from mitigate.measure import uncertainty
from mitigate.targets import clusters


def few_targets(table: pl.DataFrame) -> list[str]:
    """A notice where categories of a table with a row a target (target, category, statements) are too small."""
    few = uncertainty.few_targets(table, clusters())
    if not few:
        return []
    return [
        f"Few targets in {', '.join(few)} (under {uncertainty.FEW_TARGETS}): intervals of these categories are "
        "narrower than they should be, and tests of their variances find differences that are not there too often."
    ]
