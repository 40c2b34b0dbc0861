"""Figures of a comparison, from the tables of its runs: harms, and the movement of each target."""

from collections.abc import Mapping, Sequence

import polars as pl

from mitigate.measure.comparison import between_runs, neutral_side_by_side
from mitigate.measure.harms import neutral_names, per_target
from mitigate.measure.seeds import between_policies
from mitigate.metrics import TEMPLATE_PREFIX
from mitigate.runs.finished import FinishedRun
from mitigate.tasks.compare.run_groups import Contrast, statements_of
from mitigate.tasks.targets import list_of_runs

Labelling = tuple[str, str]
"""A scorer, and the template of the labelled statements."""


def harm_differences(
    contrasts: Sequence[Contrast], labellings: Mapping[str, Labelling], relations: Sequence[str]
) -> pl.DataFrame:
    """Rows of comparison.COMPARED for each contrast, scorer and template, figures named as in metrics.json.

    labellings: by label column; relations: those whose statements count."""
    found = []
    for contrast in contrasts:
        clusters = list_of_runs([*contrast.before, *contrast.after]).clusters
        for column, (scorer, template) in labellings.items():
            before, after = (
                [per_target_table(run, column, relations) for run in side] for side in (contrast.before, contrast.after)
            )
            if contrast.several_seeds:
                rows = between_policies(before, after, scorer, clusters)
            else:
                rows = between_runs(before[0], after[0], scorer, clusters)
            found.append(_named(rows, contrast.name, scorer, template))
    return pl.concat(found)


def statements_with(run: FinishedRun, relations: Sequence[str]) -> pl.DataFrame:
    """The run's statements with these relations."""
    return statements_of(run).filter(pl.col("relation").is_in(list(relations)))


def per_target_table(run: FinishedRun, column: str, relations: Sequence[str]) -> pl.DataFrame:
    """The run's row for each target, by one column of labels."""
    statements = statements_with(run, relations)
    targets = statements.select("target", "category").unique("target", maintain_order=True)
    return per_target(statements, column, targets)


def moves(contrasts: Sequence[Contrast], labellings: Mapping[str, Labelling], relations: Sequence[str]) -> pl.DataFrame:
    """contrast, scorer, column (of labels, with the neutral template if there are such), target, category, and the
    percentage neutral before, after, and its difference; means over seeds."""
    found = []
    for contrast in contrasts:
        for column, (scorer, template) in labellings.items():
            if template == "paper" and (scorer, "neutral") in labellings.values():
                continue
            sides = contrast.before, contrast.after
            table = neutral_side_by_side([per_target_table(run, column, relations) for side in sides for run in side])
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


def chance(runs: Sequence[FinishedRun], column: str, relations: Sequence[str]) -> float | None:
    """The median movement of targets between two seeds of one policy, in percentage points; None for one seed."""
    if len(runs) < 2:
        return None
    table = neutral_side_by_side([per_target_table(run, column, relations) for run in runs[:2]])
    return table.select((pl.col("run_1") - pl.col("run_0")).abs().median()).item()


def _named(rows: pl.DataFrame, contrast: str, scorer: str, template: str) -> pl.DataFrame:
    """Prepend contrast, scorer, template, measure, category ("" for all targets) and the key in metrics.json."""
    figure, (mean, variance) = pl.col("figure"), neutral_names(scorer)
    return rows.select(
        pl.lit(contrast).alias("contrast"),
        pl.lit(scorer).alias("scorer"),
        pl.lit(template).alias("template"),
        pl.when(figure.str.starts_with(mean)).then(pl.lit(mean)).otherwise(pl.lit(variance)).alias("measure"),
        figure.str.strip_prefix(mean).str.strip_prefix(variance).str.strip_prefix("/").alias("category"),
        (pl.lit(TEMPLATE_PREFIX[template]) + figure).alias("figure"),
        pl.exclude("figure"),
    )
