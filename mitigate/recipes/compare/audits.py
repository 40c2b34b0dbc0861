"""Two resources side by side, from the folders of their audits: where they differ, by how much, and what is said of the
targets of whom they speak most differently. read > measure > report."""

import sys
from collections.abc import Callable
from typing import Any

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate.measure import between_resources, bootstrap, comparison
from mitigate.measure.between_resources import rank_correlation, representation, shares
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.compare import audits_plan, audits_reporting
from mitigate.recipes.compare import figures as compare_figures
from mitigate.recipes.compare.audits_plan import AuditsPlan, about, make_plan
from mitigate.recipes.compare.figures import corrected
from mitigate.recipes.job import Job, perform, say
from mitigate.store import Result
from mitigate.targets import clusters
from mitigate.triples import TEMPLATE_PREFIX

STAGES = ("figures", "targets", "agreement", "comparison", "report")
CODE = (between_resources, bootstrap, comparison, compare_figures, audits_plan)


def run(config: DictConfig) -> None:
    """Set the two audits that `compare.runs` names side by side; a line for each scorer."""
    plan = make_plan(config)
    if plan.demonstration:
        say("A small corpus written for demonstration: it shows how things work and claims nothing.")
    config = DictConfig(OmegaConf.merge(config, about(plan)))
    name = f"{config.recipe.name}-{config.data.name}"
    told = ["tables", "plots"]
    found = perform(config, name, plan.source, STAGES, lambda job: pipeline(job, plan), uploads=told)
    for line in (*found["lines"], *(f"note: {notice}" for notice in found["notices"])) if found else ():
        say(f"  {line}")


def pipeline(job: Job, plan: AuditsPlan) -> dict[str, Any]:
    """The stages in their order; returns the comparison."""

    def stage(name: str, compute: Callable[[], Any], settings: object = None) -> Result:
        code = [*CODE, sys.modules[__name__]]
        return job.old_stage(name, lambda _: compute(), needs=[plan.source], settings=settings, code=code)

    measure = plan.config.measure
    figures = stage("figures", lambda: differences(plan), [measure.resamples, plan.config.seed])
    targets = stage("targets", lambda: both_sides(plan))
    agreement = stage("agreement", lambda: agreements(plan))
    return audits_reporting.report(job, plan, figures, targets, agreement)


def differences(plan: AuditsPlan) -> pl.DataFrame:
    """scorer ("" for the number of statements), template, key as in metrics.json, category ("" for all targets), the
    other columns of comparison.DIFFERENCES, `p_holm`, for which all figures over all targets are one family, all of
    categories another, and what each audit says of all its own targets, as first_alone and second_alone."""
    intervals = Bootstrap(resamples=plan.config.measure.resamples, seed=plan.config.seed)
    found = [_named(plan, representation(plan.both(plan.wordings[0]), clusters(), intervals), "", "paper")]
    for scorer, template in plan.wordings:
        rows = shares(plan.both((scorer, template)), scorer, clusters(), intervals)
        found.append(_named(plan, rows, scorer, template))
    return corrected(pl.concat(found))


def both_sides(plan: AuditsPlan) -> pl.DataFrame:
    """scorer, template, target, category, and what each says of the targets that both speak of, as side_by_side."""
    return pl.concat(
        plan.both((scorer, template)).select(
            pl.lit(scorer).alias("scorer"), pl.lit(template).alias("template"), pl.all()
        )
        for scorer, template in plan.wordings
    )


def agreements(plan: AuditsPlan) -> dict[str, float | None]:
    """Whether the two rank targets alike: "sentiment/O-/rank_correlation" ..."""
    return {
        f"{TEMPLATE_PREFIX[template]}{scorer}/{sign}/rank_correlation": rank_correlation(
            plan.both((scorer, template)), share
        )
        for scorer, template in plan.wordings
        for sign, share in (("O-", "prejudice"), ("O+", "favouritism"))
    }


def _named(plan: AuditsPlan, rows: pl.DataFrame, scorer: str, template: str) -> pl.DataFrame:
    categories = plan.both(plan.wordings[0])["category"].unique().to_list()
    last = pl.col("figure").str.split("/").list.last()
    return rows.select(
        pl.lit(scorer).alias("scorer"),
        pl.lit(template).alias("template"),
        (pl.lit(TEMPLATE_PREFIX[template]) + pl.col("figure")).alias("key"),
        pl.when(last.is_in(categories)).then(last).otherwise(pl.lit("")).alias("category"),
        pl.exclude("figure"),
        *(
            pl.Series(
                f"{side}_alone", [audit.alone((scorer, template), figure) for figure in rows["figure"]], pl.Float64
            )
            for side, audit in zip(("first", "second"), plan.audits, strict=True)
        ),
    )
