"""Figures of the measures that the table of metrics declares for some rows: a row of data/metrics.csv names the
function of measure.quality and the column that the rows must have."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate.measure import quality
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.metric_frame import MetricFrame
from mitigate.measure.uncertainty import mean_over_targets
from mitigate.metrics import ENDS, Metric, Rows, of_rows, with_part


def declared_figures(
    rows: Rows, frame: MetricFrame, clusters: Mapping[str, str] | None = None, intervals: Bootstrap | None = None
) -> dict[str, Any]:
    """The figures of all measures of these rows by their keys, for each group; a group without a name has those of
    measures without a part. A measure whose column the rows lack is left out. One that returns a table (target, share)
    is the mean over targets, with its interval. clusters: as in bootstrap.cluster_numbers."""
    found: dict[str, Any] = {}
    measures = measurable(rows, frame.rows)
    for group, part in frame:
        for metric in (metric for metric in measures if metric.may_have(group)):
            key, value = with_part(metric.key, group), getattr(quality, metric.function)(part)
            if isinstance(value, pl.DataFrame):
                values = mean_over_targets(value, clusters or {}, intervals or Bootstrap())
                found |= {key + end: one for end, one in zip(ENDS, values, strict=True)}
            else:
                found[key] = value
    return found


def measurable(rows: Rows, table: pl.DataFrame) -> list[Metric]:
    """The measures of these rows that have a function, and whose column the table has."""
    return [metric for metric in of_rows(rows) if metric.function and metric.needs in ("", *table.columns)]
