"""recipe=profile: three sides of one group, from finished runs. read > measure > report."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes import comparing, reporting
from mitigate.recipes.job import Job, folder_name, may_record_texts, perform, plain, say, say_notes
from mitigate.recipes.scorers import label_cache
from mitigate.report.html import save
from mitigate.report.target_profile import Profile, console, render
from mitigate.runs import files
from mitigate.runs.store import Result
from mitigate.score.frames import Frames
from mitigate.tasks.compare.plan import names_of, run_and_command, shared_settings
from mitigate.tasks.target_profile.measures import (
    distinctive,
    figures,
    frame_figures,
    framed_statements,
    implied,
    placed,
)
from mitigate.tasks.target_profile.measures import facts_of_graph as about_graph
from mitigate.tasks.target_profile.plan import PROFESSIONS, ProfilePlan, make_plan
from mitigate.triples import LabelCache

SIDES = ("figures", "distinctive", "placed", "framed", "implied")  # the tables that the page shows


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    runs: ProfilePlan
    scorer: Frames | None  # predicts implied statements; None without a run of recipe=frames
    few: int  # statements; figures of fewer are marked
    top: int  # implied statements that are shown
    peers: int  # targets of the same category that a target is compared with, at most
    bootstrap: Bootstrap
    cache: LabelCache
    data: Mapping[str, Any]  # name, attribution and licence of the generators' data, and whether it is a demonstration

    @property
    def shown(self) -> dict[str, Any]:
        """Settings and words of the page."""
        runs = self.runs
        return {
            "targets": runs.targets,
            "runs": [grid.title for grid in runs.grids],
            "scorers": runs.scorers,
            "few": self.few,
            "top": self.top,
            "most_peers": self.peers,
            "graph": about_graph(runs.kge) if runs.kge else None,
            "notices": runs.notices,
        }


def run(config: DictConfig) -> None:
    """Profile the targets that `profile.targets` names, from the runs that `profile.runs`, `profile.kge` and
    `profile.frames` name."""
    settings = plain(config.profile)
    runs = make_plan(settings["runs"], settings["targets"], settings["kge"], settings["frames"])
    facts = shared_settings(runs.runs)
    plan = Plan(
        runs=runs,
        scorer=Frames(runs.frames.folder) if runs.frames else None,
        few=settings["few"],
        top=settings["top"],
        peers=settings["peers"],
        bootstrap=Bootstrap(resamples=config.measure.resamples, seed=config.seed),
        cache=label_cache(config),
        data=facts["data"],
    )
    say_notes(runs.notices)
    config = comparing.with_facts(config, facts)
    perform(
        config,
        folder_name(config.recipe.name, *runs.targets),
        runs.source,
        partial(pipeline, plan=plan),
        partial(record, plan=plan),
        uploads=["tables", "plots"] if may_record_texts(config) else ["no texts"],
        tracked=names_of(runs.runs),
    )


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    grids, targets, kge, scorer = plan.runs.grids, plan.runs.targets, plan.runs.kge, plan.scorer
    sides: dict[str, Result] = {
        "figures": job.stage("figures", figures, grids, plan.few, plan.bootstrap),
        "distinctive": job.stage("distinctive", distinctive, grids, targets, plan.few),
    }
    if kge:
        values, professions = about_graph(kge)["values"], kge.table(PROFESSIONS)
        sides["placed"] = job.stage("placed", placed, values, professions, targets, grids[0].target_list)
    if scorer:
        cached = {"cache": plan.cache}
        read = job.stage("statements", framed_statements, grids, targets, plan.peers, scorer, using=cached)
        sides["framed"] = job.stage("framed", frame_figures, read, plan.bootstrap)
        sides["implied"] = job.stage("implied", implied, read, scorer, plan.top)
    found = job.stage("profile", findings, sides, plan.shown)
    job.stage(
        "report",
        write_report,
        sides,
        plan.shown,
        after=[found],
        using={"folder": job.folder, "facts_of_graph": about_page(job, plan)},
        leaves=["profile.html", "plots", "tables"],
    )


def findings(sides: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """The content of profile.json: the targets, the worst first, and the findings in words."""
    profile = profile_of(sides, shown, name="", command="", demonstration=False)
    return {"targets": profile.ordered, "runs": profile.runs, "lines": profile.lines, "notices": profile.notices}


def about_page(job: Job, plan: Plan) -> dict[str, Any]:
    """The origin of the page: command, stages and provenance."""
    runs = plan.runs
    named = {grid.title: run_and_command(grid.run) for grid in runs.grids}
    named |= {recipe: run_and_command(run) for recipe, run in (("kge", runs.kge), ("frames", runs.frames)) if run}
    facts = {"data": reporting.source_of(plan.data), **named}
    return {"demonstration": plan.data["demonstration"], **reporting.about(job, facts)}


def record(job: Job, plan: Plan) -> None:
    """Record the tables and pictures on W&B, and print the findings."""
    found = job.results
    tables = {name: found[name].table() for name in SIDES if name in found}
    if job.records_texts:  # all name targets
        for name, table in tables.items():
            job.tracking.table(name, table)
    reporting.record_plots(job)
    say("\n" + console(profile_of(tables, plan.shown, name=job.folder.name, **about_page(job, plan))))
    say(f"  profile     {job.folder / 'profile.html'}")


def profile_of(sides: Mapping[str, pl.DataFrame], shown: Mapping[str, Any], **page: Any) -> Profile:
    """The content of the page. sides: the tables that there are, by the page's names; shown: settings and words."""
    content: dict[str, Any] = {**sides, **shown, **page}
    return Profile(**content)


def write_report(
    sides: Mapping[str, pl.DataFrame], shown: Mapping[str, Any], *, folder: Path, facts_of_graph: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the page, its tables and its pictures."""
    profile = profile_of(sides, shown, name=folder.name, **facts_of_graph)
    files.write(folder / "profile.html", render(profile))
    save(folder, sides, profile.pictures, latex=False)
    return {"targets": profile.ordered}
