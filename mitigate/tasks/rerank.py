"""Generated tails in the order of a policy's decoding."""

import polars as pl

from mitigate.filter import Policy, polarised
from mitigate.probe.rerank import demote, draw_as_many
from mitigate.tasks.label import Labeller


def rerank(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """The `top` tails of each target and relation (columns PROBED, beam_rank). With decoding="rerank" those come first
    that no scorer of the policy finds polarised; with "random_rerank" as many are moved, drawn by the policy's seed.
    candidates: what label_probed returns of a probe of more tails than these."""
    demoted = polarised(policy)
    if policy.decoding == "random_rerank":
        drawn = draw_as_many(candidates, demoted, top, policy.seed)
        candidates, demoted = candidates.with_columns(drawn=drawn), pl.col("drawn")
    return demote(candidates, demoted, top)


def rerank_heads(policy: Policy, candidates: pl.DataFrame, labeller: Labeller, top: int) -> pl.DataFrame:
    """The same of what probe_heads returns, which is labelled for that alone."""
    return rerank(policy, labeller.label_probed(candidates), top)
