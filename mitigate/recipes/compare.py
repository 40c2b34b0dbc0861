"""`recipe=compare`: finished runs of one recipe beside a baseline and beside each policy's control, by their tables of
results. read > differences > comparison.json > page; a sweep ends with it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any
from urllib.parse import quote

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.finished import NOT_GIVEN, FinishedRun, source_of
from mitigate.measure import compare
from mitigate.measure.base import PAPER_SCORERS, bounds, key_of
from mitigate.measure.compare import FAILS, HOLDS, OPEN, Endpoints
from mitigate.measure.contrasts import Plan, differences, make_plan
from mitigate.recipes.config import Config
from mitigate.recipes.job import Job, open_job, say, say_verdict
from mitigate.report import compare as report
from mitigate.report.page import write
from mitigate.stages import in_folder
from mitigate.tracking import headline_differences, summary
from mitigate.triples import TEMPLATES
from mitigate.words.outside_text import literal, with_texts

STATUS = {HOLDS: 0, FAILS: 4, OPEN: 3}  # exit status with compare.gate=true; 1 is a failed job, 2 a user's error


def run(config: Config) -> None:
    """Compare the folders of `compare.runs` with those of `compare.baseline`."""
    endpoints = Endpoints(**asdict(config.compare.primary), margins=config.compare.margins)
    if config.compare.gate and config.call["sweep"]:
        raise MitigateError("compare.gate=true is for a single comparison, and this is a sweep; leave compare.gate out")
    if config.compare.gate and not endpoints.declared:
        raise MitigateError(
            "compare.gate=true decides by the primary endpoints, and compare names no primary endpoint: give "
            "compare.primary.harm or compare.primary.quality"
        )
    plan = make_plan(config.compare.runs, config.compare.baseline, endpoints)
    facts = _shared_settings(plan)
    if facts["data"]["demonstration"]:
        say("Runs on a small corpus written for demonstration: they show how things work and claim nothing.")
    kind = facts["model"]["name"] if plan.recipe == "mitigate" else plan.recipe
    # Taken literally: texts of a foreign folder may look like ${oc.env:HOME}.
    config.node.merge_with(with_texts(facts, literal))
    config = Config(config.node, {name: part for name, part in config.groups.items() if name not in facts})

    name = "-".join([config.recipe.name, facts["data"]["name"], kind])
    inputs = digest_of(json.dumps([run.digest for run in plan.runs]))
    tracked = {group: [str(run.text(f"{group}.name")) for run in plan.runs] for group in ("policy", "data", "model")}
    outcome = OPEN  # of a rehearsal
    with open_job(config, name, inputs, tracked=tracked) as job:
        table = job.stage("differences", differences, plan)
        written = job.stage("comparison", overview, plan, table, after=[str(run.folder) for run in plan.runs])
        of_data = [{name: run.text(f"data.{name}") for name in ("name", "attribution", "licence")} for run in plan.runs]
        origin = {"data": "; ".join(dict.fromkeys(map(source_of, of_data)))}
        using = in_folder(run=job.folder, **job.about(origin))
        job.stage("report", write_page, plan, table, using=using, after=[written, job.folder.name])
        found = findings(plan, table.table())
        outcome = compare.gates([one.gate for one in found])
        if job.is_new():
            _record(job, plan, found, outcome)
        for one in found:
            say_verdict(one.sentence)
        say(report.console(found))
        job.say_page_notes(plan.notices)
    if config.compare.gate:
        say(f"  gate        {outcome}: exit status {STATUS[outcome]}")
        raise SystemExit(STATUS[outcome])


def _shared_settings(plan: Plan) -> dict[str, Any]:
    """The policies, the data and the model of the runs, "several" where they differ, and whether any has texts of a
    user's own or a demonstration's: for the manifest and W&B."""

    def shared(setting: str) -> str:
        names = {run.text(setting) or NOT_GIVEN for run in plan.runs}
        return names.pop() if len(names) == 1 else "several"

    flags = {key: any(run.setting(f"data.{key}") for run in plan.runs) for key in ("own_texts", "demonstration")}
    policies = shorten(", ".join(dict.fromkeys(one.name for one in plan.contrasts)), 50, placeholder=" ...")
    data = {key: shared(f"data.{key}") for key in ("name", "licence", "attribution")} | flags
    return {"policy": {"name": policies}, "data": data, "model": {"name": shared("model.name")}}


def _record(job: Job, plan: Plan, found: Sequence[report.Finding], outcome: str) -> None:
    """Record verdicts and gate, differences of headlines, the page's tables, among them that of policies,
    and its plots."""
    rows = pl.concat(headline_differences(one.name, one.against, one.rows.to_dicts()) for one in found)
    job.tracking.summarise(summary(rows) | {"verdict": " ".join(one.sentence for one in found), "gate": outcome})
    job.tracking.table("differences", rows)
    for file in sorted((job.folder / "tables").glob("*.csv")):
        if file.stem != "differences":
            job.tracking.table(file.stem, pl.read_csv(file, infer_schema_length=None, glob=False))
    job.record_plots()
    say(f"  comparison  {job.folder / 'comparison.html'}")


def findings(plan: Plan, table: pl.DataFrame) -> list[report.Finding]:
    """Each contrast with its figures and its verdict."""
    tested = compare.primary(table, plan.endpoints)

    def numbers(side: Sequence[FinishedRun]) -> set[str]:
        """The figures of each run: the same for a copy, and for a policy that changed nothing."""
        given = [{key: value for key, value in run.metrics.items() if key not in ("policy", "seed")} for run in side]
        return set(map(json.dumps, given))

    return [
        report.Finding(
            name=one.name,
            against=one.against,
            seeds=(len(one.before), len(one.after)),
            is_same=numbers(one.before) == numbers(one.after),
            filtered_by=one.filtered_by,
            primary=tested.filter(contrast=one.key),
            rows=table.filter(contrast=one.key),
            endpoints=plan.endpoints,
            first=plan.roles,
            unlearnt=compare.no_conclusion(
                {
                    f"“{one.against}”": [run.metrics for run in one.before],
                    f"“{one.name}”": [r.metrics for r in one.after],
                }
            ),
        )
        for one in plan.contrasts
    ]


def overview(plan: Plan, table: pl.DataFrame) -> dict[str, Any]:
    """The content of comparison.json."""
    found = findings(plan, table)
    return {
        "contrasts": [
            {
                "policy": one.name,
                "baseline": one.against,
                "runs": [str(run.folder) for run in pair.after],
                "baseline_runs": [str(run.folder) for run in pair.before],
                "seeds": list(one.seeds),
                "identical": one.is_same,
                "quality_kept": one.quality_kept,
                "gate": one.gate,
                "sentence": one.sentence,
                "primary": {row["endpoint"]: row | {"verdict": one.verdict(row)} for row in one.primary.to_dicts()},
                "harms": {row["figure"]: row for row in one.rows.filter(section="harm").to_dicts()},
                "quality": {row["figure"]: row for row in one.rows.filter(pl.col("section") != "harm").to_dicts()},
            }
            for pair, one in zip(plan.contrasts, found, strict=True)
        ],
        "gate": compare.gates([one.gate for one in found]),
        "notices": plan.notices,
    }


def write_page(plan: Plan, table: pl.DataFrame, *, folder: Path, run: Path, **about: Any) -> dict[str, Any]:
    """Write comparison.html, its pictures and tables. about: the page's command, stages and facts."""
    found = findings(plan, table)
    axes = [*report.harm_axes(table["scorer"].unique(maintain_order=True)), *report.QUALITIES]
    keys = [name for axis in axes for name in (axis, *bounds(axis))]
    rows = [
        (name, one.seed, one.folder.name, *map(one.metrics.get, keys)) for name, arm in plan.arms.items() for one in arm
    ]
    schema = {"policy": pl.String, "seed": pl.Int64, "run": pl.String, **dict.fromkeys(keys, pl.Float64)}
    models = pl.DataFrame(rows, schema=schema, orient="row")
    models = models.select(one.name for one in models if one.null_count() < models.height)
    beside = [one.folder for one in plan.runs if one.folder.parent == run.resolve().parent]
    links = {one.name: f"../{quote(one.name)}/report.html" for one in beside if (one / "report.html").is_file()}
    tables = {"policies": policies(plan, table), "primary": pl.concat(one.primary for one in found)}
    tables |= {"differences": table, "models": models}
    is_demonstration = any(one.setting("data.demonstration") for one in plan.runs)
    about |= {"tables": tables, "demonstration": is_demonstration, "notices": plan.notices}
    write(report.page(found, models, links, **about), folder, "comparison.html")
    return {"notices": plan.notices}


def policies(plan: Plan, table: pl.DataFrame) -> pl.DataFrame:
    """A row for each arm with its means over seeds, and one for each difference: the paper's
    figures, by both templates, and quality."""
    harms = [(name, scorer) for scorer in PAPER_SCORERS for name in ("neutral_mean", "neutral_variance")]
    keys = [key_of(name, scorer, template) for template in reversed(TEMPLATES) for name, scorer in harms]
    keys = [key for key in (*keys, *report.QUALITIES) if key in table["figure"]]
    lines: dict[str, dict[str, Any]] = {}
    for pair in plan.contrasts:
        rows = {row["figure"]: row for row in table.filter(contrast=pair.key).to_dicts()}
        of = {"baseline": pair.against, "value": pair.name, "change": f"{pair.name} − {pair.against}"}
        for end, name in of.items():
            lines.setdefault(name, {"policy": name} | {key: rows[key][end] for key in keys if key in rows})
    schema = {"policy": pl.String} | dict.fromkeys(keys, pl.Float64)
    return pl.DataFrame(list(lines.values()), schema=schema)
