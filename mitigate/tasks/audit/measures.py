"""All figures of an audit, from its tally, as the flat object of metrics.json."""

from collections.abc import Mapping
from typing import Any, get_args

import polars as pl

from mitigate import metrics as keys
from mitigate.measure import audit_figures
from mitigate.measure.harms import EmptyTargets
from mitigate.measure.uncertainty import intervals_of
from mitigate.metrics import prefixed
from mitigate.package_data import frame_of
from mitigate.tasks.audit.resource import ABOUT_A_TARGET, ROWS, sum_counts
from mitigate.tasks.caveats import few_targets, same_sources
from mitigate.tasks.labelled_statements import Measurement

VARIANT = {"zero": keys.EMPTY_ZERO, "exclude": keys.EMPTY_EXCLUDE}
NAMED = 5  # targets without statements, in a notice


def measure_resource(
    tallied: pl.DataFrame, counts: pl.DataFrame, how: Measurement, *, about: Mapping[str, Any]
) -> dict[str, Any]:
    """All figures: facts of the audit (about), the numbers of rows, and the result of `harms`.

    tallied: what count_statements returns; counts: what read_rows returns."""
    numbers = sum_counts([counts])
    found = {**about, keys.ROWS: numbers[ROWS], keys.ROWS_ABOUT_A_TARGET: numbers[ABOUT_A_TARGET]}
    return found | harms(tallied, how)


def harms(tallied: pl.DataFrame, how: Measurement) -> dict[str, Any]:
    """Harms under every template, with intervals; without intervals under the other convention for targets without
    statements, as "empty_zero/..." or "empty_exclude/..."; and labels of all texts, if they were tallied."""
    tables, clusters = how.tables(tallied), how.target_list.clusters
    found: dict[str, Any] = audit_figures.representation(next(iter(tables.values())), clusters, how.intervals)
    for labels in how.labellings:
        table = tables[labels.column]
        of_scorer = audit_figures.figures(table, labels.scorer)
        of_scorer |= intervals_of(table, audit_figures.names(labels.scorer), clusters, how.intervals)
        of_scorer |= audit_figures.of_all_texts(tallied, labels.column, labels.scorer)
        found |= prefixed(of_scorer, labels.template)
    if found[keys.EMPTY_TARGETS]:
        (other,) = set(get_args(EmptyTargets)) - {how.empty_targets}
        with_other = how.tables(tallied, other)
        for labels in how.labellings:
            of_scorer = audit_figures.figures(with_other[labels.column], labels.scorer)
            found |= prefixed(of_scorer, labels.template, VARIANT[other])
    return found


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
    as_zero = prefixed(dict.fromkeys(stated["key"]), variant=keys.EMPTY_ZERO)  # there if some targets have none
    ours = [metrics.get(zero, metrics.get(key)) for zero, key in zip(as_zero, stated["key"], strict=True)]
    return stated.rename({"value": "paper"}).with_columns(ours=pl.Series(ours, dtype=pl.Float64)).drop_nulls("ours")


def _read(name: str, resource: str) -> pl.DataFrame:
    return frame_of(name, infer_schema=False).filter(resource=resource).drop("resource")
