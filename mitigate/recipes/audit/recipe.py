"""The harms of a resource as it is: read > verbalise > score > measure > report.

What grows with the resource is worked through in parts that lie on disk, and a killed audit goes on from the last of
them; what the figures need is a tally, a few rows a target."""

import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import relations as relation_room
from mitigate import targets as target_room
from mitigate import verbalise as verbalising
from mitigate.measure import tally as tallying
from mitigate.measure.tally import tally, tally_rows, total
from mitigate.recipes.audit import measures, reporting
from mitigate.recipes.audit import variants as audit_variants
from mitigate.recipes.audit.plan import CHUNK, AuditPlan, make_plan
from mitigate.recipes.audit.read import as_met, read
from mitigate.recipes.job import Job, perform, say
from mitigate.recipes.progress import Progress
from mitigate.score import labels as labelling
from mitigate.score.labels import label_column, with_labels
from mitigate.store import PartFolder, Result
from mitigate.triples import NEUTRAL, OTHER, Scorer, label_columns
from mitigate.verbalise import mask_column, verbalise

STAGES = ("read", "tally", "metrics", "variants", "report")
WORDING = (relation_room, target_room, verbalising, labelling, tallying)  # what decides what is counted
EVERYWHERE = ("sentiment",)  # labels what is about no target too, with measure.texts=all; a classifier would take days


def run(config: DictConfig) -> float | None:
    """Measure the harms of what `data` names; returns the metric that `optimized_metric` names."""
    plan = make_plan(config)
    say(f"  {plan.title}: {plan.resource.size}, {plan.targets.height:,} targets")
    by = plan.config.data.get("label_column") or plan.config.score.regard or plan.config.score.sentiment
    name = f"{config.recipe.name}-{config.data.name}-{by}"
    stages = [stage for stage in STAGES if stage != "variants" or plan.paper]
    told = reporting.uploads(config)
    metrics = perform(config, name, plan.source, stages, lambda job: pipeline(job, plan), uploads=told)
    return metrics.get(config.optimized_metric) if metrics else None


def pipeline(job: Job, plan: AuditPlan) -> dict[str, Any]:
    """The stages in their order; returns the metrics."""
    rows = read(job, plan)
    tallied = count(job, plan, rows)
    metrics = job.old_stage(
        "metrics",
        lambda _: measures.measure(plan, tallied.table(), as_met([rows.table()])),
        needs=[rows.digest, tallied.digest],
        settings=plan.config.measure,
        code=measures.CODE,
    )
    variants = audit_variants.stage(job, plan, tallied) if plan.paper else None
    reporting.report(job, plan, rows, tallied, variants, metrics.facts())
    return metrics.facts()


def count(job: Job, plan: AuditPlan, rows: Result) -> Result:
    """How many statements about each target have which label, and, as target null, of all texts; the statements
    themselves stay in the run folder, in the parts of statements/."""

    def compute(fingerprint: str) -> pl.DataFrame:
        parts = PartFolder(job.folder / "parts" / fingerprint[:16])
        progress = Progress("label", "statements")
        whole = as_met([rows.table()])["counted", "statements"]
        for done, group in _together(PartFolder(job.folder / "rows"), parts):
            rows_of_group = pl.concat(group.values())
            said = pl.concat([label(plan, chunk) for chunk in rows_of_group.iter_slices(CHUNK)])
            for number, part in group.items():
                parts.save(number, said.head(part.height))
                said = said.slice(part.height)
            progress.at(done / whole, rows_of_group.height)
        tallied = total(_tally(plan, part) for part in parts)
        shutil.rmtree(job.folder / "statements", ignore_errors=True)
        parts.folder.rename(job.folder / "statements")
        shutil.rmtree(job.folder / "parts")
        return tallied

    measure = plan.config.measure
    settings = [measure.masking, plan.labellings, [scorer.fingerprint for scorer in plan.scorers]]
    return job.old_stage("tally", compute, needs=[rows.digest], settings=settings, code=WORDING, leaves=["statements"])


def _together(rows: PartFolder, finished: PartFolder) -> Iterator[tuple[int, dict[int, pl.DataFrame]]]:
    """The parts of the rows that are not finished, small ones in groups of CHUNK rows or a little more, as many texts
    at once are labelled and kept sooner; and how many rows there are up to each group's end."""
    group: dict[int, pl.DataFrame] = {}
    done = 0
    for number, part in enumerate(rows):
        if number not in finished:
            group[number] = part
        done += part.height
        if sum(waiting.height for waiting in group.values()) >= CHUNK:
            yield done, group
            group = {}
    if group:
        yield done, group


def _tally(plan: AuditPlan, said: pl.DataFrame) -> pl.DataFrame:
    tallied = tally(said.drop_nulls("target"), [labels.column for labels in plan.labellings])
    if plan.config.measure.texts == "targets":
        return tallied
    everywhere = [labels.column for labels in plan.labellings if labels.scorer in EVERYWHERE]
    return total([tallied, tally_rows(said, everywhere)])


def label(plan: AuditPlan, rows: pl.DataFrame) -> pl.DataFrame:
    """The statements that the rows make, masked and labelled; what is about no target by the scorers of EVERYWHERE."""
    masking, own = plan.config.measure.masking, plan.own_targets
    if plan.are_triples:
        said = verbalise(rows, masking, own)
    else:
        said = rows.with_columns(mask_column("statement", masking, own).alias("masked"))
    if given := plan.config.data.get("label_column"):
        polarity = pl.col(given.lower()).replace({OTHER: NEUTRAL}).cast(pl.Float32)  # nothing finer is known
        return said.with_columns(polarity.alias(f"{given.lower()}_strength"))
    about = pl.col("target").is_not_null()
    quick = [scorer for scorer in plan.scorers if scorer.name in EVERYWHERE]
    both = [_labelled(plan, said.filter(about), plan.scorers), _labelled(plan, said.filter(~about), quick)]
    return pl.concat(both, how="diagonal").sort("row", maintain_order=True)


def _labelled(plan: AuditPlan, said: pl.DataFrame, scorers: Sequence[Scorer]) -> pl.DataFrame:
    for scorer in scorers:
        if plan.are_triples:
            said = with_labels(said, scorer, plan.cache)
        else:
            column, strength = label_columns(scorer.name, "paper")
            labels = label_column(said["masked"], scorer, plan.cache)
            said = said.with_columns(pl.Series(column, labels.label), pl.Series(strength, labels.strength))
    return said
