"""The results of a finished audit for readers: the page, plots and tables, and the statements as a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.measure.harms import EmptyTargets
from mitigate.report import audit_tables
from mitigate.report.audit import Audit, by_relation, render
from mitigate.report.html import save
from mitigate.runs.files import write
from mitigate.tasks.audit.measures import beside_the_paper, notices
from mitigate.tasks.audit.resource import Resource, sum_counts
from mitigate.tasks.labelled_statements import Labelling, about_targets, choice, export, per_target_tables, wordings
from mitigate.words.targets import TargetList

DRAWN = "Examples and word clouds are of {:,} statements, chosen by chance from {:,}; figures are of all of them."


def write_report(
    metrics: Mapping[str, Any],
    tallied: pl.DataFrame,
    targets: pl.DataFrame,
    target_list: TargetList,
    columns: Sequence[Labelling],
    stated: pl.DataFrame | None,
    explored: pl.DataFrame | None,
    people: pl.DataFrame | None,
    explained: Sequence[str],
    resource: Resource,
    rows: pl.DataFrame,
    words: Mapping[str, Any] | None,
    *,
    empty_targets: EmptyTargets,
    seed: int,
    folder: Path,
    about: Mapping[str, Any],
    **fields: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures, and statements.tsv, of statements drawn by `seed`. rows: counts of the
    resource's rows; words: notices of labels that depend on identity words; fields: further ones of Audit. Returns the
    page's notices."""
    statements, height = choice(folder / "statements", seed)
    every = about_targets(folder / "statements")
    labels = wordings(columns)
    audit = Audit(
        name=folder.name,
        metrics=metrics,
        labellings=labels,
        targets=per_target_tables(tallied, columns, targets, empty_targets),
        statements=statements,
        relations=by_relation(every, labels) if "relation" in statements.columns else None,
        beside=None if stated is None else beside_the_paper(metrics, stated),
        explained=explained,
        variants=explored,
        people=people,
        notices=[
            *resource.loaded.describe(sum_counts([rows])),
            *notices(tallied, targets, columns, empty_targets, target_list),
            *(words or {"notices": ()})["notices"],
            *([] if statements.height == height else [DRAWN.format(statements.height, height)]),
        ],
        **fields,
        **about,
    )
    write(folder / "audit.html", render(audit))
    write(folder / "statements.tsv", export(statements))
    save(folder, {**tables_of(audit), "targets": target_list.table(targets)}, audit.pictures)
    return {"notices": list(audit.notices)}


def tables_of(audit: Audit) -> dict[str, pl.DataFrame]:
    """The tables of an audit by the names of their files."""
    found = {"measures": audit_tables.measures(audit.metrics, list(audit.labellings.values()))}
    found |= {f"targets_{column}": frame for column, frame in audit.targets.items()}
    others = {
        "relations": audit.relations,
        "beside_the_paper": audit.beside,
        "variants": audit.variants,
        "policies_against_people": audit.people,
    }
    return found | {name: frame for name, frame in others.items() if frame is not None}
