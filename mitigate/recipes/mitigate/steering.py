"""Stages of policies that act on a generator which is trained already."""

from mitigate.probe.comet import find_devices
from mitigate.recipes.job import Job
from mitigate.recipes.mitigate.plan import Plan
from mitigate.recipes.start import training_settings
from mitigate.store import Result
from mitigate.tasks.start import Start
from mitigate.tasks.steer import (
    ANTI_EXPERT,
    ERASER,
    check_findings,
    fit_eraser,
    train_anti_expert,
    with_anti_expert,
    with_eraser,
)


def check_ledger(plan: Plan, ledger: Result) -> None:
    """Raises MitigateError where the policy is to steer by what it finds, and finds nothing: before the training."""
    if plan.policy.steers:
        check_findings(plan.policy, ledger.table(), plan.target_list)


def steer(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
    """The generator as the policy has it decoded: with an anti-expert, or an eraser; of another policy as it is."""
    if not plan.policy.steers:
        return generator
    if plan.policy.action == "erase":
        using = {"device": find_devices(plan.config.probe.device, 1)[0]}
        found = job.stage(ERASER, fit_eraser, plan.policy, ledger, generator, plan.target_list, using=using)
        return with_eraser(generator, found.path, found.digest)
    settings, where = training_settings(plan.config)
    found = job.stage(
        ANTI_EXPERT,
        train_anti_expert,
        plan.policy,
        ledger,
        generator,
        plan.target_list,
        settings,
        using=lambda work: {
            "model": work.folder / ANTI_EXPERT,
            "checkpoints": work.folder / "anti_checkpoints",
            "fingerprint": work.fingerprint,
            "log": lambda values, step: job.tracking.log(values, step, ANTI_EXPERT),
            "where": where,
        },
        leaves=[ANTI_EXPERT],
        scratch=["anti_checkpoints"],
        may_be_kept=True,
    )
    return with_anti_expert(generator, job.folder / ANTI_EXPERT, found.digest, plan.policy)
