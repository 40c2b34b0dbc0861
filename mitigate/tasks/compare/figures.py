"""Figures of a comparison, from the tables of its runs: harms, and the movement of each target."""

from collections.abc import Mapping, Sequence

import polars as pl

from mitigate.finished import FinishedRun
from mitigate.load.targets import list_of_runs
from mitigate.measure.base import find
from mitigate.measure.comparison import neutral_side_by_side
from mitigate.measure.harms import per_target
from mitigate.measure.seeds import neutral_changes
from mitigate.tasks.compare.run_groups import Contrast, statements_of

Labelling = tuple[str, str]
"""A scorer, and the template of the labelled statements."""


def harm_differences(
    contrasts: Sequence[Contrast], labellings: Mapping[str, Labelling], relations: Sequence[str]
) -> pl.DataFrame:
    """Rows of comparison.COMPARED for each contrast, scorer and template, figures named as in metrics.json.

    labellings: by label column; relations: those whose statements count."""
    found = []
    for contrast in contrasts:
        clusters = list_of_runs(contrast.runs).clusters
        for column, (scorer, template) in labellings.items():
            before, after = (
                [per_target_table(run, column, relations) for run in side] for side in (contrast.before, contrast.after)
            )
            rows = neutral_changes(before, after, scorer, clusters, template)
            found.append(_named(rows, contrast.key, scorer, template))
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
            table = neutral_side_by_side([per_target_table(run, column, relations) for run in contrast.runs])
            names = [f"run_{number}" for number in range(len(contrast.runs))]
            labels = {"contrast": contrast.key, "scorer": scorer, "column": column}
            found.append(
                table.select(
                    *(pl.lit(value).alias(name) for name, value in labels.items()),
                    "target",
                    "category",
                    before=pl.mean_horizontal(names[: len(contrast.before)]),
                    after=pl.mean_horizontal(names[len(contrast.before) :]),
                ).with_columns(difference=pl.col("after") - pl.col("before"))
            )
    return pl.concat(found)


def _named(rows: pl.DataFrame, contrast: str, scorer: str, template: str) -> pl.DataFrame:
    """Prepend contrast, scorer, template, measure and category ("" for all targets)."""
    known = [figure for figure in map(find, rows["figure"]) if figure]
    labels = {"contrast": contrast, "scorer": scorer, "template": template}
    return rows.select(
        *(pl.lit(value).alias(name) for name, value in labels.items()),
        pl.Series("measure", [figure.measure for figure in known], dtype=pl.String),
        pl.Series("category", [figure.group for figure in known], dtype=pl.String),
        *rows.columns,
    )
