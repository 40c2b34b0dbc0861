"""Stages of a policy's second training, between the first one and the probe."""

from collections.abc import Sequence

from mitigate.filter import Policy
from mitigate.probe.comet import find_devices
from mitigate.recipes.job import Job
from mitigate.recipes.mitigate.plan import Plan
from mitigate.recipes.start import training_settings
from mitigate.store import Result
from mitigate.tasks.start import Start
from mitigate.tasks.train import trained
from mitigate.tasks.tune import BASE, check_material, own_tails, tune_generator, tuned_from
from mitigate.triples import Scorer

OWN_TAILS, TUNE = "own_tails", "tune"
STAGES = (OWN_TAILS, TUNE)


def left_out(policy: Policy) -> set[str]:
    """The stages that the policy does not have."""
    return {*STAGES} - ({TUNE} if policy.tunes else set()) - ({OWN_TAILS} if policy.distils else set())


def trained_folder(policy: Policy) -> str:
    """Where the first training leaves its generator: model/, unless a second one follows."""
    return BASE if policy.tunes else "model"


def check_labelled(plan: Plan, labelled: Result) -> None:
    """Raises MitigateError where the second training has nothing to learn from: before the first one."""
    check_material(plan.policy, labelled.table(), plan.target_list)


def tune(
    job: Job, plan: Plan, labelled: Result, training: Result, generator: Start, scorers: Sequence[Scorer]
) -> tuple[Result, Start]:
    """What came of both trainings, and the generator after them; of another policy as after the first."""
    if not plan.policy.tunes:
        return training, generator
    settings, where = training_settings(plan.config)
    start = tuned_from(generator, plan.start)
    result = job.stage(
        TUNE,
        tune_generator,
        plan.policy,
        labelled,
        _own_tails(job, plan, labelled, generator, scorers),
        start,
        settings,
        training,
        plan.target_list,
        using=lambda work: {
            "model": work.folder / "model",
            "checkpoints": work.folder / "tune_checkpoints",
            "fingerprint": work.fingerprint,
            "log": lambda values, step: job.tracking.log(values, step, TUNE),
            "accelerator": where["accelerator"],
        },
        leaves=["model"],
        scratch=["tune_checkpoints"],
        may_be_kept=True,
    )
    return result, trained(generator, job.folder / "model", result.digest)


def _own_tails(job: Job, plan: Plan, labelled: Result, generator: Start, scorers: Sequence[Scorer]) -> Result | None:
    if not plan.policy.distils:
        return None
    return job.stage(
        OWN_TAILS,
        own_tails,
        plan.policy,
        labelled,
        generator,
        list(scorers),
        plan.config.probe.top,
        plan.critic,
        **plan.worded,
        using=lambda work: {
            "cache": plan.cache,
            "parts": work.parts("own_tail_parts"),
            "device": find_devices(plan.config.probe.device, 1)[0],
        },
        scratch=["own_tail_parts"],
        may_be_kept=True,
    )
