"""Stages before the ledger that only some policies need: validity of the triples, and generated tails.

The recipes that filter share them."""

from mitigate.filter import Policy
from mitigate.recipes.job import Job
from mitigate.runs.store import Result
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.label import Labeller
from mitigate.tasks.policies.rerank import generate_tails
from mitigate.triples import Scorer


def with_critic(job: Job, policy: Policy, labelled: Result, critic: Scorer | None, labeller: Labeller) -> Result:
    """The labelled triples with their validity by people's ratings, for a policy that filters by it."""
    if not policy.unless_valid:
        return labelled
    from mitigate.tasks.predicted_ratings.estimates import with_people_valid  # loads PyTorch

    cached = {"cache": labeller.cache}
    return job.stage("critic", with_people_valid, labelled, critic, labeller.target_list, using=cached)


def generated_tails(
    job: Job, policy: Policy, labelled: Result, generator: Start | None, labeller: Labeller, device: str
) -> Result | None:
    """Generated tails for prompts where the policy lacks tails; None without a generator."""
    if generator is None:
        return None
    return job.stage(
        "generated_tails",
        generate_tails,
        policy,
        labelled,
        generator,
        labeller,
        using=lambda work: {"parts": work.parts("generated_tail_parts"), "device": device},
        scratch=["generated_tail_parts"],
        may_be_kept=True,
    )
