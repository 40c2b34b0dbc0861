"""Generated tails in the order of a policy's decoding."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter import Policy, polarised, prompts_lacking_tails
from mitigate.measure.lift import is_echo
from mitigate.probe.tails import draw_as_many, reorder
from mitigate.tasks.generators.base_model import Start, find_start
from mitigate.tasks.generators.probe import probe_heads
from mitigate.tasks.label import Labeller
from mitigate.tasks.people.validity import with_people_valid
from mitigate.triples import Parts, Scorer
from mitigate.words.relations import Relation
from models.kinds import kind_of

Order = Callable[[Policy, pl.DataFrame, int], pl.DataFrame]
UNLIKELY_VALID = -pl.col("people_validity").fill_null(0.0)
"""Rises as people call a tail valid less often; the same for all tails of relations that nobody rated."""


def rerank(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """The `top` tails of each target and relation (columns PROBED, beam_rank) in the order of the policy's decoding,
    which filter.Policy describes. candidates: what label_candidates returns of a probe of more tails than these."""
    return ORDERS[policy.decoding](policy, candidates, top)


def label_candidates(probed: pl.DataFrame, labeller: Labeller, critic: Scorer | None = None) -> pl.DataFrame:
    """What probe_generator returns, labelled; with a critic also what people would call valid (with_people_valid)."""
    labelled = labeller.label_probed(probed)
    if critic is None:
        return labelled
    return with_people_valid(labelled, critic, labeller.target_list, cache=labeller.cache)


def rerank_heads(
    policy: Policy, candidates: pl.DataFrame, labeller: Labeller, top: int, critic: Scorer | None = None
) -> pl.DataFrame:
    """The same of what probe_heads returns, which is labelled for that alone."""
    return rerank(policy, label_candidates(candidates, labeller, critic), top)


def _neutral_first(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    return reorder(candidates, [polarised(policy)], top)


def _critic(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """The neutral ones first, the most valid of these before others."""
    among_neutral = pl.when(polarised(policy)).then(0.0).otherwise(UNLIKELY_VALID)
    return reorder(candidates, [polarised(policy), among_neutral], top)


def _validity(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    return reorder(candidates, [UNLIKELY_VALID], top)


def _random_rerank(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    return _drawn(policy, candidates, polarised(policy), top)


def _random_critic(policy: Policy, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
    """As many tails leave the `top` as the critic moves out, and as many of the others come in, whichever."""
    kept = _critic(policy, candidates, top).select("target", "relation", "head", rank="beam_rank", stays=True)
    found = candidates.join(kept, on=["target", "relation", "head", "rank"], how="left", maintain_order="left")
    return _drawn(policy, found, pl.col("stays").is_null(), top)


def _drawn(policy: Policy, candidates: pl.DataFrame, demoted: pl.Expr, top: int) -> pl.DataFrame:
    drawn = draw_as_many(candidates, demoted, top, policy.seed)
    return reorder(candidates.with_columns(drawn=drawn), [pl.col("drawn")], top)


ORDERS: Mapping[str, Order] = {
    "rerank": _neutral_first,
    "random_rerank": _random_rerank,
    "critic": _critic,
    "random_critic": _random_critic,
    "validity": _validity,
}


def find_generator(policy: Policy, further: Sequence[Relation] = (), *, comet: bool = True) -> Start | None:
    """The generator that the policy takes tails of, asked as it was trained; None where it takes none. further, comet:
    as find_start. Raises MitigateError where it is not at hand."""
    if policy.generator is None:
        return None
    folder = Path(policy.generator)
    try:
        return find_start(kind_of(folder).load, folder, train=False, further=further, comet=comet)
    except (ValueError, OSError) as error:
        raise MitigateError(
            f"policy.generator={folder} is no folder of a trained generator ({error}); name the folder model/ of a run "
            "of policy=none, or say policy.generator=null"
        ) from error


def generate_tails(
    policy: Policy,
    labelled: pl.DataFrame,
    generator: Start,
    labeller: Labeller,
    *,
    parts: Parts | None = None,
    device: str = "cpu",
) -> pl.DataFrame:
    """Labelled tails, the likeliest first, for the prompts that the policy lacks tails for: of its `candidates` best
    ones those whose log-probability per token is above `least_score`, and that are neither empty nor an echo of the
    head. What is done is kept in `parts`, across a kill. labelled: what label_statements returns of the triples."""
    prompts = prompts_lacking_tails(policy, labelled, labeller.target_list)
    number = policy.candidates
    found = probe_heads(generator, prompts, generator.asked, device=device, parts=parts, beams=number, top=number)
    likely = found.filter(pl.col("score") > policy.least_score, pl.col("tail") != "", ~is_echo())
    return labeller.label(likely.drop("target", "category"))
