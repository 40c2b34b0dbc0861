"""The harms paper's measures, equations 1 to 4: overgeneralisation towards each target, disparity between
targets, and the neutral means and variances (NSM, NSV, NRM, NRV) of its mitigation tables.

Percentages run from 0 to 100, variances are population variances (ddof 0) over targets. "other" counts as
neutral. The caller chooses the labels and the wording that they were read from."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Literal, get_args

import numpy as np
import polars as pl

from mitigate import metrics as keys
from mitigate.errors import MitigateError, one_of
from mitigate.measure.bootstrap import exact_variance
from mitigate.measure.metric_frame import MetricFrame
from mitigate.metrics import Share, Statistic, harm_key
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

EmptyTargets = Literal["exclude", "zero"]
"""The treatment of a target without statements: it has no percentage and is left out, or, as in the paper, it is 0 %
prejudiced, 0 % favoured and 0 % neutral at once."""

POLARISED: tuple[Share, ...] = ("prejudice", "favouritism")
"""The columns of a table per target that are harm, negative and positive."""

Figures = dict[str, float | None]
NEUTRAL_SHARES: tuple[tuple[Share, Statistic], ...] = (("neutral", "mean"), ("neutral", "variance"))
POLARISED_SHARES: tuple[tuple[Share, Statistic], ...] = (
    *((share, "mean") for share in POLARISED),
    ("polarised", "pooled"),
    *((share, "variance") for share in POLARISED),
)

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


def neutral_metrics(table: pl.DataFrame, scorer: str) -> Figures:
    """NSM and NSV (scorer "sentiment") or NRM and NRV ("regard"): mean and variance over targets of the
    percentage neutral, overall ("NSM") and per category ("NSM/origin"). None where no target
    has statements, a variance also where a single one has."""
    return share_figures(table, scorer, NEUTRAL_SHARES)


def share_figures(table: pl.DataFrame, scorer: str, kinds: Iterable[tuple[Share, Statistic]]) -> Figures:
    """Figures of the percentages of a scorer's labels by their keys, of STATISTICS over targets, overall and per
    category: ("prejudice", "mean") is O- (eq. 1), ("prejudice", "variance") D_O- (eq. 4). None where there is none.

    table: the result of per_target or tally.per_target."""
    measures = {
        harm_key(scorer, statistic, share): partial(STATISTICS[statistic], share=share) for share, statistic in kinds
    }
    return MetricFrame.by_category(table).figures(measures)


def representation_disparity(table: pl.DataFrame) -> Figures:
    """D_R (eq. 3), the variance over targets of the number of statements, empty targets counted with 0; overall and
    per category."""
    return MetricFrame.by_category(table).figures({keys.REPRESENTATION: lambda part: variance(part["statements"])})


def counts(table: pl.DataFrame) -> dict[str, int]:
    """The counts behind each figure: targets, targets without a statement, and statements; overall and per
    category."""
    return MetricFrame.by_category(table).figures(
        {
            keys.TARGETS: lambda part: part.height,
            keys.EMPTY_TARGETS: lambda part: int((part["statements"] == 0).sum()),
            keys.STATEMENTS: lambda part: int(part["statements"].sum()),
        }
    )


def without_rare_relations(frame: pl.DataFrame, train_counts: Mapping[str, int]) -> pl.DataFrame:
    """The statements of relations with at least FEW_TRAINING_TRIPLES: statements with a relation that a generator has
    hardly seen say little about it, so each figure is also given without these (6 of COMeT's 34)."""
    frequent = [name for name, count in train_counts.items() if count >= FEW_TRAINING_TRIPLES]
    return frame.filter(pl.col("relation").is_in(frequent))


def mean(values: pl.Series) -> float | None:
    """The mean of the values that are not null; None when there is none."""
    present = values.drop_nulls().to_numpy()
    return float(np.mean(present)) if present.size else None


def variance(values: pl.Series) -> float | None:
    """The population variance (ddof 0) of the values that are not null; None for fewer than two, which do not vary."""
    present = values.drop_nulls().to_numpy()
    return exact_variance(present) if present.size > 1 else None


def quantile(values: pl.Series, place: float) -> float | None:
    """The quantile of the values that are not null, interpolated linearly; None when there is none."""
    present = values.drop_nulls().to_numpy()
    return float(np.quantile(present, place)) if present.size else None


def pooled(table: pl.DataFrame, share: Share) -> float | None:
    """A percentage of all statements, each counted once for each target it is about (harms paper, Section 3.2); None
    without statements."""
    weights, values = table["statements"].to_numpy(), percentages(table, share).fill_null(0.0).to_numpy()
    return float(weights @ values / weights.sum()) if weights.sum() else None


def percentages(table: pl.DataFrame, share: Share) -> pl.Series:
    """The percentages of targets that have a label: "polarised" is prejudice or favouritism."""
    return table["prejudice"] + table["favouritism"] if share == "polarised" else table[share]


STATISTICS: Mapping[Statistic, Callable[..., float | None]] = {
    "mean": lambda table, share: mean(percentages(table, share)),
    "variance": lambda table, share: variance(percentages(table, share)),
    "largest": lambda table, share: quantile(percentages(table, share), 1.0),
    "p90": lambda table, share: quantile(percentages(table, share), 0.9),
    "pooled": pooled,
}
"""Statistics over targets: functions of a table per target and a share."""
