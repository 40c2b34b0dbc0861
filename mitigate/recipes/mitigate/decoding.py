"""Stages of the policy's decoding: of what it does when a generator that is trained already generates tails."""

from collections.abc import Mapping, Sequence
from typing import Any

from mitigate.probe.comet import find_devices
from mitigate.recipes.job import Job
from mitigate.recipes.mitigate.plan import Plan
from mitigate.recipes.start import training_settings
from mitigate.store import Result
from mitigate.tasks.label import label_probed
from mitigate.tasks.rerank import rerank, rerank_heads
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
from mitigate.triples import Scorer


def check_ledger(plan: Plan, ledger: Result) -> None:
    """Raises MitigateError where the policy is to steer by what it finds, and finds nothing: before the training."""
    if plan.policy.steers and not ledger.pending:
        check_findings(plan.policy, ledger.table(), plan.target_list)


def steer(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
    """The generator as the policy has it decoded: with an anti-expert, or an eraser; of another policy as it is."""
    return STEERED[plan.policy.decoding](job, plan, ledger, generator) if plan.policy.steers else generator


def search(plan: Plan, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the search for tails, with as many beams as the policy chooses among."""
    if not plan.policy.reranks:
        return dict(settings)
    return {**settings, "beams": plan.policy.candidates, "top": plan.policy.candidates}


def chosen(job: Job, plan: Plan, probed: Result, scorers: Sequence[Scorer]) -> Result:
    """What the policy chooses of the tails for targets; of one that chooses nothing, all."""
    if not plan.policy.reranks:
        return probed
    using = {"cache": plan.cache}
    candidates = job.stage("candidates", label_probed, probed, list(scorers), **plan.worded, using=using)
    return job.stage("rerank", rerank, plan.policy, candidates, plan.config.probe.top)


def chosen_of_heads(job: Job, plan: Plan, heads: Result, scorers: Sequence[Scorer]) -> Result:
    """The same of the tails for held-out heads."""
    if not plan.policy.reranks:
        return heads
    top, using = plan.config.probe.top, {"cache": plan.cache}
    return job.stage("heads_rerank", rerank_heads, plan.policy, heads, list(scorers), top, **plan.worded, using=using)


def _erased(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
    using = {"device": find_devices(plan.config.probe.device, 1)[0]}
    found = job.stage(ERASER, fit_eraser, plan.policy, ledger, generator, plan.target_list, using=using)
    return with_eraser(generator, found.path, found.digest)


def _against_anti_expert(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
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


STEERED = {"experts": _against_anti_expert, "erase": _erased}
