"""The results of a finished audit for readers: the page, plots and tables, and the statements as a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.report import audit_tables
from mitigate.report.audit import Audit, by_relation, render
from mitigate.report.html import save
from mitigate.runs.files import write
from mitigate.tasks.audit.measures import beside_the_paper, notices
from mitigate.tasks.audit.resource import Resource, sum_counts
from mitigate.tasks.labelled_statements import Measurement, about_targets, choice, export

DRAWN = "Examples and word clouds are of {:,} statements, chosen by chance from {:,}; figures are of all of them."


def write_report(
    metrics: Mapping[str, Any],
    tallied: pl.DataFrame,
    how: Measurement,
    stated: pl.DataFrame | None,
    explored: pl.DataFrame | None,
    people: pl.DataFrame | None,
    explained: Sequence[str],
    resource: Resource,
    rows: pl.DataFrame,
    words: Mapping[str, Any] | None,
    *,
    folder: Path,
    about: Mapping[str, Any],
    **fields: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures, and statements.tsv, of statements drawn by the seed. rows: counts of the
    resource's rows; words: notices of labels that depend on identity words; fields: further ones of Audit. Returns the
    page's notices."""
    statements, height = choice(folder / "statements", how.intervals.seed)
    every, labels = about_targets(folder / "statements"), how.wordings
    audit = Audit(
        name=folder.name,
        metrics=metrics,
        labellings=labels,
        targets=how.tables(tallied),
        statements=statements,
        relations=by_relation(every, labels) if "relation" in statements.columns else None,
        beside=None if stated is None else beside_the_paper(metrics, stated),
        explained=explained,
        variants=explored,
        people=people,
        notices=[
            *resource.loaded.describe(sum_counts([rows])),
            *notices(tallied, how),
            *(words or {"notices": ()})["notices"],
            *([] if statements.height == height else [DRAWN.format(statements.height, height)]),
        ],
        **fields,
        **about,
    )
    write(folder / "audit.html", render(audit))
    write(folder / "statements.tsv", export(statements))
    frames = {
        "measures": audit_tables.measures(metrics, list(labels.values())),
        **{f"targets_{column}": frame for column, frame in audit.targets.items()},
        "relations": audit.relations,
        "beside_the_paper": audit.beside,
        "variants": explored,
        "policies_against_people": people,
        "targets": how.target_list.table(how.targets),
    }
    save(folder, {name: frame for name, frame in frames.items() if frame is not None}, audit.pictures)
    return {"notices": list(audit.notices)}
