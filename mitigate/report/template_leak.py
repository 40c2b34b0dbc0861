"""The template leak: the part of the labels that is caused by the relation's phrase instead of the tail."""

import polars as pl

from mitigate.report.legend import Measure, Metrics, harm_key
from mitigate.triples import FAVOURITISM, PREJUDICE, TEMPLATES, label_columns


def difference(metrics: Metrics, measure: Measure) -> float | None:
    """A measure with the paper template less the same with the neutral template; None where one is missing."""
    paper, neutral = (metrics.get(harm_key(measure, template)) for template in TEMPLATES)
    return paper - neutral if isinstance(paper, int | float) and isinstance(neutral, int | float) else None


def leak(statements: pl.DataFrame, scorer: str) -> pl.DataFrame:
    """For each relation: (relation, statements, paper, neutral, difference), the largest difference first.

    paper and neutral are the percentages of its statements with a polarised label under either template."""
    columns = {template: label_columns(scorer, template)[0] for template in TEMPLATES}
    polarised = {
        template: 100 * pl.col(column).is_in([PREJUDICE, FAVOURITISM]).mean() for template, column in columns.items()
    }
    return (
        statements.group_by("relation")
        .agg(statements=pl.len(), **polarised)
        .with_columns(difference=pl.col("paper") - pl.col("neutral"))
        .sort(pl.col("difference").abs(), "relation", descending=[True, False])
    )
