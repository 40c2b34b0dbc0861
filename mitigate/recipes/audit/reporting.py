"""What a finished audit leaves for people: metrics.json, the page, plots and tables, and the record in W&B."""

from functools import cache
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import report as room
from mitigate.files import write
from mitigate.recipes.audit import measures
from mitigate.recipes.audit import statements as audit_statements
from mitigate.recipes.audit.plan import AuditPlan
from mitigate.recipes.audit.read import as_met
from mitigate.recipes.audit.variants import notes, paper
from mitigate.recipes.job import Job, command, plain, provenance, say
from mitigate.recipes.scorers import ROLES
from mitigate.report import audit as page
from mitigate.report import audit_tables, gallery, tables
from mitigate.report.page import Stage
from mitigate.store import Result

RECORDED_STATEMENTS = 20_000  # W&B's tables are slow beyond; the parts on disk have them all


def report(
    job: Job, plan: AuditPlan, rows: Result, tallied: Result, variants: Result | None, metrics: dict[str, Any]
) -> Result:
    """Write everything, and record it."""
    beside = compared(plan, metrics)
    explained = [] if plan.paper is None else notes(plan.paper)
    wordings = [(labels.scorer, labels.template) for labels in plan.labellings]

    @cache
    def choice() -> tuple[pl.DataFrame, int]:
        return audit_statements.choice(job, plan.config.seed)

    def compute(_: str) -> dict[str, Any]:
        said, height = choice()
        columns = [labels.column for labels in plan.labellings]
        every = audit_statements.about_targets(job)
        about = page.Audit(
            name=job.folder.name,
            title=plan.title,
            command=command(job.config),
            demonstration=plan.config.data.demonstration,
            metrics=metrics,
            labellings=dict(zip(columns, wordings, strict=True)),
            targets=measures.per_target_tables(plan, tallied.table(), plan.config.measure.empty_targets),
            statements=said,
            shown=plain(plan.config.recipe.shown),
            scorers={role: plan.config.score[role] for role in ROLES if plan.scorers and plan.config.score[role]},
            relations=page.by_relation(every, columns) if plan.are_triples else None,
            beside=beside,
            explained=explained,
            variants=None if variants is None else variants.table(),
            stages=[Stage(r.stage, r.seconds, r.from_cache) for r in job.run.results],
            facts=_facts(job, plan),
            notices=[
                *plan.resource.told(as_met([rows.table()])),
                *measures.notices(plan, tallied.table()),
                *_chosen(said, height),
            ],
        )
        page.write(job.folder / "audit.html", about)
        gallery.save(about.pictures, job.folder / "plots")
        write(job.folder / "statements.tsv", audit_statements.export(said))
        for name, frame in tables_of(about).items():
            tables.save_csv(frame, job.folder / "tables" / f"{name}.csv")
            tables.save_latex(frame, job.folder / "tables" / f"{name}.tex", caption=f"{name} ({job.folder.name})")
        return {"notices": list(about.notices)}

    needs = [rows.digest, tallied.digest, *([] if variants is None else [variants.digest])]
    result = job.old_stage(
        "report",
        compute,
        needs=needs,
        settings=[metrics, plain(plan.config.recipe.shown), [] if beside is None else beside.rows(), explained],
        code=[room, audit_statements],
        leaves=["audit.html", "plots", "tables", "statements.tsv"],
    )
    if not job.run.dry:
        record(job, plan, metrics, choice()[0])  # also what is kept from before, if W&B hands out the job
        say("\n" + audit_tables.console(metrics, wordings))
        if beside is not None:
            say("\n" + audit_tables.console_beside(beside))
        for notice in result.facts()["notices"]:
            say(f"  note: {notice}")
        say(f"  report      {job.folder / 'audit.html'}")
    return result


def _chosen(said: pl.DataFrame, height: int) -> list[str]:
    if said.height == height:
        return []
    return [
        f"Examples and word clouds are of {said.height:,} statements, chosen by chance from {height:,}; figures are of "
        "all of them."
    ]


def compared(plan: AuditPlan, metrics: dict[str, Any]) -> pl.DataFrame | None:
    """The paper's figures of this resource with ours beside them (place, figure, paper, ours); in all of them a target
    without statements counts as 0 %."""
    if plan.paper is None:
        return None
    stated = paper(plan.paper).rename({"value": "paper"})
    ours = [metrics.get(f"empty_zero/{key}", metrics.get(key)) for key in stated["key"]]
    return stated.with_columns(ours=pl.Series(ours, dtype=pl.Float64)).drop_nulls("ours")


def tables_of(about: page.Audit) -> dict[str, pl.DataFrame]:
    found = {"measures": audit_tables.measures(about.metrics, list(about.labellings.values()))}
    found |= {f"targets_{column}": frame for column, frame in about.targets.items()}
    if about.relations is not None:
        found["relations"] = about.relations
    if about.beside is not None:
        found["beside_the_paper"] = about.beside
    if about.variants is not None:
        found["variants"] = about.variants
    return found


def _facts(job: Job, plan: AuditPlan) -> dict[str, Any]:
    data, measure = plan.config.data, plan.config.measure
    peak = max(result.peak_memory for result in job.run.results)
    return provenance(
        plan.config,
        {
            "data": ", ".join(filter(None, [data.name, data.attribution, data.licence and f"licence {data.licence}"])),
            "data fingerprint": plan.source,
            "masking": measure.masking,
            "targets without statements": {"zero": "count as 0 %", "exclude": "left out"}[measure.empty_targets],
            "match": "as the file says" if plan.resource.kind == "statements" else measure.match,
            "texts": {"targets": "about a target", "all": "all"}[measure.texts],
            **{f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.scorers},
            "peak memory": f"{peak / 2**30:.2f} GiB",
        },
    )


def uploads(config: DictConfig) -> list[str]:
    """What record gives to W&B besides metrics, in words."""
    return ["plots", "statements" if _with_texts(config) else "no texts"]


def record(job: Job, plan: AuditPlan, metrics: dict[str, Any], said: pl.DataFrame) -> None:
    """Summary and pictures; and an even choice of statements."""
    tracking = job.tracking
    tracking.summarise(metrics)
    if _with_texts(plan.config):
        columns = ["target", "category", "statement", *(labels.column for labels in plan.labellings)]
        tracking.table("statements", said.select(columns).gather_every(-(-said.height // RECORDED_STATEMENTS)))
    for picture in sorted((job.folder / "plots").glob("*.png")):
        tracking.image(f"plots/{picture.stem}", picture, picture.stem)


def _with_texts(config: DictConfig) -> bool:
    """Texts of a user's own go to W&B only when that is wished."""
    return bool(config.tracking.statements or not config.data.own_texts)
