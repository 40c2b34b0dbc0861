"""Stages of policies that act on a trained generator: a second training, and decoding."""

from mitigate.recipes.job import Job
from mitigate.recipes.mitigate.plan import Plan
from mitigate.runs.store import Result
from mitigate.tasks.generators.base_model import Start
from mitigate.tasks.generators.train import trained
from mitigate.tasks.policies import rerank, second_training, steer


def check_findings(plan: Plan, labelled: Result, ledger: Result) -> None:
    """Raise MitigateError before the first training where the policy finds nothing to steer by, or to learn from in the
    second training. Pending results are not checked."""
    if plan.policy.steers and not ledger.pending:
        steer.check_findings(plan.policy, ledger.table(), plan.target_list)
    if plan.policy.tunes and not labelled.pending:
        second_training.check_material(plan.policy, labelled.table(), plan.target_list)


def tuned(job: Job, plan: Plan, labelled: Result, training: Result, generator: Start) -> tuple[Result, Start]:
    """The figures and the generator after the policy's second training; without one, those given."""
    if not plan.policy.tunes:
        return training, generator
    result = job.stage(
        "tune",
        second_training.tune_generator,
        plan.policy,
        labelled,
        _own_tails(job, plan, labelled, generator),
        second_training.tuned_from(generator, plan.start),
        plan.settings,
        training,
        plan.target_list,
        using=job.training("tune", "model", "tune_checkpoints", accelerator=plan.where["accelerator"]),
        leaves=["model"],
        scratch=["tune_checkpoints"],
        may_be_kept=True,
    )
    return result, trained(generator, job.folder / "model", result.digest)


def _own_tails(job: Job, plan: Plan, labelled: Result, generator: Start) -> Result | None:
    """The generator's own tails, for a policy that distils them."""
    if not plan.policy.distils:
        return None
    return job.stage(
        "own_tails",
        second_training.own_tails,
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


def steered(job: Job, plan: Plan, ledger: Result, generator: Start) -> Start:
    """The generator with the policy's decoding: against an anti-expert, or with an eraser; else as it is."""
    values = plan.policy, ledger, generator, plan.target_list
    if plan.policy.decoding == "erase":
        eraser = job.stage(steer.ERASER, steer.fit_eraser, *values, using={"device": plan.device})
        return steer.with_eraser(generator, eraser.path, eraser.digest)
    if plan.policy.decoding != "experts":
        return generator
    folder, checkpoints = steer.ANTI_EXPERT, "anti_checkpoints"
    anti_expert = job.stage(
        steer.ANTI_EXPERT,
        steer.train_anti_expert,
        *values,
        plan.settings,
        using=job.training(steer.ANTI_EXPERT, folder, checkpoints, where=plan.where),
        leaves=[folder],
        scratch=[checkpoints],
        may_be_kept=True,
    )
    return steer.with_anti_expert(generator, job.folder / folder, anti_expert.digest, plan.policy)


def contrasted(job: Job, plan: Plan, stage: str, generator: Start, tails: Result) -> Result:
    """The tails with the contrast of the control tokens, for a policy that chooses by it."""
    if plan.policy.decoding != "contrast":
        return tails
    return job.stage(stage, rerank.with_contrast, tails, generator, using={"device": plan.device})


def chosen_tails(job: Job, plan: Plan, generator: Start, probed: Result) -> Result:
    """The tails for targets that the policy chooses; all where it does not rerank."""
    if not plan.policy.reranks:
        return probed
    probed = contrasted(job, plan, "contrast", generator, probed)
    candidates = job.stage("candidates", rerank.label_candidates, probed, plan.labeller, plan.critic)
    return job.stage("rerank", rerank.rerank, plan.policy, candidates, plan.probe.top)
