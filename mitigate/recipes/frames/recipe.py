"""recipe=frames: Social Bias Frames. load > train > measure > report."""

from functools import partial
from typing import Any

from omegaconf import DictConfig

from mitigate.recipes.frames.plan import Plan, make_plan
from mitigate.recipes.job import Job, perform, say
from mitigate.store import Result
from mitigate.tasks.frames.training import train_base, train_fold


def run(config: DictConfig) -> float | None:
    """Train, measure and report; returns the metric that `optimized_metric` names."""
    plan = make_plan(config)
    parts = plan.posts["split"].value_counts(sort=True).iter_rows()
    say("  posts: " + ", ".join(f"{split} {count:,}" for split, count in parts))
    metrics = perform(
        config,
        f"frames-{config.frames.start}-seed{config.seed}",
        plan.source,
        stages_of(plan),
        lambda job: pipeline(job, plan),
        uploads=["the model"],
    )
    return metrics.get(config.optimized_metric) if metrics else None


def stages_of(plan: Plan) -> list[str]:
    """The names of all stages in their order."""
    return ["base", *(f"fold_{fold}" for fold in plan.folds)]


def pipeline(job: Job, plan: Plan) -> dict[str, Any]:
    """The stages in their order; returns the metrics."""
    base, folds = train(job, plan)
    return {**base.facts()}


def train(job: Job, plan: Plan) -> tuple[Result, list[Result]]:
    """The training on the training split, and from there one for each fold."""
    base = job.stage(
        "base",
        train_base,
        plan.posts,
        plan.start,
        plan.settings,
        using=lambda work: {**_where(job, plan, "base", work.fingerprint), "weights": plan.weights},
        leaves=["models/base"],
        scratch=["checkpoints/base"],
        may_be_kept=True,
    )
    folds = [
        job.stage(
            f"fold_{fold}",
            train_fold,
            plan.posts,
            fold,
            plan.fold_settings,
            after=[base],
            using=lambda work, fold=fold: _where(job, plan, f"fold_{fold}", work.fingerprint),
            leaves=[f"models/fold_{fold}"],
            scratch=[f"checkpoints/fold_{fold}"],
            may_be_kept=True,
        )
        for fold in plan.folds
    ]
    return base, folds


def _where(job: Job, plan: Plan, stage: str, fingerprint: str) -> dict[str, Any]:
    """Where and how a model is trained."""
    return {
        "folder": job.folder,
        "fingerprint": fingerprint,
        "accelerator": plan.config.frames.device,
        "log": partial(job.tracking.log, stage=stage),
    }
