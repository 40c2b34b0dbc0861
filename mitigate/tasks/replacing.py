"""Tails of a generator for the triples that a policy replaces and the data has no other tail for."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter import Policy, prompts_lacking_tails
from mitigate.measure.lift import is_echo
from mitigate.tasks.base_model import Start, find_start
from mitigate.tasks.label import Labeller
from mitigate.tasks.probe_heads import probe_heads
from mitigate.triples import Parts
from mitigate.words.relations import Relation
from models.kinds import kind_of


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
            f"policy.generator={folder} is not the folder of a trained generator ({error}); name the "
            "folder model/ of a run of policy=none, or set policy.generator=null"
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
