"""`recipe=compare`: finished runs of one recipe beside a baseline. read > measure > report."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from textwrap import shorten
from typing import Any

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError
from mitigate.finished import folders, recipe_of
from mitigate.recipes import reporting
from mitigate.recipes.job import (
    Config,
    Job,
    call,
    folder_name,
    is_brief,
    perform,
    say,
    say_notes,
    say_page_notes,
)
from mitigate.report import compare as report
from mitigate.stages import in_folder
from mitigate.tasks.compare import any_runs, runs
from mitigate.tasks.compare.endpoints import Endpoints
from mitigate.tasks.compare.pairs import FAILS, HOLDS, OPEN
from mitigate.tasks.compare.run_plan import RunsPlan, make_plan, names_of, read_compared, shared_settings
from mitigate.tracking.charts import compared, headline_differences, summary
from mitigate.words.outside_text import literal, with_texts

OVERVIEW, PAGE = "comparison", "report"  # the stages after those of figures
TEXTS = ("moves", "targets")  # tables that name targets, which may be a user's own
MOST_OF_A_TAG = 50  # characters; W&B allows 64 with the prefix
STATUS = {HOLDS: 0, FAILS: 4, OPEN: 3}  # exit status with compare.gate=true; 1 is a failed job, 2 a user's error


def run(config: Config) -> None:
    """Compare the folders of `compare.runs` with those of `compare.baseline`."""
    named, baseline = config.compare.runs, config.compare.baseline
    if any(recipe_of(folder) not in (None, "mitigate") for folder in folders(named)):
        _run_any(config)
        return
    endpoints = Endpoints(**asdict(config.compare.primary), margins=config.compare.margins)
    if config.compare.gate:
        _check_gate(config, endpoints)
    plan = make_plan(*read_compared(named, baseline), endpoints)
    if plan.demonstration:
        say("Runs on a small corpus written for demonstration: they show how things work and claim nothing.")
    facts = shared_settings(plan.runs)
    policies = shorten(", ".join(plan.titles), MOST_OF_A_TAG, placeholder=" ...")
    # Taken literally: texts of a foreign folder may look like ${oc.env:HOME}.
    node = DictConfig(OmegaConf.merge(config.node, with_texts({"policy": {"name": policies}, **facts}, literal)))
    config = Config(node, {name: part for name, part in config.groups.items() if name not in facts})
    results = perform(
        config,
        folder_name(config.recipe.name, facts["data"]["name"], facts["model"]["name"]),
        plan.source,
        partial(pipeline, plan=plan),
        partial(record, plan=plan),
        uploads=("tables", "charts", "plots"),
        tracked=names_of(plan.runs),
    )
    found = results[OVERVIEW].facts() if results else None
    if found is not None:
        say_findings(config, found)
    if config.compare.gate:
        outcome = found["gate"] if found else OPEN  # a rehearsal has none
        say(f"  gate        {outcome}: exit status {STATUS[outcome]}")
        raise SystemExit(STATUS[outcome])


def _run_any(config: Config) -> None:
    """Compare runs of another recipe than the main job by their tables of results."""
    plan = any_runs.make_plan(config.compare.runs, config.compare.baseline)
    if config.compare.gate:
        raise MitigateError(f"compare.gate=true decides about runs of recipe=mitigate, and these are of {plan.recipe}")

    def pipeline(job: Job) -> None:
        found = job.stage("differences", any_runs.differences, plan)
        using = in_folder(**reporting.about(job, {"runs": [str(run.folder) for run in plan.runs]}))
        job.stage(PAGE, any_runs.write_page, found, plan, using=using, after=[job.folder.name])

    def record(job: Job) -> None:
        table = job.results["differences"].table()
        job.tracking.table("differences", table)
        values = table.filter(run=plan.arms[-1].name).select("key", "change").iter_rows()
        job.tracking.summarise({f"difference/{key}": change for key, change in values})
        say("\n" + report.any_console(table))
        say(f"  comparison  {job.folder / 'comparison.html'}")

    facts = shared_settings(plan.runs)
    node = DictConfig(OmegaConf.merge(config.node, with_texts(facts, literal)))
    config = Config(node, {name: part for name, part in config.groups.items() if name not in facts})
    name = folder_name(config.recipe.name, plan.recipe, facts["data"]["name"])
    perform(config, name, plan.source, pipeline, record, uploads=("tables",), tracked=names_of(plan.runs))


def _check_gate(config: Config, endpoints: Endpoints) -> None:
    """Raise MitigateError where compare.gate=true has nothing to decide by."""
    if call(config)["sweep"]:
        raise MitigateError("compare.gate=true is for a single comparison, and this is a sweep; leave compare.gate out")
    if not endpoints.declared:
        raise MitigateError(
            "compare.gate=true decides by the primary endpoints, and compare names no primary endpoint: give "
            "compare.primary.harm or compare.primary.quality"
        )


def pipeline(job: Job, plan: RunsPlan) -> None:
    """Run the stages in their order: figures, comparison.json, and the page with its pictures and tables."""
    figures = runs.measure(job.stage, plan)
    found = job.stage(OVERVIEW, runs.overview, plan, *figures)
    using = in_folder(run=job.folder, **reporting.about(job, plan.provenance))
    job.stage(PAGE, runs.write_page, plan, *figures, using=using, after=[found, job.folder.name])


def record(job: Job, plan: RunsPlan) -> None:
    """Record verdicts and gate, differences of headlines with charts, tables and plots; texts only where they may go to
    W&B."""
    figures: list[Any] = [result.value() for name, result in job.results.items() if name not in (OVERVIEW, PAGE)]
    pairs, found = runs.pairs(plan, *figures), job.results[OVERVIEW].facts()
    sides = [(one.name, one.against, one.overall.to_dicts() + one.quality.to_dicts()) for one in pairs]
    rows = pl.concat(headline_differences(*side) for side in sides)
    verdict = {"verdict": " ".join(each["sentence"] for each in found["contrasts"]), "gate": found["gate"]}
    job.tracking.summarise(summary(rows) | verdict)
    job.tracking.table("differences", rows)
    reporting.record_charts(job, compared(rows, next(reversed(plan.scorers), "regard")))
    for file in sorted((job.folder / "tables").glob("*.csv")):
        if file.stem not in TEXTS or job.records_texts:
            job.tracking.table(file.stem, pl.read_csv(file, infer_schema_length=None, glob=False))
    reporting.record_plots(job)
    say(f"  comparison  {job.folder / 'comparison.html'}")


def say_findings(config: Config, found: Mapping[str, Any]) -> None:
    """Print the verdict of each contrast, and the headlines; with verbose=true all figures."""
    for contrast in found["contrasts"]:
        reporting.say_verdict(contrast["sentence"], "")
    if is_brief(config):
        say(found["figures"])
        say_page_notes(config, found["notices"])
        return
    for line in found["lines"]:
        say(f"  {line}")
    say_notes(found["notices"])
