"""The stage of a policy that replaces tails by those of a generator: shared by the recipes that filter."""

from mitigate.filter import Policy
from mitigate.recipes.job import Job
from mitigate.store import Result
from mitigate.tasks.label import Labeller
from mitigate.tasks.replacing import generate_tails
from mitigate.tasks.start import Start

GENERATED_TAILS = "generated_tails"


def generated_tails(
    job: Job,
    policy: Policy,
    labelled: Result,
    generator: Start | None,
    labeller: Labeller,
    device: str,
) -> Result | None:
    """Tails for the prompts that the policy lacks tails for; None without a generator."""
    if generator is None:
        return None
    return job.stage(
        GENERATED_TAILS,
        generate_tails,
        policy,
        labelled,
        generator,
        labeller,
        using=lambda work: {"parts": work.parts("generated_tail_parts"), "device": device},
        scratch=["generated_tail_parts"],
        may_be_kept=True,
    )
