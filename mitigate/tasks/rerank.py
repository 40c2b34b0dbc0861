"""Neutral tails first, as a policy finds them: what can be had at decoding time."""

import polars as pl

from mitigate.filter import Policy, polarised
from mitigate.probe.rerank import neutral_first


def rerank_neutral_first(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """The `top` tails of each target and relation (columns PROBED and beam_rank), those first that no scorer of the
    policy finds polarised. candidates: what label_probed returns of a probe of more tails than these."""
    return neutral_first(candidates, polarised(policy), top)
