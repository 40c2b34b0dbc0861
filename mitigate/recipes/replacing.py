"""Stages before the ledger that only some policies need, shared by the recipes that filter: what people would call
valid of the triples, and tails of a generator."""

from collections.abc import Sequence
from typing import Any

from mitigate.filter import Policy
from mitigate.label_cache import LabelStore
from mitigate.probe.comet import find_devices
from mitigate.recipes.job import Job
from mitigate.store import Result
from mitigate.target_list import TargetList
from mitigate.tasks.people.validity import with_people_valid
from mitigate.tasks.replacing import generate_tails
from mitigate.tasks.start import Start
from mitigate.triples import Scorer

GENERATED_TAILS = "generated_tails"
CRITIC = "critic"


def with_critic(
    job: Job, policy: Policy, labelled: Result, critic: Scorer | None, target_list: TargetList, cache: LabelStore
) -> Result:
    """The labelled triples with what people would call valid, for a policy that filters by it."""
    if not policy.unless_valid:
        return labelled
    return job.stage(CRITIC, with_people_valid, labelled, critic, target_list, using={"cache": cache})


def generated_tails(
    job: Job,
    policy: Policy,
    labelled: Result,
    generator: Start | None,
    scorers: Sequence[Scorer],
    cache: LabelStore,
    **worded: Any,
) -> Result | None:
    """Tails for the prompts that the policy lacks tails for; None without a generator. worded: how triples become
    masked statements."""
    if generator is None:
        return None
    return job.stage(
        GENERATED_TAILS,
        generate_tails,
        policy,
        labelled,
        generator,
        list(scorers),
        **worded,
        using=lambda work: {
            "cache": cache,
            "parts": work.parts("generated_tail_parts"),
            "device": find_devices(job.config.probe.device, 1)[0],
        },
        scratch=["generated_tail_parts"],
        may_be_kept=True,
    )
