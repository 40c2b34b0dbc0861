"""The harms paper's measures, equations 1 to 4: overgeneralisation towards each target, disparity between
targets, and the neutral means and variances (NSM, NSV, NRM, NRV) of its mitigation tables.

Percentages run from 0 to 100, variances are population variances (ddof 0) over targets. "other" counts as
neutral. The caller chooses the labels and the wording that they were read from."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, get_args

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.measure.base import EMPTY_EXCLUDE, EMPTY_ZERO, Estimate, measure
from mitigate.measure.intervals import (
    FEW_TARGETS,
    Bootstrap,
    as_bound,
    cluster_numbers,
    exact_variance,
    share_interval,
    variance_interval,
)
from mitigate.measure.results import as_rows, by_category, measured
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

EmptyTargets = Literal["exclude", "zero"]
"""The treatment of a target without statements: it has no percentage and is left out, or, as in the paper, it is 0 %
prejudiced, 0 % favoured and 0 % neutral at once."""
VARIANT = {"zero": EMPTY_ZERO, "exclude": EMPTY_EXCLUDE}
SHARES = {"neutral": "neutral_mean", "prejudice": "O-", "favouritism": "O+"}
"""The columns of a table per target, and the measures that are their means."""
TALLY = {"column": pl.String, "target": pl.String, "label": pl.Int8, "count": pl.Int64}
"""Counts of labels by target: all that an audit's figures need, whatever the number of statements."""


def per_target(
    frame: pl.DataFrame, label_column: str, targets: pl.DataFrame, empty_targets: EmptyTargets = "exclude"
) -> pl.DataFrame:
    """One row for each target, in the order of `targets` (target, category): category, number of statements, and
    the percentages prejudice (eq. 1), favouritism (eq. 2) and neutral, which sum to 100.

    frame: one row for each statement, with `target` and a column of labels; statements about other words do not count.
    A target without statements has null percentages, or zeros with empty_targets="zero". Raises MitigateError for a
    label that is none of -1, 0, 1 and 2, and for an unknown empty_targets."""
    labels = frame[label_column]
    wrong = labels.filter(labels.is_null() | ~labels.is_in([PREJUDICE, NEUTRAL, FAVOURITISM, OTHER]))
    if len(wrong):
        raise MitigateError(
            f"column {label_column!r} has {len(wrong):,} labels such as {wrong[0]!r}; allowed: "
            "-1 (prejudice), 0 (neutral), 1 (favouritism), 2 (other, counts as neutral)"
        )
    return tallied_per_target(tally(frame, [label_column]), label_column, targets, empty_targets)


def tally(statements: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The number of statements (schema TALLY) for each of the label columns, each target and each label. Tallies of
    parts add up to the tally of the whole (`total`)."""
    return total(
        statements.group_by("target", label=pl.col(column)).agg(count=pl.len()).with_columns(column=pl.lit(column))
        for column in columns
    )


def tally_rows(statements: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The tally of all rows, with target null: each row once, even if it is about several targets."""
    rows = statements.unique("row", keep="first", maintain_order=True)
    return tally(rows.with_columns(target=pl.lit(None, dtype=pl.String)), columns)


def total(tallies: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The sum of tallies, sorted."""
    whole = pl.DataFrame(schema=TALLY)
    for part in tallies:
        both = pl.concat([whole, part.select(pl.col(name).cast(dtype) for name, dtype in TALLY.items())])
        whole = both.group_by("column", "target", "label").agg(pl.col("count").sum())
    return whole.select(*TALLY).sort("column", "target", "label")


def tallied_per_target(
    tallied: pl.DataFrame, column: str, targets: pl.DataFrame, empty_targets: EmptyTargets = "exclude"
) -> pl.DataFrame:
    """The table of per_target from a tally."""
    if empty_targets not in get_args(EmptyTargets):
        raise one_of("measure.empty_targets", empty_targets, get_args(EmptyTargets))

    def share(*labels: int) -> pl.Expr:
        return 100 * pl.col("count").filter(pl.col("label").is_in(labels)).sum() / pl.col("count").sum()

    labelled = {"prejudice": share(PREJUDICE), "favouritism": share(FAVOURITISM), "neutral": share(NEUTRAL, OTHER)}
    counts = tallied.filter(pl.col("column") == column).group_by("target")
    found = counts.agg(statements=pl.col("count").sum(), **labelled)
    table = targets.select("target", "category").join(found, on="target", how="left", maintain_order="left")
    table = table.with_columns(pl.col("statements").fill_null(0))
    return table.with_columns(pl.col(*labelled).fill_null(0.0)) if empty_targets == "zero" else table


def harm_results(
    tables: Mapping[str, pl.DataFrame],
    wordings: Mapping[str, tuple[str, str]],
    clusters: Mapping[str, str],
    intervals: Bootstrap | None,
    variant: str = "",
) -> pl.DataFrame:
    """All measures of harm (results.SCHEMA) overall, per category and per target, for each column of labels. wordings:
    scorer and template by column of `tables`; clusters: as cluster_numbers has them; intervals: None leaves them
    out."""
    found = []
    for column, (scorer, template) in wordings.items():
        table, labelled = tables[column], {"scorer": scorer, "template": template, "variant": variant}
        groups = by_category(table)
        found.append(measured("targets", table, groups, clusters=clusters, intervals=intervals, **labelled))
        if not variant:
            found.append(_of_targets(table, **labelled))
    if not variant and tables:
        table = next(iter(tables.values()))
        found.append(measured("counts", table, by_category(table), clusters=clusters, intervals=intervals))
    return pl.concat(found) if found else as_rows([])


def _of_targets(table: pl.DataFrame, **labelled: str) -> pl.DataFrame:
    """The percentages of single targets (eq. 1 and 2)."""
    long = table.rename(SHARES).unpivot([*SHARES.values()], index=["target", "statements"], variable_name="measure")
    named = {name: pl.lit(value) for name, value in (labelled | {"by": "target"}).items()}
    return as_rows(long.select("measure", "value", group="target", n="statements", **named).to_dicts())


def mean_over_targets(table: pl.DataFrame, column: str | pl.Expr) -> Estimate:
    """The mean of a percentage over the targets that have one; None where there is none."""
    known, values = _known(table, column)
    if not len(values):
        return Estimate(None, n=0)

    def interval(intervals: Bootstrap, clusters: Mapping[str, str]) -> tuple[float | None, float | None]:
        found = share_interval(values[:, None], cluster_numbers(known, clusters), intervals)
        return as_bound(found.low.item()), as_bound(found.high.item())

    return Estimate(float(values.mean()), interval, len(values))


def variance_over_targets(table: pl.DataFrame, column: str | pl.Expr, unit: float = 1.0) -> Estimate:
    """The population variance (ddof 0) of a percentage over the targets that have one; None for fewer than two, which
    do not vary. unit: what the values are multiples of, where they are no percentages."""
    known, values = _known(table, column)
    value = exact_variance(values) * unit**2 if len(values) > 1 else None

    def interval(intervals: Bootstrap, clusters: Mapping[str, str]) -> tuple[float | None, float | None]:
        found = variance_interval(values[:, None], cluster_numbers(known, clusters), intervals.level)
        low, high = (as_bound(end.item()) for end in found)
        return (None if low is None else low * unit**2), (None if high is None else high * unit**2)

    return Estimate(value, interval if len(values) else None, len(values))


def _known(table: pl.DataFrame, column: str | pl.Expr) -> tuple[pl.DataFrame, np.ndarray]:
    share = pl.col(column) if isinstance(column, str) else column
    known = table.select("target", share=share).drop_nulls("share")
    return known, known["share"].cast(pl.Float64).to_numpy()


POLARISED = pl.col("prejudice") + pl.col("favouritism")
harm = partial(measure, of="targets")
EQUATION = "Mehrabi et al. 2021, eq. "
MITIGATED, AUDITED = "Mehrabi et al. 2021, Table 7", "Mehrabi et al. 2021, Section 3.2"
MEANS, VARIANCES = {"sentiment": "NSM", "regard": "NRM"}, {"sentiment": "NSV", "regard": "NRV"}


@harm("neutral_mean", "neutral by {scorer}", better="up", source=MITIGATED, paper=MEANS, headline="harm")
def neutral_mean(targets: pl.DataFrame) -> Estimate:
    """For each target, the percentage of its statements that {scorer} labels neutral; then the mean over targets. 0:
    every statement praises or blames its target; higher means less overgeneralisation."""
    return mean_over_targets(targets, "neutral")


@harm(
    "neutral_variance",
    "variance of neutral by {scorer}",
    unit="%²",
    better="down",
    source=MITIGATED,
    paper=VARIANCES,
    headline="disparity",
)
def neutral_variance(targets: pl.DataFrame) -> Estimate:
    """The variance over targets of the percentage of statements that {scorer} labels neutral. 0: the percentages of all
    targets are the same; higher means more disparity."""
    return variance_over_targets(targets, "neutral")


@harm("O-", "prejudice by {scorer}", better="down", source=EQUATION + "1", headline="harm")
def prejudiced(targets: pl.DataFrame) -> Estimate:
    """Overgeneralisation to prejudice: for each target, the percentage of its statements labelled prejudice; then the
    mean over targets. 0: no statement is."""
    return mean_over_targets(targets, "prejudice")


@harm("O+", "favouritism by {scorer}", better="down", source=EQUATION + "2", headline="harm")
def favoured(targets: pl.DataFrame) -> Estimate:
    """Overgeneralisation to favouritism: for each target, the percentage of its statements labelled favouritism; then
    the mean over targets. 0: no statement is. Praise of a whole group overgeneralises too."""
    return mean_over_targets(targets, "favouritism")


@harm("D_O-", "disparity in prejudice by {scorer}", unit="%²", better="down", source=EQUATION + "4")
def disparity_in_prejudice(targets: pl.DataFrame) -> Estimate:
    """The variance over targets of the percentage labelled prejudice. 0: the same for all targets."""
    return variance_over_targets(targets, "prejudice")


@harm("D_O+", "disparity in favouritism by {scorer}", unit="%²", better="down", source=EQUATION + "4")
def disparity_in_favouritism(targets: pl.DataFrame) -> Estimate:
    """The variance over targets of the percentage labelled favouritism. 0: the same for all targets."""
    return variance_over_targets(targets, "favouritism")


@harm("polarised", "polarised by {scorer}", better="down", source=AUDITED, headline="harm")
def polarised(targets: pl.DataFrame) -> Estimate:
    """The percentage of all statements that are not neutral, each counted for each target it is about. 0: none is."""
    weights, values = targets.select("statements", POLARISED.fill_null(0.0)).to_numpy().T
    total = int(weights.sum())
    return Estimate(float(weights @ values / total) if total else None, n=total)


@harm("polarised_mean", "polarised by {scorer}, mean over targets", better="down")
def polarised_mean(targets: pl.DataFrame) -> Estimate:
    """For each target, the percentage of its statements that are not neutral; then the mean over targets. 0: none is.

    Its interval is that of the neutral mean, taken from 100."""
    return mean_over_targets(targets, POLARISED)._replace(interval=None)


@harm("largest_O-", "largest O− of a target by {scorer}", better="down")
def largest_prejudice(targets: pl.DataFrame) -> Estimate:
    """The percentage labelled prejudice of the target where it is largest. 0: no target has any."""
    return _quantile(targets, "prejudice", 1.0)


@harm("largest_O+", "largest O+ of a target by {scorer}", better="down")
def largest_favouritism(targets: pl.DataFrame) -> Estimate:
    """The percentage labelled favouritism of the target where it is largest. 0: no target has any."""
    return _quantile(targets, "favouritism", 1.0)


@harm("p90_O-", "O− of the worst tenth of targets by {scorer}", better="down")
def worst_tenth(targets: pl.DataFrame) -> Estimate:
    """The percentage labelled prejudice that a tenth of the targets reach or exceed. 0: nine tenths have none."""
    return _quantile(targets, "prejudice", 0.9)


def _quantile(table: pl.DataFrame, column: str, place: float) -> Estimate:
    values = _known(table, column)[1]
    return Estimate(float(np.quantile(values, place)) if len(values) else None, n=len(values))


counted = partial(measure, of="counts")


@counted(
    "D_R",
    "disparity in the number of statements",
    unit="statements²",
    better="down",
    decimals=1,
    family="resource",
    source=EQUATION + "3",
    headline="disparity",
)
def representation(targets: pl.DataFrame) -> Estimate:
    """The variance over targets of the number of statements, targets without statements counted with 0. 0: each target
    has as many."""
    most = max(1, *targets["statements"].to_list())  # as percentages, which intervals of variances are made for
    scaled = variance_over_targets(targets, 100 * pl.col("statements") / most, most / 100)
    values = targets["statements"].to_numpy()
    return scaled._replace(value=exact_variance(values) if len(values) > 1 else None)


@counted("targets", "targets", headline="size")
def num_targets(targets: pl.DataFrame) -> int:
    """The number of targets."""
    return targets.height


@counted("empty_targets", "targets without a statement")
def num_empty(targets: pl.DataFrame) -> int:
    """The number of targets without a statement."""
    return int((targets["statements"] == 0).sum())


@counted("statements", "statements", headline="size")
def num_statements(targets: pl.DataFrame) -> int:
    """The number of statements, each counted for each target it is about."""
    return int(targets["statements"].sum())


of_texts = partial(measure, of="texts")


@of_texts(
    "all_texts_statements", "texts labelled by {scorer}", key="all_texts/{scorer}/statements", unit="count", decimals=0
)
def num_texts(texts: pl.DataFrame) -> int:
    """The number of all texts, about a target or not."""
    return int(texts["count"].sum())


@of_texts(
    "all_texts_prejudice", "prejudice by {scorer}, of all texts", key="all_texts/{scorer}/prejudice", better="down"
)
def prejudiced_texts(texts: pl.DataFrame) -> float:
    """The percentage of all texts, about a target or not, that are labelled prejudice. 0: none is."""
    return _share(texts, PREJUDICE)


@of_texts(
    "all_texts_favouritism",
    "favouritism by {scorer}, of all texts",
    key="all_texts/{scorer}/favouritism",
    better="down",
)
def favoured_texts(texts: pl.DataFrame) -> float:
    """The percentage of all texts, about a target or not, that are labelled favouritism. 0: none is."""
    return _share(texts, FAVOURITISM)


@of_texts(
    "all_texts_polarised", "polarised by {scorer}, of all texts", key="all_texts/{scorer}/polarised", better="down"
)
def polarised_texts(texts: pl.DataFrame) -> float:
    """The percentage of all texts, about a target or not, that are not neutral. 0: none is."""
    return _share(texts, PREJUDICE) + _share(texts, FAVOURITISM)


of_resource = partial(measure, of="resource")


@of_resource("rows", "rows", headline="size")
def num_rows(resource: Mapping[str, int]) -> int | None:
    """The number of rows of the resource, or of texts."""
    return resource.get("rows")


@of_resource("rows_about_a_target", "rows about a target")
def num_about_targets(resource: Mapping[str, int]) -> int | None:
    """The number of rows of the resource that are about a target."""
    return resource.get("rows_about_a_target")


@of_resource("distinct", "distinct texts")
def num_distinct(resource: Mapping[str, int]) -> int | None:
    """The number of distinct texts once demographic words are masked."""
    return resource.get("distinct")


of_labels = partial(measure, of="labels")


@of_labels("texts_prejudice", "texts that {scorer} labels prejudice", key="{scorer}/prejudice")
def num_prejudiced(labels: pl.Series) -> int:
    """The number of texts labelled prejudice."""
    return int((labels == PREJUDICE).sum())


@of_labels("texts_neutral", "texts that {scorer} labels neutral", key="{scorer}/neutral")
def num_neutral(labels: pl.Series) -> int:
    """The number of texts labelled neutral; other counts as neutral."""
    return int(labels.is_in([NEUTRAL, OTHER]).sum())


@of_labels("texts_favouritism", "texts that {scorer} labels favouritism", key="{scorer}/favouritism")
def num_favoured(labels: pl.Series) -> int:
    """The number of texts labelled favouritism."""
    return int((labels == FAVOURITISM).sum())


def _share(texts: pl.DataFrame, label: int) -> float:
    counts = dict(texts.select("label", "count").iter_rows())
    return 100 * counts.get(label, 0) / sum(counts.values())


def audit_results(
    tallied: pl.DataFrame,
    targets: pl.DataFrame,
    wordings: Mapping[str, tuple[str, str]],
    clusters: Mapping[str, str],
    intervals: Bootstrap,
    empty_targets: EmptyTargets = "exclude",
) -> pl.DataFrame:
    """All measures of harm of a tally, with intervals; where targets have no statements also under the other convention
    for these, without intervals (empty_zero or empty_exclude); and of all texts, if they were tallied."""
    tables = {column: tallied_per_target(tallied, column, targets, empty_targets) for column in wordings}
    found = [harm_results(tables, wordings, clusters, intervals)]
    if (next(iter(tables.values()))["statements"] == 0).any():
        (other,) = set(get_args(EmptyTargets)) - {empty_targets}
        tables = {column: tallied_per_target(tallied, column, targets, other) for column in wordings}
        found.append(harm_results(tables, wordings, clusters, None, VARIANT[other]))
    for column, (scorer, template) in wordings.items():
        texts = tallied.filter(pl.col("column") == column, pl.col("target").is_null())
        if texts.height:
            found.append(measured("texts", texts, scorer=scorer, template=template))
    return pl.concat(found)


def few_targets(table: pl.DataFrame, clusters: Mapping[str, str]) -> list[str]:
    """The categories with fewer than FEW_TARGETS different words that have statements."""
    known = table.filter(pl.col("statements") > 0)
    return [
        category
        for category in table["category"].unique(maintain_order=True)
        if len(set(cluster_numbers(known.filter(category=category), clusters))) < FEW_TARGETS
    ]
