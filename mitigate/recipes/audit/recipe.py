"""recipe=audit: the harms of a resource as it is. load > verbalise > score > measure > report."""

from functools import partial
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes import reporting
from mitigate.recipes.audit.page import write_report
from mitigate.recipes.audit.people import policies_of
from mitigate.recipes.audit.plan import Plan, make_plan
from mitigate.recipes.job import Job, command, perform, say
from mitigate.recipes.reporting import title_of
from mitigate.recipes.scorers import of_roles
from mitigate.recipes.targets import shown_targets
from mitigate.report import audit_tables
from mitigate.store import PartFolder, Result
from mitigate.targets import notice_of_own
from mitigate.tasks.audit.count import count_statements
from mitigate.tasks.audit.measures import measure_resource
from mitigate.tasks.audit.met import STATEMENTS, as_met
from mitigate.tasks.audit.paper import beside_the_paper, paper_figures, paper_notes
from mitigate.tasks.audit.read import read_rows
from mitigate.tasks.audit.variants import variants
from mitigate.tasks.drop_rules import measure_drop_rules
from mitigate.tasks.identity_words import identity_words_of
from mitigate.tasks.labelling import wordings
from mitigate.tasks.statements import choice
from mitigate.texts import counted
from mitigate.triples import ROLES


def run(config: DictConfig) -> float | None:
    """Measure the harms of what `data` names; returns the metric that `optimized_metric` names."""
    plan = make_plan(config)
    for notice in notice_of_own(plan.targets):
        say(f"  note: {notice}")
    say(f"  {title_of(config.data)}: {plan.resource.loaded.size}, {counted(plan.targets.height, 'target')}")
    by = config.data.get("label_column") or config.score.regard or config.score.sentiment
    name = f"{config.recipe.name}-{config.data.name}-{by}"
    phases = partial(pipeline, plan=plan), partial(record, plan=plan)
    found = perform(config, name, plan.source, *phases, uploads=uploads(config))
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """The stages in their order."""
    config, measure = plan.config, plan.config.measure
    rows = job.stage(
        "read",
        read_rows,
        plan.resource,
        plan.targets,
        match=measure.match,
        target_list=plan.target_list,
        texts=measure.texts,
        using=lambda work: {
            "rows": work.parts("rows"),
            "counted": work.parts("counted"),
            "title": title_of(config.data),
        },
        leaves=["rows"],
        scratch=["counted"],
    )
    tallied = job.stage(
        "tally",
        count_statements,
        plan.scorers,
        plan.labellings,
        masking=measure.masking,
        target_list=plan.target_list,
        own_relations=plan.resource.own_relations,
        texts=measure.texts,
        everywhere=list(of_roles(config.score, ["sentiment"])),
        given=plan.given,
        after=[rows],
        using=lambda work: {
            "rows": PartFolder(job.folder / "rows"),
            "num_rows": as_met([rows.table()])[STATEMENTS],
            "statements": work.parts("statements"),
            "cache": plan.cache,
        },
        leaves=["statements"],
    )
    metrics = job.stage(
        "metrics",
        measure_resource,
        tallied,
        rows,
        plan.targets,
        plan.labellings,
        empty_targets=measure.empty_targets,
        resamples=measure.resamples,
        seed=config.seed,
        facts={"data": config.data.name, "fingerprint": plan.source},
        target_list=plan.target_list,
    )
    words = _identity(job, plan, tallied) if plan.scorers else None
    stated = paper_figures(plan.paper) if plan.paper else None
    explored = None if stated is None else _variants(job, plan, tallied, stated)
    people = None if plan.rated is None else _people(job, plan, plan.rated)
    report(job, plan, rows, tallied, metrics, stated, explored, people, words)


def _people(job: Job, plan: Plan, rated: pl.DataFrame) -> Result:
    """What policies would drop of the statements that people rated."""
    measure = plan.config.measure
    return job.stage(
        "people",
        measure_drop_rules,
        rated,
        policies_of(plan.config, plan.scorers),
        plan.scorers,
        Bootstrap(resamples=measure.resamples, seed=plan.config.seed),
        using={"cache": plan.cache},
    )


def _identity(job: Job, plan: Plan, tallied: Result) -> Result:
    """Which labels depend on an identity word that is not masked, of the statements that examples are chosen from."""
    return job.stage(
        "identity",
        identity_words_of,
        plan.scorers,
        plan.config.seed,
        after=[tallied],
        using=lambda work: {"folder": work.folder / "statements", "cache": plan.cache},
    )


def _variants(job: Job, plan: Plan, tallied: Result, stated: pl.DataFrame) -> Result:
    """The paper's figures under other rules."""
    labelled = {labels.scorer for labels in plan.labellings if labels.template == "paper"}
    return job.stage(
        "variants",
        variants,
        stated,
        plan.targets,
        plan.scorers,
        [role for role in ROLES if role in labelled],
        masking=plan.config.measure.masking,
        target_list=plan.target_list,
        after=[tallied],
        using=lambda work: {"statements": PartFolder(work.folder / "statements"), "cache": plan.cache},
    )


def report(
    job: Job,
    plan: Plan,
    rows: Result,
    tallied: Result,
    metrics: Result,
    stated: pl.DataFrame | None,
    explored: Result | None,
    people: Result | None,
    words: Result | None,
) -> None:
    """The page, its tables and pictures."""
    config = plan.config
    job.stage(
        "report",
        write_report,
        metrics,
        tallied,
        plan.targets,
        plan.target_list,
        plan.labellings,
        stated,
        explored,
        people,
        paper_notes(plan.paper) if plan.paper else [],
        plan.resource,
        rows,
        words,
        title=reporting.title_of(config.data),
        demonstration=config.data.demonstration,
        empty_targets=config.measure.empty_targets,
        shown=shown_targets(config, plan.targets),
        scorers=of_roles(config.score) if plan.scorers else {},
        seed=config.seed,
        after=[tallied],
        using=lambda work: {
            "folder": work.folder,
            "about": {
                "command": command(config),
                "stages": reporting.stages(job),
                "facts": _facts(job, plan),
            },
        },
        leaves=["audit.html", "plots", "tables", "statements.tsv"],
    )


def record(job: Job, plan: Plan) -> None:
    """The figures, statements and pictures on W&B, and the figures on the terminal."""
    metrics = job.results["metrics"].facts()
    reporting.record_metrics(job, metrics)
    columns = ["target", "category", "statement", *(labels.column for labels in plan.labellings)]
    if reporting.with_texts(job.config):
        reporting.record_statements(job, choice(job.folder / "statements", job.config.seed)[0].select(columns))
    reporting.record_plots(job)
    say("\n" + audit_tables.console(metrics, list(wordings(plan.labellings).values())))
    if plan.paper:
        say("\n" + audit_tables.console_beside(beside_the_paper(metrics, paper_figures(plan.paper))))
    for notice in job.results["report"].facts()["notices"]:
        say(f"  note: {notice}")
    say(f"  report      {job.folder / 'audit.html'}")


def uploads(config: DictConfig) -> list[str]:
    """What report gives to W&B besides metrics, in words."""
    return ["plots", "statements" if reporting.with_texts(config) else "no texts"]


def _facts(job: Job, plan: Plan) -> dict[str, Any]:
    measure = plan.config.measure
    return reporting.facts(
        job,
        {
            "data": reporting.source_of(plan.config.data),
            "data fingerprint": plan.source,
            "masking": measure.masking,
            "targets without statements": {"zero": "count as 0 %", "exclude": "left out"}[measure.empty_targets],
            "match": "as the file says" if plan.resource.kind == "statements" else measure.match,
            "texts": {"targets": "about a target", "all": "all"}[measure.texts],
            **{f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.scorers},
        },
    )
