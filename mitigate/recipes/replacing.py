"""The stage of a policy that replaces tails by those of a generator: shared by the recipes that filter."""

from collections.abc import Sequence
from typing import Any

from mitigate.filter import Policy
from mitigate.label_cache import LabelStore
from mitigate.probe.comet import find_devices
from mitigate.recipes.job import Job
from mitigate.store import Result
from mitigate.tasks.replacing import generate_tails
from mitigate.tasks.start import Start
from mitigate.triples import Scorer

GENERATED_TAILS = "generated_tails"


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
