"""Stages of the policy's decoding: of what it does when a generator that is trained already generates tails."""

from mitigate.recipes.job import Job
from mitigate.recipes.mitigate.plan import Plan
from mitigate.runs.store import Result
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.policies.rerank import label_candidates, rerank, rerank_heads
from mitigate.tasks.policies.steer import (
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
    if plan.policy.steers and not ledger.pending:
        check_findings(plan.policy, ledger.table(), plan.target_list)


def steer(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
    """The generator as the policy has it decoded: with an anti-expert, or an eraser; of another policy as it is."""
    return STEERED[plan.policy.decoding](job, plan, ledger, generator) if plan.policy.steers else generator


def chosen(job: Job, plan: Plan, probed: Result) -> Result:
    """What the policy chooses of the tails for targets; of one that chooses nothing, all."""
    if not plan.policy.reranks:
        return probed
    candidates = job.stage("candidates", label_candidates, probed, plan.labeller, plan.critic)
    return job.stage("rerank", rerank, plan.policy, candidates, plan.probe.top)


def chosen_of_heads(job: Job, plan: Plan, heads: Result) -> Result:
    """The same of the tails for held-out heads."""
    if not plan.policy.reranks:
        return heads
    return job.stage("heads_rerank", rerank_heads, plan.policy, heads, plan.labeller, plan.probe.top, plan.critic)


def _erased(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
    here = {"device": plan.device}
    found = job.stage(ERASER, fit_eraser, plan.policy, ledger, generator, plan.target_list, using=here)
    return with_eraser(generator, found.path, found.digest)


def _against_anti_expert(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
    found = job.stage(
        ANTI_EXPERT,
        train_anti_expert,
        plan.policy,
        ledger,
        generator,
        plan.target_list,
        plan.settings,
        using=lambda work: {
            "model": work.folder / ANTI_EXPERT,
            "checkpoints": work.folder / "anti_checkpoints",
            "fingerprint": work.fingerprint,
            "log": lambda values, step: job.tracking.log(values, step, ANTI_EXPERT),
            "where": plan.where,
        },
        leaves=[ANTI_EXPERT],
        scratch=["anti_checkpoints"],
        may_be_kept=True,
    )
    return with_anti_expert(generator, job.folder / ANTI_EXPERT, found.digest, plan.policy)


STEERED = {"experts": _against_anti_expert, "erase": _erased}
