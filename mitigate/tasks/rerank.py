"""Neutral tails first, as a policy finds them: what can be had at decoding time."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from mitigate.filter import Policy, polarised
from mitigate.probe.rerank import neutral_first
from mitigate.relations import Relation
from mitigate.score.labels import NOTHING_CACHED
from mitigate.target_list import PAPER, TargetList
from mitigate.tasks.label import label_probed
from mitigate.triples import LabelCache, Scorer
from mitigate.verbalise import Masking


def rerank_neutral_first(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """The `top` tails of each target and relation (columns PROBED and beam_rank), those first that no scorer of the
    policy finds polarised. candidates: what label_probed returns of a probe of more tails than these."""
    return neutral_first(candidates, polarised(policy), top)


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
    return rerank_neutral_first(policy, labelled, top)
