"""The harms paper's measures, equations 1 to 4: overgeneralisation towards each target, disparity between
targets, and the neutral means and variances (NSM, NSV, NRM, NRV) of its mitigation tables.

Percentages run from 0 to 100, variances are population variances (ddof 0) over targets. "other" counts as
neutral. The caller chooses the labels and the wording that they were read from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.measure.base import Estimate, measure, number
from mitigate.measure.intervals import FEW_TARGETS, Bootstrap, cluster_numbers, mean_over_targets, variance_over_targets
from mitigate.measure.results import Results, as_rows, by_category, measured
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, ROLES, TEMPLATES, label_columns
from mitigate.words.targets import PAPER, TargetList, as_targets, list_of, named

EmptyTargets = Literal["exclude", "zero"]
"""The treatment of a target without statements: it has no percentage and is left out, or, as in the paper, it is 0 %
prejudiced, 0 % favoured and 0 % neutral at once."""
SHARES = {"neutral": "neutral_mean", "prejudice": "O-", "favouritism": "O+"}
"""The columns of a table per target, and the measures that are their means."""
TALLY = {"column": pl.String, "target": pl.String, "label": pl.Int8, "count": pl.Int64}
"""Counts of labels by target: all that an audit's figures need, whatever the number of statements."""
BOOTSTRAP = Bootstrap()
Wordings = Mapping[str, tuple[str, str]]
"""Scorer and template by column of labels."""


def wordings(scorers: Iterable[str], templates: Sequence[str] = TEMPLATES) -> Wordings:
    """The columns that these scorers label, with each of the templates."""
    return {label_columns(scorer, name)[0]: (scorer, name) for scorer in scorers for name in templates}


def label_names(table: pl.DataFrame) -> list[str]:
    """The columns of labels: those beside a column of their strengths."""
    return [column.removesuffix("_strength") for column in table.columns if column.endswith("_strength")]


# Labels by target


def tally(statements: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """The number of statements (schema TALLY) for each of the label columns, each target and each label. Tallies of
    parts add up to the tally of the whole (`total`). Raises MitigateError for any label but -1, 0, 1, 2."""
    for column in columns:
        labels = statements[column]
        wrong = labels.filter(labels.is_null() | ~labels.is_in([PREJUDICE, NEUTRAL, FAVOURITISM, OTHER]))
        if len(wrong):
            raise MitigateError(
                f"column {column!r} has {len(wrong):,} labels such as {wrong[0]!r}; allowed: "
                "-1 (prejudice), 0 (neutral), 1 (favouritism), 2 (other, counts as neutral)"
            )
    return total(
        statements.group_by("target", label=pl.col(column)).agg(count=pl.len()).with_columns(column=pl.lit(column))
        for column in columns
    )


def total(tallies: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The sum of tallies, sorted."""
    whole = pl.DataFrame(schema=TALLY)
    for part in tallies:
        both = pl.concat([whole, part.select(pl.col(name).cast(dtype) for name, dtype in TALLY.items())])
        whole = both.group_by("column", "target", "label").agg(pl.col("count").sum())
    return whole.select(*TALLY).sort("column", "target", "label")


def per_target(
    tallied: pl.DataFrame, column: str, targets: pl.DataFrame, empty_targets: EmptyTargets = "exclude"
) -> pl.DataFrame:
    """One row for each target, in the order of `targets` (target, category): category, number of statements, and
    the percentages prejudice (eq. 1), favouritism (eq. 2) and neutral, which sum to 100. tallied: what `tally` returns;
    statements about other words do not count. A target without statements has null percentages, or zeros with
    empty_targets="zero". Raises MitigateError for an unknown empty_targets."""
    if empty_targets not in get_args(EmptyTargets):
        raise one_of("measure.empty_targets", empty_targets, get_args(EmptyTargets))

    def share(*labels: int) -> pl.Expr:
        return 100 * pl.col("count").filter(pl.col("label").is_in(labels)).sum() / pl.col("count").sum()

    labelled = {"prejudice": share(PREJUDICE), "favouritism": share(FAVOURITISM), "neutral": share(NEUTRAL, OTHER)}
    counts = tallied.filter(pl.col("column") == column).group_by("target")
    shares = counts.agg(statements=pl.col("count").sum(), **labelled)
    table = targets.select("target", "category").join(shares, on="target", how="left", maintain_order="left")
    table = table.with_columns(pl.col("statements").fill_null(0))
    return table.with_columns(pl.col(*labelled).fill_null(0.0)) if empty_targets == "zero" else table


# Results


@dataclass(frozen=True)
class Measurement:
    """The targets that are measured over, the columns of labels, and how harms are measured."""

    targets: pl.DataFrame  # (target, category)
    wordings: Wordings
    target_list: TargetList = PAPER
    intervals: Bootstrap = BOOTSTRAP
    empty_targets: EmptyTargets = "exclude"

    @property
    def scorers(self) -> list[str]:
        """The scorers' names, those of the roles last first: regard, sentiment, and any others."""
        names = dict.fromkeys(scorer for scorer, _ in self.wordings.values())
        return sorted(names, key=lambda name: -ROLES.index(name) if name in ROLES else 1)

    def tables(self, tallied: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Tables with a row a target and its percentages (per_target), by label column."""
        return {column: per_target(tallied, column, self.targets, self.empty_targets) for column in self.wordings}

    def harms(self, tallied: pl.DataFrame) -> pl.DataFrame:
        """All measures of harm (results.SCHEMA) with intervals."""
        return harm_results(self.tables(tallied), self.wordings, self.target_list.clusters, self.intervals)

    def notices(self, tallied: pl.DataFrame) -> list[str]:
        """Limits of the figures that a reader must know first: small categories, targets without statements."""
        table = next(iter(self.tables(tallied).values()))
        notices = few_targets(table, self.target_list.clusters)
        if empty := table.filter(pl.col("statements") == 0)["target"].to_list():
            effect = "they have no percentage, and means and variances leave them out."
            if self.empty_targets == "zero":
                effect = "each counts as 0 % prejudiced, favoured and neutral, as in the paper, which lowers means and "
                effect += "makes variances larger."
            notices.append(f"{len(empty)} of {table.height} targets have no statements ({named(empty)}): {effect}")
        return notices


def few_targets(table: pl.DataFrame, clusters: Mapping[str, str]) -> list[str]:
    """A notice where categories have statements about fewer than FEW_TARGETS different words."""
    known = table.filter(pl.col("statements") > 0)
    few = [
        category
        for category in table["category"].unique(maintain_order=True)
        if len(set(cluster_numbers(known.filter(category=category), clusters))) < FEW_TARGETS
    ]
    if not few:
        return []
    effect = "their results say little about other words of these categories."
    return [f"There are few targets in {', '.join(few)} (under {FEW_TARGETS}): {effect}"]


def harm_results(
    tables: Mapping[str, pl.DataFrame], wordings: Wordings, clusters: Mapping[str, str], intervals: Bootstrap | None
) -> pl.DataFrame:
    """All measures of harm (results.SCHEMA) overall, per category and per target, for each column of labels. clusters:
    as cluster_numbers has them; intervals: None leaves them out."""
    drawn: dict[str, Any] = {"clusters": clusters, "intervals": intervals}
    tidy = list[pl.DataFrame]()
    for column, (scorer, template) in wordings.items():
        table: pl.DataFrame = tables[column]
        labelled: dict[str, Any] = {"scorer": scorer, "template": template}
        tidy.append(measured("targets", table, by_category(table), **drawn, **labelled))
        shares = table.rename(SHARES).unpivot(  # the percentages of single targets (eq. 1 and 2)
            [*SHARES.values()], index=["target", "statements"], variable_name="measure"
        )
        shares = shares.select("measure", "value", by=pl.lit("target"), group="target", n="statements")
        tidy.append(as_rows(row | labelled for row in shares.to_dicts()))
    first = next(iter(tables.values()))
    return pl.concat([*tidy, measured("counts", first, by_category(first), **drawn)])


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

    statements: what label_statements returns, with `target`. targets: (target, category); None: those that the
    statements are about. scorers: their names; None: all. intervals: 95 %, over targets; None leaves them out.
    target_list: knows which are inflections of one word; None: the list of the targets. A figure is None where no
    target has statements. Raises MitigateError where targets or labels are missing."""
    if "target" not in statements.columns or statements["target"].null_count() == statements.height:
        raise MitigateError(
            "measure_harms: the statements have no column 'target', or it is null in all of them; fill it with the "
            "word that each statement is about"
        )
    if targets is None:
        about = statements.filter(pl.col("target").is_not_null()).unique("target", maintain_order=True)
        has_categories = "category" in about.columns
        targets = (about if has_categories else as_targets(about["target"].to_list())).select("target", "category")
    labels = label_names(statements)
    available = [name for name in labels if name not in {label_columns(other, "neutral")[0] for other in labels}]
    scorers = available if scorers is None else scorers
    if lacking := [scorer for scorer in scorers if scorer not in statements.columns]:
        raise one_of("scorer", lacking[0], available)
    if not scorers:
        raise MitigateError("measure_harms: the statements have no labels; take them from label_statements")
    columns = {name: of for name, of in wordings(scorers).items() if name in statements.columns}
    words = list_of(targets) if target_list is None else target_list
    tables = Measurement(targets, columns, words, empty_targets=empty_targets).tables(tally(statements, columns))
    return Results(harm_results(tables, columns, words.clusters, intervals))


# The measures

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


variance = partial(harm, unit="%²", better="down")


@variance(
    "neutral_variance", "variance of neutral by {scorer}", source=MITIGATED, paper=VARIANCES, headline="disparity"
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


@variance("D_O-", "disparity in prejudice by {scorer}", source=EQUATION + "4")
def disparity_in_prejudice(targets: pl.DataFrame) -> Estimate:
    """The variance over targets of the percentage labelled prejudice. 0: the same for all targets."""
    return variance_over_targets(targets, "prejudice")


@variance("D_O+", "disparity in favouritism by {scorer}", source=EQUATION + "4")
def disparity_in_favouritism(targets: pl.DataFrame) -> Estimate:
    """The variance over targets of the percentage labelled favouritism. 0: the same for all targets."""
    return variance_over_targets(targets, "favouritism")


@harm("polarised", "polarised by {scorer}", better="down", source=AUDITED, headline="harm")
def polarised(targets: pl.DataFrame) -> Estimate:
    """The percentage of all statements that are not neutral, each counted for each target it is about. 0: none is."""
    weights, values = targets.select("statements", POLARISED.fill_null(0.0)).to_numpy().T
    total = int(weights.sum())
    return Estimate(float(weights @ values / total) if total else None, n=total)


@harm("polarised_mean", "polarised by {scorer}, mean over targets", better="down", source=AUDITED)
def polarised_mean(targets: pl.DataFrame) -> Estimate:
    """For each target, the percentage of its statements that are not neutral; then the mean over targets. 0: none is.
    Without empty targets it is 100 less the neutral mean, which has the interval."""
    return mean_over_targets(targets, POLARISED)._replace(interval=None)


@harm("largest_O-", "largest O− of a target by {scorer}", better="down", source=AUDITED)
def largest_prejudice(targets: pl.DataFrame) -> float | None:
    """The percentage labelled prejudice of the target where it is largest. 0: no target has any."""
    return targets.select(pl.max("prejudice")).item()


@harm("largest_O+", "largest O+ of a target by {scorer}", better="down", source=AUDITED)
def largest_favouritism(targets: pl.DataFrame) -> float | None:
    """The percentage labelled favouritism of the target where it is largest. 0: no target has any."""
    return targets.select(pl.max("favouritism")).item()


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
    most = max([1, *targets["statements"].to_list()])  # as percentages, which intervals of variances are made for
    scaled = variance_over_targets(targets, 100 * pl.col("statements") / most, most / 100)
    values = targets["statements"].to_numpy()
    return scaled if scaled.value is None else scaled._replace(value=float(values.var()) if np.ptp(values) else 0.0)


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


number("rows", "rows", "The number of rows of the resource, or of texts.", headline="size")
number("rows_about_a_target", "rows about a target", "The number of rows of the resource that are about a target.")
number("distinct", "distinct texts", "The number of distinct texts after demographic words are masked.")
