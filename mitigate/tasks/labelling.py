"""Columns of labels, and the harms that follow from how often each label stands there."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from mitigate.measure import tally
from mitigate.measure.harms import EmptyTargets
from mitigate.triples import TEMPLATES, Scorer, label_columns


class Labelling(NamedTuple):
    """A column of labels: whose they are, and under which template the statements were labelled."""

    column: str
    scorer: str
    template: str  # of TEMPLATES


def labellings(scorers: Sequence[Scorer], templates: Sequence[str] = TEMPLATES) -> list[Labelling]:
    """The columns that these scorers label, with each of the templates."""
    return [
        Labelling(label_columns(scorer.name, template)[0], scorer.name, template)
        for scorer in scorers
        for template in templates
    ]


def wordings(columns: Sequence[Labelling]) -> dict[str, tuple[str, str]]:
    """Scorer and template by column."""
    return {labels.column: (labels.scorer, labels.template) for labels in columns}


def per_target_tables(
    tallied: pl.DataFrame,
    columns: Sequence[Labelling],
    targets: pl.DataFrame,
    empty_targets: EmptyTargets = "exclude",
) -> Mapping[str, pl.DataFrame]:
    """One row a target with its percentages (tally.per_target), by label column. tallied: what measure.tally.tally
    returns; targets: (target, category)."""
    return {labels.column: tally.per_target(tallied, labels.column, targets, empty_targets) for labels in columns}
