"""recipe=profile: three sides of one group, from finished runs. read > measure > report."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes import reporting
from mitigate.recipes.comparing import data_of, folder_name, with_facts
from mitigate.recipes.job import GROUPS, Job, perform, plain, say
from mitigate.report.profile import Profile, console
from mitigate.report.profile import write as write_page
from mitigate.report.saving import save
from mitigate.runs.label_cache import LabelStore
from mitigate.runs.store import Result
from mitigate.score.frames import Frames
from mitigate.tasks.compare.plan import shared
from mitigate.tasks.profile.embeddings import about as about_graph
from mitigate.tasks.profile.embeddings import placed
from mitigate.tasks.profile.frames import frame_figures, framed_statements, implied
from mitigate.tasks.profile.generator import distinctive, figures
from mitigate.tasks.profile.plan import PROFESSIONS, ProfilePlan, facts_of, make_plan

SIDES = ("figures", "distinctive", "placed", "framed", "implied")  # the tables that the page shows


def run(config: DictConfig) -> None:
    """Profile the targets that `profile.targets` names, from the runs that `profile.runs`, `profile.kge` and
    `profile.frames` name."""
    asked = plain(config.profile)
    plan = make_plan(asked["runs"], asked["targets"], asked["kge"], asked["frames"])
    scorer = Frames(plan.frames.folder) if plan.frames else None
    for notice in plan.notices:
        say(f"  note: {notice}")
    config = with_facts(config, about(plan))
    perform(
        config,
        folder_name(config.recipe.name, *plan.targets),
        plan.source,
        partial(pipeline, plan=plan, scorer=scorer),
        partial(record, plan=plan),
        uploads=["tables", "plots"] if reporting.with_texts(config) else ["no texts"],
        of={group: [str(run.text(f"{group}.name")) for run in plan.runs] for group in GROUPS},
    )


def about(plan: ProfilePlan) -> dict[str, Any]:
    """What of the configuration is the generators': their data and model, which the record in W&B is grouped by."""
    names = {
        name: shared([run.text(name) or reporting.NOT_GIVEN for run in plan.runs])
        for name in ("data.name", "data.licence", "data.attribution", "model.name")
    }
    data = {key: names[f"data.{key}"] for key in ("name", "licence", "attribution")} | data_of(plan.runs)
    return {"data": data, "model": {"name": names["model.name"]}}


def pipeline(job: Job, plan: ProfilePlan, scorer: Frames | None) -> None:
    """The stages in their order."""
    config, first = job.config, plan.grids[0]
    asked, targets = config.profile, plan.targets
    bootstrap = Bootstrap(resamples=config.measure.resamples, seed=config.seed)
    sides: dict[str, Result] = {
        "figures": job.stage("figures", figures, plan.grids, asked.few, bootstrap),
        "distinctive": job.stage("distinctive", distinctive, plan.grids, targets, asked.few),
    }
    if plan.kge:
        values, professions = about_graph(plan.kge)["values"], plan.kge.table(PROFESSIONS)
        sides["placed"] = job.stage("placed", placed, values, professions, targets, first.target_list)
    if scorer:
        cache = LabelStore(Path(config.paths.cache) / "labels")
        read = job.stage(
            "statements", framed_statements, plan.grids, targets, asked.peers, scorer, using={"cache": cache}
        )
        sides["framed"] = job.stage("framed", frame_figures, read, bootstrap)
        sides["implied"] = job.stage("implied", implied, read, scorer, asked.top)
    shown = shown_of(job, plan)
    found = job.stage("profile", findings, sides, shown)
    job.stage(
        "report",
        write_report,
        sides,
        shown,
        after=[found],
        using={"folder": job.folder, "about": about_page(job, plan)},
        leaves=["profile.html", "plots", "tables"],
    )


def shown_of(job: Job, plan: ProfilePlan) -> dict[str, Any]:
    """Settings and words of the page."""
    asked = job.config.profile
    return {
        "targets": plan.targets,
        "runs": [grid.title for grid in plan.grids],
        "scorers": plan.scorers,
        "few": asked.few,
        "top": asked.top,
        "most_peers": asked.peers,
        "graph": about_graph(plan.kge) if plan.kge else None,
        "notices": plan.notices,
    }


def findings(sides: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """What profile.json holds: the targets, the worst first, and the findings in words."""
    profile = profile_of(sides, shown, name="", command="", demonstration=False)
    return {"targets": profile.ordered, "runs": profile.runs, "lines": profile.lines, "notices": profile.notices}


def about_page(job: Job, plan: ProfilePlan) -> dict[str, Any]:
    """Where the page comes from."""
    named = {grid.title: facts_of(grid.run) for grid in plan.grids}
    named |= {recipe: facts_of(run) for recipe, run in (("kge", plan.kge), ("frames", plan.frames)) if run}
    data = job.config.data
    return {
        "demonstration": bool(data.demonstration),
        **reporting.about(job, {"data": reporting.source_of(data), **named}),
    }


def record(job: Job, plan: ProfilePlan) -> None:
    """The tables and pictures on W&B, and the findings on the terminal."""
    found = job.results
    tables = {name: found[name].table() for name in SIDES if name in found}
    if reporting.with_texts(job.config):  # all name targets
        for name, table in tables.items():
            job.tracking.table(name, table)
    reporting.record_plots(job)
    say("\n" + console(profile_of(tables, shown_of(job, plan), name=job.folder.name, **about_page(job, plan))))
    say(f"  profile     {job.folder / 'profile.html'}")


def profile_of(sides: Mapping[str, pl.DataFrame], shown: Mapping[str, Any], **page: Any) -> Profile:
    """What the page shows. sides: the tables that there are, by the page's names; shown: settings and words."""
    content: dict[str, Any] = {**sides, **shown, **page}
    return Profile(**content)


def write_report(
    sides: Mapping[str, pl.DataFrame], shown: Mapping[str, Any], *, folder: Path, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the page, its tables and its pictures."""
    profile = profile_of(sides, shown, name=folder.name, **about)
    write_page(folder / "profile.html", profile)
    save(folder, sides, profile.pictures, latex=False)
    return {"targets": profile.ordered}
