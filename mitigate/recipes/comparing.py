"""`recipe=compare`: finished runs side by side, of the kind that they are: of the main job, audits, or embeddings.
read > measure > report. The folder tasks/compare has a module for each kind (tasks.compare.plan.Kind)."""

from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from textwrap import shorten
from typing import Any, cast

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate.cli.arguments import literally
from mitigate.errors import MitigateError
from mitigate.recipes import reporting
from mitigate.recipes.job import Job, call, folder_name, is_brief, perform, plain, say, say_notes, say_page_notes
from mitigate.report.verdicts import FAILS, HOLDS, OPEN
from mitigate.runs.finished import folders, recipe_of
from mitigate.tasks.compare.endpoints import Endpoints
from mitigate.tasks.compare.plan import Kind, Plan, compare, write_page
from mitigate.tracking.charts import compared, headline_differences, summary

KINDS = {"audit": "audits", "kge": "embeddings"}  # by the recipe of the compared runs
OF_RUNS = "runs"
OVERVIEW, PAGE = "comparison", "report"  # the stages after those of figures
TEXTS = ("moves", "targets", "professions")  # tables that name targets, which may be a user's own
MOST_OF_A_TAG = 50  # characters; W&B allows 64 with the prefix
STATUS = {HOLDS: 0, FAILS: 4, OPEN: 3}  # exit status with compare.gate=true; 1 is a failed job, 2 a user's error


def run(config: DictConfig) -> None:
    """Compare the folders of `compare.runs` and `compare.baseline`: audits where one of them is an audit, embeddings
    where one is of recipe=kge."""
    runs, baseline = plain(config.compare.runs), plain(config.compare.baseline)
    recipes = {recipe_of(folder) for folder in (*folders(baseline), *folders(runs))}
    name = next((kind for recipe, kind in KINDS.items() if recipe in recipes), OF_RUNS)
    endpoints = endpoints_of(config)
    if config.compare.gate:
        _check_gate(config, name, endpoints)
    kind = cast(Kind, import_module(f"mitigate.tasks.compare.{name}"))  # embeddings load PyTorch
    plan = kind.read_plan(runs, baseline, endpoints)
    if plan.demonstration and kind.DEMONSTRATION:
        say(kind.DEMONSTRATION)
    config = with_facts(config, {"policy": listed(plan.titles), **plan.about})
    results = perform(
        config,
        folder_name(config.recipe.name, *plan.name_parts),
        plan.source,
        partial(pipeline, kind=kind, plan=plan),
        partial(record, kind=kind, plan=plan),
        uploads=kind.UPLOADS,
        tracked=plan.tracked,
    )
    found = results[OVERVIEW].facts() if results else None
    if found is not None:
        say_findings(config, found)
    if config.compare.gate:
        outcome = found["gate"] if found else OPEN  # a rehearsal has none
        say(f"  gate        {outcome}: exit status {STATUS[outcome]}")
        raise SystemExit(STATUS[outcome])


def _check_gate(config: DictConfig, kind: str, endpoints: Endpoints) -> None:
    """Raise MitigateError where compare.gate=true has nothing to decide by."""
    if kind != OF_RUNS or call(config)["sweep"]:
        where = "a sweep" if kind == OF_RUNS else "a comparison of audits or embeddings, which has no primary endpoints"
        raise MitigateError(
            f"compare.gate=true is for a single comparison of runs of recipe=mitigate, and this is {where}; leave "
            "compare.gate out"
        )
    if not endpoints.declared:
        raise MitigateError(
            "compare.gate=true decides by the primary endpoints, and compare names no primary endpoint: give "
            "compare.primary.harm or compare.primary.quality"
        )


def endpoints_of(config: DictConfig) -> Endpoints:
    """The endpoints that `compare.primary` and `compare.margins` name. Raises MitigateError for an unknown metric."""
    return Endpoints(**plain(config.compare.primary), margins=plain(config.compare.margins))


def with_facts(config: DictConfig, facts: Mapping[str, Any]) -> DictConfig:
    """The configuration with facts about the compared runs. Texts are taken literally: those of a foreign folder may
    look like ${oc.env:HOME}."""
    return DictConfig(OmegaConf.merge(config, literally(facts)))


def listed(names: Iterable[str]) -> dict[str, str]:
    """The names of the compared in place of a policy's, cut to the length of a W&B tag."""
    return {"name": shorten(", ".join(names), MOST_OF_A_TAG, placeholder=" ...")}


def pipeline(job: Job, kind: Kind, plan: Plan) -> None:
    """Run the stages in their order: the kind's figures, comparison.json, and the page with its pictures and tables."""
    figures = kind.measure(job.stage, plan)
    overview = job.stage(OVERVIEW, compare, kind, plan, *figures)
    using = {"folder": job.folder, **reporting.about(job, plan.provenance)}
    leaves = ["comparison.html", "plots", "tables"]
    job.stage(PAGE, write_page, kind, plan, *figures, using=using, after=[overview], leaves=leaves)


def record(job: Job, kind: Kind, plan: Plan) -> None:
    """Record verdicts and gate, differences of headlines with charts, tables and plots; texts only where they may go to
    W&B."""
    figures = [result.value() for name, result in job.results.items() if name not in (OVERVIEW, PAGE)]
    page, found = kind.page_of(plan, *figures, folder=job.folder, command=job.command), job.results[OVERVIEW].facts()
    if page.differences:
        rows = pl.concat(headline_differences(*sides) for sides in page.differences)
        verdict = {}
        if "gate" in found:
            verdict = {"verdict": " ".join(each["sentence"] for each in found["contrasts"]), "gate": found["gate"]}
        job.tracking.summarise(summary(rows) | verdict)
        job.tracking.table("differences", rows)
        reporting.record_charts(job, compared(rows, page.first_scorer))
    for name, frame in page.frames.items():
        if name not in TEXTS or job.records_texts:
            job.tracking.table(name, frame)
    reporting.record_plots(job)
    say(f"  comparison  {job.folder / 'comparison.html'}")


def say_findings(config: DictConfig, found: Mapping[str, Any]) -> None:
    """Print the verdict of each contrast with its cost, and four figures; with verbose=true, and for kinds without
    contrasts, all figures."""
    contrasts = found.get("contrasts", ())
    for contrast in contrasts:
        reporting.say_verdict(contrast["sentence"], contrast["cost"])
    if contrasts and is_brief(config):
        say(found["figures"])
        say_page_notes(config, found["notices"])
        return
    for line in found["lines"]:
        say(f"  {line}")
    say_notes(found["notices"])
