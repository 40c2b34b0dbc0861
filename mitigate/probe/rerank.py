"""Neutral tails first: what can be had at decoding time from a generator that is left as it is."""

import polars as pl

from mitigate.triples import PROBED


def neutral_first(candidates: pl.DataFrame, polarised: pl.Expr, top: int) -> pl.DataFrame:
    """The rows of PROBED for the `top` tails of each target, relation and head: first those that are not polarised,
    then those that are, both as they were ranked; with `beam_rank`, the rank they had.

    Where fewer than `top` are neutral, the best of the polarised fill up."""
    prompt = ["target", "relation", "head"]
    named = candidates.with_row_index("place").with_columns(polarised=polarised, beam_rank="rank")
    ordered = named.sort(pl.col("place").first().over(prompt), "polarised", "beam_rank")
    ranked = ordered.with_columns(rank=pl.int_range(1, pl.len() + 1).over(prompt).cast(PROBED["rank"]))
    return ranked.filter(pl.col("rank") <= top).select(*PROBED, "beam_rank")
