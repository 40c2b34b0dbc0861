"""Stages of a policy's second training, between the first one and the probe."""

from mitigate.filter import Policy
from mitigate.recipes.job import Job
from mitigate.recipes.mitigate.plan import Plan
from mitigate.runs.store import Result
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.generators.train import trained
from mitigate.tasks.policies.tune import BASE, check_material, own_tails, tune_generator, tuned_from

OWN_TAILS, TUNE = "own_tails", "tune"


def trained_folder(policy: Policy) -> str:
    """Where the first training leaves its generator: model/, unless a second one follows."""
    return BASE if policy.tunes else "model"


def check_labelled(plan: Plan, labelled: Result) -> None:
    """Raises MitigateError where the second training has nothing to learn from: before the first one."""
    if plan.policy.tunes and not labelled.pending:
        check_material(plan.policy, labelled.table(), plan.target_list)


def tune(job: Job, plan: Plan, labelled: Result, training: Result, generator: Start) -> tuple[Result, Start]:
    """What came of both trainings, and the generator after them; of another policy as after the first."""
    if not plan.policy.tunes:
        return training, generator
    start = tuned_from(generator, plan.start)
    result = job.stage(
        TUNE,
        tune_generator,
        plan.policy,
        labelled,
        _own_tails(job, plan, labelled, generator),
        start,
        plan.settings,
        training,
        plan.target_list,
        using=lambda work: {
            "model": work.folder / "model",
            "checkpoints": work.folder / "tune_checkpoints",
            "fingerprint": work.fingerprint,
            "log": lambda values, step: job.tracking.log(values, step, TUNE),
            "accelerator": plan.where["accelerator"],
        },
        leaves=["model"],
        scratch=["tune_checkpoints"],
        may_be_kept=True,
    )
    return result, trained(generator, job.folder / "model", result.digest)


def _own_tails(job: Job, plan: Plan, labelled: Result, generator: Start) -> Result | None:
    if not plan.policy.distils:
        return None
    return job.stage(
        OWN_TAILS,
        own_tails,
        plan.policy,
        labelled,
        generator,
        plan.labeller,
        plan.probe.top,
        plan.critic,
        using=lambda work: {"parts": work.parts("own_tail_parts"), "device": plan.device},
        scratch=["own_tail_parts"],
        may_be_kept=True,
    )
