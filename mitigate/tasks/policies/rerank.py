"""Generated tails in the order of a policy's decoding, and tails that a policy generates for training triples."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter import Policy, polarised, prompts_lacking_tails
from mitigate.measure.swap_lift import is_echo
from mitigate.probe.tails import draw_as_many, reorder
from mitigate.tasks.generators.base_model import Start, find_start
from mitigate.tasks.generators.probe import probe_heads
from mitigate.tasks.label import Labeller
from mitigate.triples import Scorer
from mitigate.words.relations import Relation
from models.kinds import kind_of
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


def find_generator(policy: Policy, further: Sequence[Relation] = (), *, comet: bool = True) -> Start | None:
    """Find the generator of a policy that takes tails from one; it is prompted as it was trained. None for other
    policies. further, comet: as find_start. Raises MitigateError where it cannot be loaded."""
    if policy.generator is None:
        return None
    folder = Path(policy.generator)
    try:
        return find_start(kind_of(folder).load, folder, train=False, further=further, comet=comet)
    except (ValueError, OSError) as error:
        raise MitigateError(
            f"policy.generator={folder} is not a folder of a trained generator ({error}); set it to the folder model/ "
            "of a run of policy=none, or to null"
        ) from error


def generate_tails(
    policy: Policy, labelled: pl.DataFrame, generator: Start, labeller: Labeller, **how: Any
) -> pl.DataFrame:
    """Generate and label tails, the likeliest first, for the prompts that the policy lacks tails for: of those of
    candidate_tails (with `how`) the ones whose log-probability per token is above `least_score`. labelled: what
    label_statements returns."""
    prompts = prompts_lacking_tails(policy, labelled, labeller.target_list)
    found = candidate_tails(policy, generator, prompts, **how)
    return labeller.label(found.filter(pl.col("score") > policy.least_score).drop("target", "category"))


def candidate_tails(policy: Policy, generator: Start, prompts: pl.DataFrame, **how: Any) -> pl.DataFrame:
    """The `policy.candidates` best tails (probe_heads, with `how`) of each prompt that are neither empty nor an echo of
    the head."""
    number = policy.candidates
    found = probe_heads(generator, prompts, beams=number, top=number, **how)
    return found.filter(pl.col("tail") != "", ~is_echo())
