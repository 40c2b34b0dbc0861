"""Columns of labels, and the percentages and counts of labels in them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from mitigate.measure import tally
from mitigate.measure.agreement import CLASSES, fold_other
from mitigate.measure.harms import EmptyTargets
from mitigate.triples import TEMPLATES, Scorer, label_columns


class Labelling(NamedTuple):
    """A column of labels, with its scorer and the template of the labelled statements."""

    column: str
    scorer: str
    template: str  # of TEMPLATES


def labellings(scorers: Sequence[Scorer], templates: Sequence[str] = TEMPLATES) -> list[Labelling]:
    """Return the columns that these scorers label, with each of the templates."""
    return [
        Labelling(label_columns(scorer.name, template)[0], scorer.name, template)
        for scorer in scorers
        for template in templates
    ]


def wordings(columns: Sequence[Labelling]) -> dict[str, tuple[str, str]]:
    """Scorer and template by column."""
    return {labels.column: (labels.scorer, labels.template) for labels in columns}


def per_target_tables(
    tallied: pl.DataFrame, columns: Sequence[Labelling], targets: pl.DataFrame, empty_targets: EmptyTargets = "exclude"
) -> Mapping[str, pl.DataFrame]:
    """Tables with a row a target and its percentages (tally.per_target), by label column. tallied: what
    measure.tally.tally returns; targets: (target, category)."""
    return {labels.column: tally.per_target(tallied, labels.column, targets, empty_targets) for labels in columns}


def label_names(table: pl.DataFrame) -> list[str]:
    """The columns of labels: those beside a column of their strengths."""
    return [column.removesuffix("_strength") for column in table.columns if column.endswith("_strength")]


def count_labels(table: pl.DataFrame) -> dict[str, int]:
    """Count rows, distinct masked texts and {label column}/{favouritism|neutral|prejudice}; "other" is neutral."""
    counts = {"rows": table.height, "distinct": table["masked"].n_unique()}
    for column in label_names(table):
        labels = fold_other(table[column].to_numpy())
        counts |= {f"{column}/{name}": int((labels == label).sum()) for label, name in CLASSES.items()}
    return counts
