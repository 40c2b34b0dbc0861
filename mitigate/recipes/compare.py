"""Differences of finished runs of the main job from a baseline, in harms and quality, with intervals.
read > measure > report."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes import comparing, reporting
from mitigate.recipes.job import Job, folder_name, perform, plain, say
from mitigate.report import comparison as page
from mitigate.report.html import Stage, save
from mitigate.runs import files
from mitigate.tasks.compare import findings
from mitigate.tasks.compare.endpoints import Endpoints
from mitigate.tasks.compare.figures import harm_differences, moves
from mitigate.tasks.compare.plan import ComparePlan, make_plan, read_compared
from mitigate.tasks.compare.quality import quality_differences
from mitigate.tracking.charts import headline_differences


def run(config: DictConfig) -> None:
    """Compare the runs that `compare.runs` names with those of `compare.baseline`; a line for each policy."""
    endpoints = comparing.endpoints_of(config)
    plan = make_plan(*read_compared(plain(config.compare.runs), plain(config.compare.baseline)))
    if plan.demonstration:
        say("Runs on a small corpus written for demonstration: they show how things work and claim nothing.")
    facts = comparing.shared_facts(plan.runs)
    facts["policy"] = comparing.listed(contrast.name for contrast in plan.contrasts)
    config = comparing.with_facts(config, facts)
    name = folder_name(config.recipe.name, facts["data"]["name"], facts["model"]["name"])
    results = perform(
        config,
        name,
        plan.source,
        partial(pipeline, plan=plan, endpoints=endpoints),
        partial(record, plan=plan, endpoints=endpoints),
        uploads=["tables", "charts", "plots"],
        tracked=comparing.names_of(plan.runs),
    )
    found = results["comparison"].facts() if results else None
    comparing.say_brief(config, found)
    comparing.end_by_gate(config, found)


def pipeline(job: Job, plan: ComparePlan, endpoints: Endpoints) -> None:
    """Run the stages in their order."""
    harms = job.stage("harms", harm_differences, plan.contrasts, plan.labellings, plan.relations)
    quality = job.stage("quality", quality_differences, plan.contrasts, plan.relations, plan.deciding)
    moved = job.stage("moves", moves, plan.contrasts, plan.labellings, plan.relations)
    compared = job.stage("comparison", findings.comparison, plan, harms, quality, moved, endpoints)
    values = plan, harms, quality, moved, endpoints
    comparing.report_stage(job, report, *values, facts=_facts(plan), compared=compared)


def report(
    plan: ComparePlan,
    harms: pl.DataFrame,
    quality: pl.DataFrame,
    moved: pl.DataFrame,
    endpoints: Endpoints,
    *,
    folder: Path,
    command: str,
    stages: Sequence[Stage],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the page, its pictures and the tables."""
    pairs = findings.pairs(plan, harms, quality, moved, endpoints)
    frames = findings.frames(plan, pairs, quality, moved)
    about = page.Comparison(
        name=folder.name,
        command=command,
        demonstration=plan.demonstration,
        pairs=pairs,
        models=frames["models"],
        axes=findings.axes_of(plan),
        moves=moved,
        scorers=plan.scorers,
        stages=stages,
        facts=facts,
        notices=plan.notices,
        links=_links(plan, folder),
    )
    files.write(folder / "comparison.html", page.render(about))
    save(folder, frames, about.pictures)
    return {"notices": plan.notices}


def _links(plan: ComparePlan, folder: Path) -> dict[str, str]:
    """The links from the comparison's page to those of runs in the same folder, by run."""
    beside = [run.folder for run in plan.runs if run.folder.parent == folder.resolve().parent]
    return {run.name: f"../{quote(run.name)}/report.html" for run in beside if (run / "report.html").is_file()}


def _facts(plan: ComparePlan) -> dict[str, Any]:
    """The provenance of the page."""
    fingerprints = dict.fromkeys(str(run.metrics["fingerprint"]) for run in plan.runs)
    named = ("name", "attribution", "licence")
    sources = [reporting.source_of({name: run.text(f"data.{name}") for name in named}) for run in plan.runs]
    return {
        "data": "; ".join(dict.fromkeys(sources)),
        "fingerprints of corpus and targets": ", ".join(fingerprints),
        "scorers": plan.scorers,
    }


def record(job: Job, plan: ComparePlan, endpoints: Endpoints) -> None:
    """Record verdicts and gate, differences of headlines with charts, tables and plots; texts only where they may go to
    W&B."""
    harms, quality, moved = (job.results[name].table() for name in ("harms", "quality", "moves"))
    pairs, found = findings.pairs(plan, harms, quality, moved, endpoints), job.results["comparison"].facts()
    rows = [(pair, [*pair.harms.filter(category="").to_dicts(), *pair.quality.to_dicts()]) for pair in pairs]
    apart = pl.concat(headline_differences(pair.name, pair.against, figures) for pair, figures in rows)
    also = {"verdict": " ".join(contrast["sentence"] for contrast in found["contrasts"]), "gate": found["gate"]}
    reporting.record_differences(job, apart, next(reversed(plan.scorers), "regard"), also=also)
    for name, frame in findings.frames(plan, pairs, quality, moved).items():
        if name != "moves" or job.records_texts:
            job.tracking.table(name, frame)
    reporting.record_plots(job)
    say(f"  comparison  {job.folder / 'comparison.html'}")
