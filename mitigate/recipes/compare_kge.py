"""Differences of two runs on knowledge-graph embeddings, from their run folders. read > measure > report."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes import comparing, reporting
from mitigate.recipes.job import Job, folder_name, perform, say
from mitigate.report import kge_comparison as page
from mitigate.report.html import save
from mitigate.runs import files
from mitigate.tasks.compare.kge import KgePlan, agreement_of, both_rankings, comparison, plan_kge, side_by_side


def run(config: DictConfig) -> None:
    """Compare the two runs that `compare.runs` names; a line for each figure."""
    plan = plan_kge(comparing.named(config))
    config = comparing.with_facts(config, about(plan))
    found = perform(
        config,
        folder_name(config.recipe.name, "kge", config.data.name, *plan.titles),
        plan.source,
        partial(pipeline, plan=plan),
        record,
        uploads=["tables", "plots"],
        tracked={"data": [str(run.text("data.name")) for run in plan.runs], "model": list(plan.titles)},
    )
    comparing.say_found(found["comparison"].facts() if found else None)


def about(plan: KgePlan) -> dict[str, Any]:
    """The compared runs' data and models, for W&B and the manifest."""
    first = plan.runs[0]
    data = {key: first.text(f"data.{key}") or reporting.NOT_GIVEN for key in ("name", "licence", "attribution")}
    return {
        "policy": comparing.listed(plan.titles),
        "data": data | comparing.data_of(plan.runs),
        "model": {"name": ", ".join(plan.titles)},
    }


def pipeline(job: Job, plan: KgePlan) -> None:
    """Run the stages in their order."""
    figures = job.stage("figures", side_by_side, plan.runs)
    professions = job.stage("professions", both_rankings, plan.runs)
    agreement = job.stage("agreement", agreement_of, professions)
    compared = job.stage("comparison", findings, plan, figures, professions, agreement)
    values = plan, figures, professions, agreement
    comparing.report_stage(job, report, *values, facts=_facts(plan), compared=compared)


def record(job: Job) -> None:
    """Record tables and the plot on W&B; texts only where they may go there."""
    job.tracking.table("figures", job.results["figures"].table())
    if job.records_texts:
        job.tracking.table("professions", job.results["professions"].table())
    reporting.record_plots(job)
    say(f"  comparison  {job.folder / 'comparison.html'}")


def findings(
    plan: KgePlan, figures: pl.DataFrame, professions: pl.DataFrame, agreement: Mapping[str, float | None]
) -> dict[str, Any]:
    """The content of comparison.json: every figure, and the findings in words."""
    found = _page(plan, figures, professions, agreement, name="", command="")
    return comparison(plan, figures, dict(agreement), page.lines(found))


def report(
    plan: KgePlan,
    figures: pl.DataFrame,
    professions: pl.DataFrame,
    agreement: Mapping[str, float | None],
    *,
    folder: Path,
    **about: Any,
) -> dict[str, Any]:
    """Write the page, its picture and the tables."""
    found = _page(plan, figures, professions, agreement, name=folder.name, **about)
    files.write(folder / "comparison.html", page.render(found))
    save(folder, {"figures": figures, "professions": professions}, found.pictures)
    return {"notices": plan.notices}


def _page(
    plan: KgePlan,
    figures: pl.DataFrame,
    professions: pl.DataFrame,
    agreement: Mapping[str, float | None],
    **about: Any,
) -> page.KgeComparison:
    return page.KgeComparison(
        demonstration=plan.demonstration,
        titles=plan.titles,
        names=plan.names,
        sensitive=plan.sensitive,
        figures=figures,
        professions=professions,
        agreement=agreement,
        notices=plan.notices,
        **about,
    )


def _facts(plan: KgePlan) -> dict[str, Any]:
    """The provenance of the page."""
    first = plan.runs[0]
    data = {name: first.text(f"data.{name}") for name in ("name", "attribution", "licence")}
    return {
        "data": reporting.source_of(data),
        **{
            title: {"run": run.folder.name, "command": run.manifest.get("command")}
            for title, run in zip(plan.titles, plan.runs, strict=True)
        },
    }
