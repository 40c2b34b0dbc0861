"""The figures of a comparison, from the tables of its runs: harms, and how far each target moved."""

from collections.abc import Sequence

import polars as pl

from mitigate.measure import bootstrap, comparison, harms, seeds, uncertainty
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.comparison import between_runs, holm, neutral_side_by_side
from mitigate.measure.harms import neutral_names, per_target
from mitigate.measure.seeds import between_policies
from mitigate.recipes.compare.plan import ComparePlan
from mitigate.recipes.compare.runs import FinishedRun
from mitigate.targets import clusters
from mitigate.triples import TEMPLATE_PREFIX

CODE = (bootstrap, comparison, harms, seeds, uncertainty)


def intervals(plan: ComparePlan) -> Bootstrap:
    """How intervals are made here, whatever the runs had."""
    settings = plan.config.measure
    return Bootstrap(resamples=settings.resamples, seed=plan.config.seed)


def harm_differences(plan: ComparePlan) -> pl.DataFrame:
    """The rows of comparison.DIFFERENCES for each contrast, scorer and template, figures named as in
    metrics.json; with `p_holm`, for which all figures over all targets are one family, all of categories another."""
    found = []
    for contrast in plan.contrasts:
        for column, (scorer, template) in plan.labellings.items():
            before, after = (
                [per_target_table(plan, run, column) for run in side] for side in (contrast.before, contrast.after)
            )
            if contrast.several_seeds:
                rows = between_policies(before, after, scorer, clusters(), intervals(plan))
            else:
                rows = between_runs(before[0], after[0], scorer, clusters(), intervals(plan))
            found.append(_named(rows, contrast.name, scorer, template))
    return corrected(pl.concat(found))


def per_target_table(plan: ComparePlan, run: FinishedRun, column: str) -> pl.DataFrame:
    """The run's row for each target, by one column of labels."""
    statements = plan.statements(run)
    targets = statements.select("target", "category").unique("target", maintain_order=True)
    return per_target(statements, column, targets)


def moves(plan: ComparePlan) -> pl.DataFrame:
    """contrast, scorer, column (of labels, with the phrase neutralised where there are such), target, category, and
    the percentage neutral before, after, and its difference; means over seeds."""
    found = []
    for contrast in plan.contrasts:
        for column, (scorer, template) in plan.labellings.items():
            if template == "paper" and f"{column}_neutral" in plan.labellings:
                continue
            sides = contrast.before, contrast.after
            table = neutral_side_by_side([per_target_table(plan, run, column) for side in sides for run in side])
            names = [f"run_{number}" for number in range(sum(map(len, sides)))]
            before, after = names[: len(contrast.before)], names[len(contrast.before) :]
            found.append(
                table.select(
                    pl.lit(contrast.name).alias("contrast"),
                    pl.lit(scorer).alias("scorer"),
                    pl.lit(column).alias("column"),
                    "target",
                    "category",
                    before=pl.mean_horizontal(before),
                    after=pl.mean_horizontal(after),
                ).with_columns(difference=pl.col("after") - pl.col("before"))
            )
    return pl.concat(found)


def chance(plan: ComparePlan, column: str, runs: Sequence[FinishedRun]) -> float | None:
    """How far half of the targets move at least, in points, between two seeds of the same policy; None for one."""
    if len(runs) < 2:
        return None
    table = neutral_side_by_side([per_target_table(plan, run, column) for run in runs[:2]])
    return table.select((pl.col("run_1") - pl.col("run_0")).abs().median()).item()


def _named(rows: pl.DataFrame, contrast: str, scorer: str, template: str) -> pl.DataFrame:
    """With what they are about: contrast, scorer, template, measure, category ("" for all targets), key."""
    mean_name, variance_name = neutral_names(scorer)
    measure = (
        pl.when(pl.col("figure").str.starts_with(mean_name)).then(pl.lit(mean_name)).otherwise(pl.lit(variance_name))
    )
    return rows.select(
        pl.lit(contrast).alias("contrast"),
        pl.lit(scorer).alias("scorer"),
        pl.lit(template).alias("template"),
        measure.alias("measure"),
        pl.col("figure")
        .str.strip_prefix(mean_name)
        .str.strip_prefix(variance_name)
        .str.strip_prefix("/")
        .alias("category"),
        (pl.lit(TEMPLATE_PREFIX[template]) + pl.col("figure")).alias("figure"),
        pl.exclude("figure"),
    )


def corrected(table: pl.DataFrame) -> pl.DataFrame:
    """With `p_holm`; a row's category is "" for all targets."""
    adjusted: list[float | None] = [None] * table.height
    for family in (pl.col("category") == "", pl.col("category") != ""):
        places = table.select(family.arg_true()).to_series().to_list()
        for place, p in zip(places, holm(table["p"][places].to_list()), strict=True):
            adjusted[place] = p
    return table.with_columns(p_holm=pl.Series(adjusted, dtype=pl.Float64))
