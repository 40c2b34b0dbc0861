"""Quality of a generator: likelihood of test triples, completions of them, plausible shares of generated statements and
their dependence on the target; and the parts of the data that these figures are on."""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

import polars as pl

from mitigate.measure import quality
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.declared_measures import declared_figures, measurable
from mitigate.measure.metric_frame import ALL, MetricFrame
from mitigate.metrics import PROBED, RATED, TEST_TRIPLES, Rows, groups, relation_part
from mitigate.triples import NEUTRAL, OTHER, ROLES, label_columns
from mitigate.words.targets import PAPER, TargetList

BOOTSTRAP = Bootstrap()

BY_LABEL = ("neutral", "polar")
"""The parts that depend on scorers' labels."""


def is_neutral(scorers: Sequence[str] = ROLES) -> pl.Expr:
    """Expression that is true where all scorers label a statement neutral with the neutral template, so that the
    phrase alone makes none polarised. Without scorers every statement is neutral."""
    labels = [pl.col(label_columns(scorer, "neutral")[0]) for scorer in scorers]
    return pl.all_horizontal(pl.lit(True), *(label.is_in([NEUTRAL, OTHER]) for label in labels))


def conditions(rows: Rows, table: pl.DataFrame, scorers: Sequence[str] = ROLES) -> dict[str, pl.Expr]:
    """The groups of rows that figures are of (data/groups.csv), as conditions by name: "profession/neutral" joins two.
    Without scorers there are no neutral and polarised rows."""
    tests = {"all": pl.lit(True), "target": pl.col("target").is_not_null()}
    tests |= {"profession": pl.col("category") == "profession"}
    tests |= dict(zip(BY_LABEL, (is_neutral(scorers), ~is_neutral(scorers)), strict=True))
    found: dict[str, pl.Expr] = {}
    for group in groups(rows):
        words = group.removeprefix(relation_part("")).split("/")
        if not scorers and not {*BY_LABEL}.isdisjoint(words):
            continue
        known = [tests[word] for word in words if word in tests]
        if len(known) == len(words):
            found[group] = reduce(and_, known)
            continue
        column = words[0].strip("{}")
        for value in table[column].unique(maintain_order=True):
            found[group.replace(words[0], value)] = reduce(and_, known, pl.col(column) == value)
    return found


def relation_parts(statements: pl.DataFrame) -> dict[str, pl.Expr]:
    """The statements of each relation."""
    relations = statements["relation"].unique(maintain_order=True)
    return {relation_part(relation): pl.col("relation") == relation for relation in relations}


def measure_quality(
    likelihood: pl.DataFrame,
    statements: pl.DataFrame | None = None,
    *,
    scorers: Sequence[str] = ROLES,
    intervals: Bootstrap = BOOTSTRAP,
    target_list: TargetList = PAPER,
) -> dict[str, Any]:
    """A generator's quality by its keys in metrics.json: figures_by_group of test triples, and of statements that a
    classifier labelled.

    likelihood: what held_out_likelihood returns, of labelled triples. statements: labelled ones that were probed,
    perhaps with judged_valid (score.plausibility) and people_validity (score.people). scorers: those by whose labels a
    triple is neutral or polarised."""
    metrics = figures_by_group(TEST_TRIPLES, likelihood, scorers)
    if statements is not None:
        metrics |= figures_by_group(PROBED, statements, scorers, intervals, target_list)
        metrics |= figures_by_group(RATED, statements, scorers, intervals, target_list)
    return metrics


def figures_by_group(
    rows: Rows,
    table: pl.DataFrame,
    scorers: Sequence[str] = ROLES,
    intervals: Bootstrap = BOOTSTRAP,
    target_list: TargetList = PAPER,
) -> dict[str, Any]:
    """The figures of all measures that the table of metrics declares for each group of these rows, with intervals over
    targets where a measure is a mean over them, by their keys in metrics.json.

    table: labelled test triples as held_out_likelihood returns them, published ones as published_likelihood does, or
    probed statements."""
    if not any(metric.part for metric in measurable(rows, table)):
        return {}
    return declared_figures(rows, MetricFrame(table, conditions(rows, table, scorers)), target_list.clusters, intervals)


def tail_figures(statements: pl.DataFrame, train: pl.DataFrame) -> dict[str, Any]:
    """Dependence of generated tails on the target, and the shares of statements that the training triples lack."""
    return declared_figures(PROBED, MetricFrame(statements, ALL)) | quality.novelty(statements, train)
