"""The harms of a resource as it is: load > match > verbalise > score > measure > report.

What grows with the resource is worked through in parts that lie on disk; what the figures need of them is a tally, a
few rows a target."""

import shutil
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import match as matching
from mitigate import relations as relation_room
from mitigate import targets as target_room
from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError
from mitigate.match import about_targets
from mitigate.measure import tally as tallying
from mitigate.measure.tally import tally, total
from mitigate.recipes import audit_measures, audit_reporting, audit_variants
from mitigate.recipes.audit_plan import AuditPlan, make_plan
from mitigate.recipes.job import Job, perform, say
from mitigate.score import labels as labelling
from mitigate.score.labels import label_column, with_labels
from mitigate.store import PartFolder, Result
from mitigate.triples import NEUTRAL, OTHER, label_columns
from mitigate.verbalise import mask_column, verbalise

STAGES = ("tally", "metrics", "variants", "report")
WORDING = (matching, relation_room, target_room, verbalising, labelling, tallying)  # what decides what is counted


def run(config: DictConfig) -> float | None:
    """Measure the harms of what `data` names; returns the metric that `optimized_metric` names."""
    plan = make_plan(config)
    for notice in plan.notices:
        say(f"  note: {notice}")
    kind = "triples" if plan.are_triples else "statements"
    say(f"  {plan.rows.height:,} {kind} of {plan.title}, {plan.targets.height:,} targets")
    by = plan.config.data.get("label_column") or config.score.regard
    name = f"{config.recipe.name}-{config.data.name}-{by}"
    stages = [stage for stage in STAGES if stage != "variants" or plan.paper]
    metrics = perform(config, name, plan.source, stages, lambda job: pipeline(job, plan))
    return metrics.get(config.optimized_metric) if metrics else None


def pipeline(job: Job, plan: AuditPlan) -> dict[str, Any]:
    """The stages in their order; returns the metrics."""
    tallied = count(job, plan)
    metrics = job.stage(
        "metrics",
        lambda _: audit_measures.measure(plan, tallied.table(), statements(job)),
        needs=[tallied.digest],
        settings=plan.config.measure,
        code=audit_measures.CODE,
    )
    variants = audit_variants.stage(job, plan, tallied) if plan.paper else None
    audit_reporting.report(job, plan, tallied, variants, metrics.facts())
    return metrics.facts()


def count(job: Job, plan: AuditPlan) -> Result:
    """How many statements about each target have which label; the statements themselves stay in the run folder, in
    the parts of statements/, which a killed audit goes on from."""

    def compute(fingerprint: str) -> pl.DataFrame:
        parts = PartFolder(job.folder / "parts" / fingerprint[:16])
        for number, rows in enumerate(plan.chunks()):
            if number not in parts:
                parts.save(number, label(plan, rows))
        columns = [labels.column for labels in plan.labellings]
        tallied = total(tally(part, columns) for part in parts)
        if tallied.is_empty():
            raise MitigateError(
                f"nothing in {plan.title} is about any of the {plan.targets.height:,} targets; measure.match=contains "
                "finds them inside phrases too, and recipe.targets=[...] names others"
            )
        shutil.rmtree(job.folder / "statements", ignore_errors=True)
        parts.folder.rename(job.folder / "statements")
        shutil.rmtree(job.folder / "parts")
        return tallied

    measure = plan.config.measure
    settings = [measure.masking, measure.match, plan.labellings, [scorer.fingerprint for scorer in plan.scorers]]
    return job.stage("tally", compute, needs=[plan.source], settings=settings, code=WORDING, leaves=["statements"])


def label(plan: AuditPlan, rows: pl.DataFrame) -> pl.DataFrame:
    """The statements that the rows make about the targets, a row for each and target, masked and labelled."""
    masking, own = plan.config.measure.masking, plan.own_targets
    if plan.are_triples:
        said = verbalise(about_targets(rows, plan.targets, plan.config.measure.match), masking, own)
        for scorer in plan.scorers:
            said = with_labels(said, scorer, plan.cache)
        return said
    said = rows.with_columns(mask_column("statement", masking, own).alias("masked"))
    if given := plan.config.data.get("label_column"):
        polarity = pl.col(given.lower()).replace({OTHER: NEUTRAL}).cast(pl.Float32)  # nothing finer is known
        return said.with_columns(polarity.alias(f"{given.lower()}_strength"))
    for scorer in plan.scorers:
        column, strength = label_columns(scorer.name, "paper")
        labels = label_column(said["masked"], scorer, plan.cache)
        said = said.with_columns(pl.Series(column, labels.label), pl.Series(strength, labels.strength))
    return said


def statements(job: Job) -> pl.DataFrame:
    """The labelled statements of a run."""
    return pl.concat(list(PartFolder(job.folder / "statements")))
