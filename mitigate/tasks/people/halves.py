"""Two halves of the rated statements that share no target and no masked text: what a policy ranks by learns from one,
and what measures that policy from the other."""

import polars as pl

from mitigate.errors import one_of
from mitigate.score.people import plain
from mitigate.tasks.caveats import HALVES, WHOLE
from models.heads import fold_of


def half_of(rated: pl.DataFrame, half: str) -> pl.DataFrame:
    """The rated statements (masked, cluster) of a half of the clusters of targets, or of all. A masked text that both
    halves have stays in one of them. Raises MitigateError for another word."""
    if half == WHOLE:
        return rated
    if half not in HALVES:
        raise one_of("recipe.validity.half", half, (WHOLE, *HALVES))
    rows = rated.select(
        text=pl.Series([plain(text) for text in rated["masked"]]),
        of_cluster=pl.Series([fold_of(cluster) % 2 for cluster in rated["cluster"]]),
    )
    of_text = pl.Series([fold_of(text) % 2 for text in rows["text"]])
    in_both = rows.select(pl.col("of_cluster").n_unique().over("text") == 2).to_series()
    place = HALVES.index(half)
    kept = (rows["of_cluster"] == place) & (~in_both | (of_text == place))
    return rated.filter(kept)
