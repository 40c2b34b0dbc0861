"""Finished runs against a baseline: did it help, what did it cost, can one believe it. read > measure > report."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from mitigate.recipes.compare import audits, figures, reporting
from mitigate.recipes.compare import quality as compare_quality
from mitigate.recipes.compare.audits_plan import are_named
from mitigate.recipes.compare.plan import ComparePlan, about, make_plan
from mitigate.recipes.job import Job, perform, plain, say

STAGES = ("harms", "quality", "moves", "comparison", "report")


def run(config: DictConfig) -> None:
    """Compare the runs that `compare.runs` names with those of `compare.baseline`; a line for each policy. Of audits,
    two side by side."""
    if are_named(config):
        audits.run(config)
        return
    plan = make_plan(config)
    if plan.demonstration:
        say("Runs on a small corpus written for demonstration: they show how things work and claim nothing.")
    shared = about(plan)
    config = DictConfig(OmegaConf.merge(config, {key: shared[key] for key in ("policy", "data", "model")}))
    name = f"{config.recipe.name}-{config.data.name}-{config.model.name}"
    told = ["tables", "plots"]
    found = perform(config, name, plan.source, STAGES, lambda job: pipeline(job, plan), uploads=told)
    if found:
        for line in found["lines"]:
            say(f"  {line}")
        for notice in found["notices"]:
            say(f"  note: {notice}")


def pipeline(job: Job, plan: ComparePlan) -> dict[str, Any]:
    """The stages in their order; returns the comparison."""
    settings = [plain(plan.config.measure), plan.config.seed]
    needs = [plan.source]
    harms = job.old_stage(
        "harms",
        lambda _: figures.harm_differences(plan),
        needs=needs,
        settings=settings,
        code=[figures, *figures.CODE],
    )
    quality = job.old_stage(
        "quality",
        lambda _: compare_quality.quality_differences(plan),
        needs=needs,
        settings=settings,
        code=[compare_quality, *compare_quality.CODE],
    )
    moves = job.old_stage("moves", lambda _: figures.moves(plan), needs=needs, code=[figures])
    return reporting.report(job, plan, harms, quality, moves)
