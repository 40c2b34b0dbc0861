"""Generated tails in the order of a policy's decoding."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from mitigate.filter import Policy, polarised
from mitigate.probe.tails import draw_as_many, reorder
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.label import Labeller
from mitigate.triples import Scorer
from models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG, tagged

Order = Callable[[Policy, pl.DataFrame, int], pl.DataFrame]
UNLIKELY_VALID = -pl.col("people_validity").fill_null(0.0)
"""Higher, the less often people call a tail valid; the same for all tails of relations that nobody rated."""


def rerank(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """The `top` tails of each target and relation (columns PROBED, beam_rank) in the order of the policy's decoding,
    which filter.Policy describes. candidates: what label_candidates returns of a probe of more tails than these."""
    return ORDERS[policy.decoding](policy, candidates, top if policy.keep is None else min(top, policy.keep))


def with_contrast(
    tails: pl.DataFrame, generator: Any, phrases: Mapping[str, str] | None = None, *, device: str = "cpu"
) -> pl.DataFrame:
    """Add `contrast` to tails (head, relation, tail): the log-probability after the neutral control token less that
    after the polarised one; 0 for heads without a token. generator: a Start, or a loaded one with the wording of
    relations in its prompts."""
    from mitigate.probe.likelihood import nll_of_tails  # loads PyTorch

    if isinstance(generator, Start):
        generator, phrases = generator.load().to(device), generator.phrases
    assert phrases is not None
    heads = [head.replace(NEUTRAL_TAG, POLARISED_TAG, 1) for head in tagged(tails["head"].to_list(), generator.tags)]
    after = [
        pl.Series(nll_of_tails(generator, rows, phrases, lambda _: None), dtype=pl.Float64)
        for rows in (tails, tails.with_columns(head=pl.Series(heads, dtype=pl.String)))
    ]
    return tails.with_columns(contrast=after[1] - after[0])


def label_candidates(probed: pl.DataFrame, labeller: Labeller, critic: Scorer | None = None) -> pl.DataFrame:
    """Label what probe_generator returns; with a critic also by what people would call valid (with_people_valid)."""
    labelled = labeller.label_probed(probed)
    if critic is None:
        return labelled
    from mitigate.tasks.predicted_ratings.estimates import with_people_valid  # loads PyTorch

    return with_people_valid(labelled, critic, labeller.target_list, cache=labeller.cache)


def rerank_heads(
    policy: Policy, candidates: pl.DataFrame, labeller: Labeller, top: int, critic: Scorer | None = None
) -> pl.DataFrame:
    """Label what probe_heads returns, and put it in the order of the policy's decoding."""
    return rerank(policy, label_candidates(candidates, labeller, critic), top)


def _critic(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """Order neutral tails first, the most valid of these before others."""
    among_neutral = pl.when(polarised(policy)).then(0.0).otherwise(UNLIKELY_VALID)
    return reorder(candidates, [polarised(policy), among_neutral], top)


def _random_critic(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """Replace as many tails of the `top` as the critic does, drawn at random."""
    kept = _critic(policy, candidates, top).select("target", "relation", "head", rank="beam_rank", stays=True)
    found = candidates.join(kept, on=["target", "relation", "head", "rank"], how="left", maintain_order="left")
    return _drawn(policy, found, pl.col("stays").is_null(), top)


def _drawn(policy: Policy, candidates: pl.DataFrame, demoted: pl.Expr, top: int) -> pl.DataFrame:
    drawn = draw_as_many(candidates, demoted, top, policy.seed)
    return reorder(candidates.with_columns(drawn=drawn), [pl.col("drawn")], top)


ORDERS: Mapping[str, Order] = {
    "rerank": lambda policy, candidates, top: reorder(candidates, [polarised(policy)], top),
    "random_rerank": lambda policy, candidates, top: _drawn(policy, candidates, polarised(policy), top),
    "critic": _critic,
    "random_critic": _random_critic,
    "contrast": lambda policy, candidates, top: reorder(candidates, [-pl.col("contrast")], top),
    "validity": lambda policy, candidates, top: reorder(candidates, [UNLIKELY_VALID], top),
}
