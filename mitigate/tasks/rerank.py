"""Generated tails in the order of a policy's decoding."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from mitigate.filter import Policy, polarised
from mitigate.probe.rerank import demote, draw_as_many
from mitigate.relations import Relation
from mitigate.score.labels import NOTHING_CACHED
from mitigate.target_list import PAPER, TargetList
from mitigate.tasks.label import label_probed
from mitigate.triples import LabelCache, Scorer
from mitigate.verbalise import Masking


def rerank(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """The `top` tails of each target and relation (columns PROBED, beam_rank). With decoding="rerank" those come first
    that no scorer of the policy finds polarised; with "random_rerank" as many are moved, drawn by the policy's seed.
    candidates: what label_probed returns of a probe of more tails than these."""
    demoted = polarised(policy)
    if policy.decoding == "random_rerank":
        drawn = draw_as_many(candidates, demoted, top, policy.seed)
        candidates, demoted = candidates.with_columns(drawn=drawn), pl.col("drawn")
    return demote(candidates, demoted, top)


def rerank_heads(
    policy: Policy,
    candidates: pl.DataFrame,
    scorers: Sequence[Scorer],
    top: int,
    *,
    masking: Masking = "token",
    target_list: TargetList = PAPER,
    own_relations: Sequence[Relation] = (),
    cache: LabelCache = NOTHING_CACHED,
) -> pl.DataFrame:
    """The same of what probe_heads returns, which is labelled for that alone."""
    how: dict[str, Any] = {"masking": masking, "target_list": target_list, "own_relations": own_relations}
    labelled = label_probed(candidates, scorers, **how, cache=cache)
    return rerank(policy, labelled, top)
