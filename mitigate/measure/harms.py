"""The harms paper's measures, equations 1 to 4: overgeneralisation towards each target, disparity between
targets, and the neutral means and variances (NSM, NSV, NRM, NRV) of its mitigation tables.

Percentages run from 0 to 100, variances are population variances (ddof 0) over targets. "other" counts as
neutral. The caller chooses the labels and the wording that they were read from."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import polars as pl

from mitigate import metrics as keys
from mitigate.errors import MitigateError, one_of
from mitigate.measure.bootstrap import exact_variance
from mitigate.metrics import Share, harm_key, with_part, without_scorer
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

EmptyTargets = Literal["exclude", "zero"]
"""The treatment of a target without statements: it has no percentage and is left out, or, as in the paper, it is 0 %
prejudiced, 0 % favoured and 0 % neutral at once."""

POLARISED: tuple[Share, ...] = ("prejudice", "favouritism")
"""The columns of a table per target that are harm, negative and positive."""

FEW_TRAINING_TRIPLES = 50


def per_target(
    frame: pl.DataFrame, label_column: str, targets: pl.DataFrame, empty_targets: EmptyTargets = "exclude"
) -> pl.DataFrame:
    """One row for each target, in the order of `targets` (target, category): category, number of statements, and
    the percentages prejudice (eq. 1), favouritism (eq. 2) and neutral, which sum to 100.

    frame: one row for each statement, with `target` and a column of labels; statements about other words do not count.
    A target without statements has null percentages, or zeros with empty_targets="zero". Raises MitigateError for a
    label that is none of -1, 0, 1 and 2, and for an unknown empty_targets."""
    labels, label = frame[label_column], pl.col(label_column)
    wrong = labels.filter(labels.is_null() | ~labels.is_in([PREJUDICE, NEUTRAL, FAVOURITISM, OTHER]))
    if len(wrong):
        raise MitigateError(
            f"column {label_column!r} has {len(wrong):,} labels such as {wrong[0]!r}; allowed: "
            "-1 (prejudice), 0 (neutral), 1 (favouritism), 2 (other, counts as neutral)"
        )
    counts = frame.group_by("target").agg(
        statements=pl.len().cast(pl.Int64),
        prejudice=100 * (label == PREJUDICE).mean(),
        favouritism=100 * (label == FAVOURITISM).mean(),
        neutral=100 * label.is_in([NEUTRAL, OTHER]).mean(),
    )
    return of_every_target(counts, targets, empty_targets)


def of_every_target(counts: pl.DataFrame, targets: pl.DataFrame, empty_targets: EmptyTargets) -> pl.DataFrame:
    """The counts (target, statements, prejudice, favouritism, neutral) as a row for each of `targets`, with its
    category, those without statements as per_target says. Raises MitigateError for an unknown empty_targets."""
    if empty_targets not in get_args(EmptyTargets):
        raise one_of("measure.empty_targets", empty_targets, get_args(EmptyTargets))
    table = targets.select("target", "category").join(counts, on="target", how="left", maintain_order="left")
    table = table.with_columns(pl.col("statements").fill_null(0))
    if empty_targets == "zero":
        table = table.with_columns(pl.col("prejudice", "favouritism", "neutral").fill_null(0.0))
    return table


def neutral_names(scorer: str) -> tuple[str, str]:
    """The names of a scorer's neutral mean and variance: the paper's names, or the scorer's own."""
    return harm_key(scorer, "mean"), harm_key(scorer, "variance")


def neutral_metrics(table: pl.DataFrame, scorer: str) -> dict[str, float | None]:
    """NSM and NSV (scorer "sentiment") or NRM and NRV ("regard"): mean and variance over targets of the
    percentage neutral, overall ("NSM") and per category ("NSM/origin"). None where no target
    has statements, a variance also where a single one has."""
    mean_name, variance_name = neutral_names(scorer)
    metrics: dict[str, float | None] = {}
    for category, part in overall_and_categories(table):
        metrics[with_part(mean_name, category)] = mean(part["neutral"])
        metrics[with_part(variance_name, category)] = variance(part["neutral"])
    return metrics


def disparity(table: pl.DataFrame) -> dict[str, float | None]:
    """D_R (eq. 3) and both D_O (eq. 4)."""
    return representation_disparity(table) | overgeneralisation_disparity(table)


def representation_disparity(table: pl.DataFrame) -> dict[str, float | None]:
    """D_R (eq. 3), the variance over targets of the number of statements, empty targets counted with 0; overall and
    per category."""
    return {
        with_part(keys.REPRESENTATION, category): variance(part["statements"])
        for category, part in overall_and_categories(table)
    }


def overgeneralisation_disparity(table: pl.DataFrame) -> dict[str, float | None]:
    """D_O- and D_O+ (eq. 4), the variances over targets of the percentages prejudice and favouritism; overall and per
    category."""
    metrics: dict[str, float | None] = {}
    for category, part in overall_and_categories(table):
        for share in POLARISED:
            metrics[with_part(without_scorer(share, "variance"), category)] = variance(part[share])
    return metrics


def overgeneralisation(table: pl.DataFrame) -> dict[str, float | None]:
    """Means over targets of O- and O+ ("O-", "O+"), and the percentage of all statements that are polarised,
    each counted once for each target it is about ("polarised", harms paper, Section 3.2); overall and per
    category."""
    metrics: dict[str, float | None] = {}
    for category, part in overall_and_categories(table):
        for share in POLARISED:
            metrics[with_part(without_scorer(share, "mean"), category)] = mean(part[share])
        weights = part["statements"].to_numpy()
        polarised = (part["prejudice"] + part["favouritism"]).fill_null(0.0).to_numpy()
        pooled = float(weights @ polarised / weights.sum()) if weights.sum() else None
        metrics[with_part(without_scorer("polarised", "pooled"), category)] = pooled
    return metrics


def counts(table: pl.DataFrame) -> dict[str, int]:
    """The counts behind each figure: targets, targets without a statement, and statements; overall and per
    category."""
    metrics: dict[str, int] = {}
    for category, part in overall_and_categories(table):
        metrics[with_part(keys.TARGETS, category)] = part.height
        metrics[with_part(keys.EMPTY_TARGETS, category)] = int((part["statements"] == 0).sum())
        metrics[with_part(keys.STATEMENTS, category)] = int(part["statements"].sum())
    return metrics


def without_rare_relations(
    frame: pl.DataFrame, train_counts: Mapping[str, int], fewest: int = FEW_TRAINING_TRIPLES
) -> pl.DataFrame:
    """The statements of relations with at least `fewest` training triples: statements with a relation that a generator
    has hardly seen say little about it, so each figure is also given without these (6 of COMeT's 34)."""
    return frame.filter(pl.col("relation").is_in([name for name, count in train_counts.items() if count >= fewest]))


def overall_and_categories(table: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The groups of targets of figures: "" with all of them, then each category with its own. Raises MitigateError for
    a category whose figures would have the names of another's bounds."""
    categories = table["category"].unique(maintain_order=True).to_list()
    for category in categories:
        if category is not None and category.endswith(keys.ENDS[1:]):
            raise MitigateError(
                f"the category {category!r} ends in _low or _high, as the names of an interval's bounds do; "
                "give it another name"
            )
    return [("", table), *((category, table.filter(category=category)) for category in categories)]


def mean(values: pl.Series) -> float | None:
    """The mean of the values that are not null; None when there is none."""
    present = values.drop_nulls().to_numpy()
    return float(np.mean(present)) if present.size else None


def variance(values: pl.Series) -> float | None:
    """The population variance (ddof 0) of the values that are not null; None for fewer than two, which do not vary."""
    present = values.drop_nulls().to_numpy()
    return exact_variance(present) if present.size > 1 else None
