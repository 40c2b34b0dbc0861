"""Generated tails in another order: what can be had at decoding time from a generator that is left as it is."""

from collections.abc import Sequence
from hashlib import blake2b

import polars as pl

from mitigate.triples import PROBED

PROMPT = ("target", "relation", "head")


def reorder(candidates: pl.DataFrame, keys: Sequence[pl.Expr], top: int) -> pl.DataFrame:
    """The rows of PROBED for the `top` tails of each target, relation and head by rising keys, the first key first; of
    equal ones as they were ranked. With `beam_rank`, the rank they had."""
    given = candidates.with_row_index("place").with_columns(beam_rank="rank")
    ordered = given.sort(pl.col("place").first().over(PROMPT), *keys, "beam_rank")
    ranked = ordered.with_columns(rank=pl.int_range(1, pl.len() + 1).over(PROMPT).cast(PROBED["rank"]))
    return ranked.filter(pl.col("rank") <= top).select(*PROBED, "beam_rank")


def draw_as_many(candidates: pl.DataFrame, demoted: pl.Expr, top: int, seed: int) -> pl.Series:
    """Whether each candidate is drawn: of each prompt as many of the `top` best ones as are demoted, and as many of the
    others, so that `reorder` by it moves as many tails out of the `top`.

    What is drawn of a prompt depends on the seed, the prompt and its candidates alone, not on what else is asked."""
    asked = candidates.select("head", "relation", "rank").rows()
    lots = pl.Series([_lot(seed, *candidate) for candidate in asked], dtype=pl.UInt64)
    rows = candidates.select(*PROMPT, is_best=pl.col("rank") <= top, demoted=demoted).with_columns(lot=lots)
    of_part = (*PROMPT, "is_best")
    drawn = pl.col("lot").rank("ordinal").over(of_part) <= pl.col("demoted").sum().over(of_part)
    return rows.select(drawn).to_series()


def _lot(*drawn_by: object) -> int:
    return int.from_bytes(blake2b(repr(drawn_by).encode(), digest_size=8).digest())
