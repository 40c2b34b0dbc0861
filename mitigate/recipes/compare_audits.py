"""Differences of two resources, from the folders of their audits, and statements about the targets for which they
differ most. read > measure > report."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes import comparing, reporting
from mitigate.recipes.job import Job, folder_name, perform, say
from mitigate.report import resources as page
from mitigate.report.html import save
from mitigate.runs import files
from mitigate.tasks.compare import audit_findings as findings
from mitigate.tasks.compare.audit_findings import agreements, both_sides, differences
from mitigate.tasks.compare.audits import AuditsPlan, plan_audits
from mitigate.tracking.charts import headline_differences
from mitigate.triples import ROLES


def run(config: DictConfig) -> None:
    """Compare the two audits that `compare.runs` names; a line for each scorer."""
    plan = plan_audits(comparing.named(config))
    if plan.demonstration:
        say("A small corpus written for demonstration: it shows how things work and claims nothing.")
    facts = about(plan)
    config = comparing.with_facts(config, facts)
    found = perform(
        config,
        folder_name(config.recipe.name, facts["data"]["name"]),
        plan.source,
        partial(pipeline, plan=plan),
        partial(record, plan=plan),
        uploads=["tables", "charts", "plots"],
        tracked={"data": [str(run.text("data.name")) for run in plan.runs]},
    )
    comparing.say_found(found["comparison"].facts() if found else None)


def about(plan: AuditsPlan) -> dict[str, Any]:
    """The compared audits' settings: data, measures and scorers, for W&B and the manifest."""
    data = {
        "name": "-".join(str(run.text("data.name")) for run in plan.runs),
        "licence": "; ".join(run.text("data.licence") or reporting.NOT_GIVEN for run in plan.runs),
        "attribution": "; ".join(run.text("data.attribution") or reporting.NOT_GIVEN for run in plan.runs),
    }
    return {
        "policy": comparing.listed(plan.titles),
        "data": data | comparing.data_of(plan.runs),
        "measure": {name: plan.runs[0].text(f"measure.{name}") for name in ("masking", "empty_targets")},
        "score": {role: plan.runs[0].text(f"score.{role}") for role in ROLES},
    }


def pipeline(job: Job, plan: AuditsPlan) -> None:
    """Run the stages in their order."""
    figures = job.stage("figures", differences, plan.audits, plan.wordings)
    targets = job.stage("targets", both_sides, plan.audits, plan.wordings)
    agreement = job.stage("agreement", agreements, plan.audits, plan.wordings)
    compared = job.stage("comparison", findings.comparison, plan, figures, targets, agreement)
    values = plan, figures, targets, agreement
    comparing.report_stage(job, report, *values, facts=_facts(plan), compared=compared)


def report(
    plan: AuditsPlan,
    figures: pl.DataFrame,
    targets: pl.DataFrame,
    agreement: Mapping[str, float | None],
    *,
    folder: Path,
    **about: Any,
) -> dict[str, Any]:
    """Write the page, its pictures and the tables."""
    found = findings.resources(plan, figures, targets, agreement, name=folder.name, **about)
    files.write(folder / "comparison.html", page.render(found))
    save(folder, findings.frames(found), found.pictures)
    return {"notices": plan.notices}


def _facts(plan: AuditsPlan) -> dict[str, Any]:
    """The provenance of the page."""
    found: dict[str, Any] = {}
    for title, run in zip(plan.titles, plan.runs, strict=True):
        data = {name: run.text(f"data.{name}") for name in ("name", "attribution", "licence")}
        found[title] = {
            "run": run.folder.name,
            "command": run.manifest.get("command"),
            "data": reporting.source_of(data),
            "fingerprint": run.metrics["fingerprint"],
            "statements": run.metrics["statements"],
        }
    return {**found, "masking": plan.runs[0].text("measure.masking")}


def record(job: Job, plan: AuditsPlan) -> None:
    """Record differences, tables and plots; texts only where they may go to W&B."""
    figures, targets = job.results["figures"].table(), job.results["targets"].table()
    page_of = {"name": job.folder.name, **reporting.about(job, _facts(plan))}
    found = findings.resources(plan, figures, targets, job.results["agreement"].facts(), **page_of)
    overall = found.figures.filter(category="").to_dicts()
    first, second = found.titles
    rows = [{**row, "figure": row["key"]} for row in overall]
    reporting.record_differences(job, headline_differences(second, first, rows))
    for name, frame in findings.frames(found).items():
        if name != "targets" or job.records_texts:
            job.tracking.table(name, frame)
    reporting.record_plots(job)
    say(f"  comparison  {job.folder / 'comparison.html'}")
