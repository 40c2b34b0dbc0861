"""All figures of an audit, from its tally."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate.measure.caveats import few_targets, same_sources
from mitigate.measure.harms import VARIANT, audit_results
from mitigate.measure.results import measured
from mitigate.measure.statements import Measurement
from mitigate.package_data import frame_of
from mitigate.tasks.audit.resource import ABOUT_A_TARGET, ROWS, sum_counts

NAMED = 5  # targets without statements, in a notice


def measure_resource(tallied: pl.DataFrame, counts: pl.DataFrame, how: Measurement) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): the numbers of rows, and harms. tallied: what count_statements returns;
    counts: what read_rows returns."""
    numbers = sum_counts([counts])
    rows = measured("resource", {"rows": numbers[ROWS], "rows_about_a_target": numbers[ABOUT_A_TARGET]})
    return pl.concat([rows.drop_nulls("value"), harms(tallied, how)])


def harms(tallied: pl.DataFrame, how: Measurement) -> pl.DataFrame:
    """The results of measure.harms.audit_results."""
    clusters = how.target_list.clusters
    return audit_results(tallied, how.targets, how.wordings, clusters, how.intervals, how.empty_targets)


def notices(tallied: pl.DataFrame, how: Measurement) -> list[str]:
    """Limits of the figures that a reader must know first."""
    table = next(iter(how.tables(tallied).values()))
    found = few_targets(table, how.target_list)
    if empty := table.filter(pl.col("statements") == 0)["target"].to_list():
        effect = "they have no percentage and are left out of means and variances of percentages."
        if how.empty_targets == "zero":
            effect = (
                "each counts as 0 % prejudiced, favoured and neutral, as in the paper, which lowers means and makes "
                "variances larger."
            )
        more = " ..." if len(empty) > NAMED else ""
        found.append(
            f"{len(empty)} of {table.height} targets have no statements ({', '.join(empty[:NAMED])}{more}): {effect}"
        )
    return found + same_sources(labels.scorer for labels in how.labellings)


def paper_figures(resource: str) -> pl.DataFrame:
    """The paper's figures of a resource (place, figure, key, value), from data/paper_audit.csv."""
    return _read("paper_audit.csv", resource).cast({"value": pl.Float64})


def paper_notes(resource: str) -> list[str]:
    """Notes on differences from the paper's figures, with measure=paper, from data/paper_audit_notes.csv."""
    return _read("paper_audit_notes.csv", resource)["note"].to_list()


def beside_the_paper(metrics: Mapping[str, Any], stated: pl.DataFrame) -> pl.DataFrame:
    """The paper's figures with ours (place, figure, key, paper, ours); a target without statements counts as 0 %.
    stated: what paper_figures returns."""
    zero = f"{VARIANT['zero']}/"  # there if some targets have none
    ours = [metrics.get(zero + key, metrics.get(key)) for key in stated["key"]]
    return stated.rename({"value": "paper"}).with_columns(ours=pl.Series(ours, dtype=pl.Float64)).drop_nulls("ours")


def _read(name: str, resource: str) -> pl.DataFrame:
    return frame_of(name, infer_schema=False).filter(resource=resource).drop("resource")
