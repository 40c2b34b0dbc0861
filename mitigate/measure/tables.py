"""Harms towards targets in labelled statements: measure, with intervals."""

from collections.abc import Mapping, Sequence

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.measure.harms import EmptyTargets, harm_results, per_target
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results
from mitigate.measure.statements import label_names
from mitigate.triples import ROLES, TEMPLATES, label_columns
from mitigate.words.targets import TargetList, as_targets, list_of

BOOTSTRAP = Bootstrap()


def measure_harms(
    statements: pl.DataFrame,
    targets: pl.DataFrame | None = None,
    *,
    scorers: Sequence[str] | None = None,
    empty_targets: EmptyTargets = "exclude",
    intervals: Bootstrap | None = BOOTSTRAP,
    target_list: TargetList | None = None,
) -> Results:
    """All measures of harm, for each scorer and each template whose labels the statements have: a mapping by their keys
    in metrics.json ("NSM", "NSM_low", "sentiment/O-/origin" ...), with the tidy table as `table`.

    statements: what label_statements returns, with `target`. targets: (target, category); None: those that
    the statements are about. scorers: their names; None: all that the statements have labels of. intervals: drawn from
    the targets, 95 % by default; None leaves them out. target_list: knows which of
    them are inflections of one word; None: the list of the targets. A figure is None where no target has statements,
    and a bound where there are fewer than two targets.

    Raises MitigateError where targets or labels are missing."""
    if "target" not in statements.columns:
        raise MitigateError(
            "measure_harms: the statements have no column 'target'; add it, with the word that each statement is about"
        )
    if targets is None:
        named = statements.filter(pl.col("target").is_not_null()).unique("target", maintain_order=True)
        has_categories = "category" in named.columns
        targets = (named if has_categories else as_targets(named["target"].to_list())).select("target", "category")
    if targets.is_empty():
        raise MitigateError(
            "measure_harms: the column 'target' is null in all statements; fill it with the word that each is about"
        )
    labels = label_names(statements)
    available = [name for name in labels if name not in {label_columns(other, "neutral")[0] for other in labels}]
    scorers = available if scorers is None else scorers
    if lacking := [scorer for scorer in scorers if scorer not in statements.columns]:
        raise one_of("scorer", lacking[0], available)
    if not scorers:
        raise MitigateError("measure_harms: the statements have no labels; take them from label_statements")
    tables = per_target_tables(statements, targets, empty_targets, scorers)
    words = list_of(targets) if target_list is None else target_list
    return Results(harm_results(tables, wordings(tables, scorers), words.clusters, intervals))


def wordings(tables: Mapping[str, pl.DataFrame], scorers: Sequence[str] = ROLES) -> dict[str, tuple[str, str]]:
    """Scorer and template of the columns of labels that there are tables of."""
    every = {label_columns(scorer, template)[0]: (scorer, template) for scorer in scorers for template in TEMPLATES}
    return {column: labelled for column, labelled in every.items() if column in tables}


def per_target_tables(
    statements: pl.DataFrame,
    targets: pl.DataFrame,
    empty_targets: EmptyTargets = "exclude",
    scorers: Sequence[str] = ROLES,
) -> dict[str, pl.DataFrame]:
    """Tables with a row a target and its percentages, by label column: "sentiment", "sentiment_neutral", "regard" ...
    A template whose labels the statements lack, as sentences do, is left out. Raises MitigateError for a scorer without
    any labels."""
    tables = {}
    for scorer in scorers:
        paper, neutral = (label_columns(scorer, template)[0] for template in TEMPLATES)
        tables[paper] = per_target(statements, paper, targets, empty_targets)
        if neutral in statements.columns:
            tables[neutral] = per_target(statements, neutral, targets, empty_targets)
    return tables
