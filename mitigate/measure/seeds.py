"""Differences between two policies, from several models of each that are trained with different seeds and probed about
the same targets.

There are two analyses. With targets drawn, the interval includes the variation between trainings and between words: the
result for other words and other seeds. With targets fixed it includes the variation between trainings only: the result
for other seeds and the same words. A category of few words says little about others, and has the second only.

Seeds and words are crossed: all models are probed about the same words. Each is left out in turn (the jackknife), and
the two errors are squared and added, as in the cluster-robust variance of two ways of clustering (Cameron, Gelbach and
Miller 2011) without the correction that makes it smaller."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure import comparison
from mitigate.measure.base import Figure as Named
from mitigate.measure.comparison import (
    BOTH,
    COMPARED,
    FIXED,
    NO_VARIANCE,
    SEEDS,
    TARGETS,
    Change,
    How,
    in_range,
    neutral_side_by_side,
    row_of,
    together,
)
from mitigate.measure.intervals import (
    FEW_TARGETS,
    Figure,
    cluster_numbers,
    cluster_sums,
    jackknife,
    mean_of,
    variance_of,
    without_each,
)
from mitigate.measure.results import by_category

FEWEST_SEEDS = 3
"""The fewest seeds of a side for an interval over seeds."""


class Changes(NamedTuple):
    """The change by both analyses."""

    drawn: Change
    fixed: Change


def neutral_changes(
    baselines: Sequence[pl.DataFrame],
    runs: Sequence[pl.DataFrame],
    scorer: str,
    clusters: Mapping[str, str],
    template: str = "paper",
) -> pl.DataFrame:
    """A row of COMPARED for each neutral mean and variance, overall and per category, paired by target. baselines and
    runs are tables of harms.per_target, one for each seed; of several, means over seeds are compared.

    A single one of each is compared as two models: nothing is tested about policies, and a category of few words has no
    interval. Raises MitigateError for one side with several seeds and another with one, and where no target has
    statements in all."""
    several = min(len(baselines), len(runs)) > 1
    if not several and max(len(baselines), len(runs)) > 1:
        raise MitigateError(
            f"{len(baselines)} seeds of the baseline and {len(runs)} of the other policy; comparing policies takes at "
            "least 2 seeds of each, and comparing two models a single one of each"
        )
    compare = _of_policies if several else _of_models
    rows = []
    table = neutral_side_by_side([*baselines, *runs])
    for (by, category), condition in by_category(table).items():
        part = table.filter(condition)
        values, numbers = part.select(pl.col("^run_.*$")).to_numpy(), cluster_numbers(part, clusters)
        few = numbers.max() + 1 < FEW_TARGETS
        found = compare(values[:, : len(baselines)], values[:, len(baselines) :], numbers)
        for name, change in zip(("neutral_mean", "neutral_variance"), found, strict=True):
            key = Named(name, scorer, template, by, category).key
            row = row_of(key, part.height, change.fixed if few else change.drawn)
            drawn = by_seeds(change, SEEDS if few else BOTH) if several else {"p": None, "drawn": TARGETS}
            rows.append(in_range(row | drawn, "%" if name == "neutral_mean" else ""))
    return pl.DataFrame(rows, schema=COMPARED)


def _of_policies(before: np.ndarray, after: np.ndarray, clusters: np.ndarray) -> list[Changes]:
    """The changes of the mean and of the variance, of means over seeds, from values (targets, seeds)."""
    first, second = (cluster_sums(side, clusters, powers=(0, 1, 2)) for side in (before, after))
    variance = Changes(NO_VARIANCE, NO_VARIANCE)
    if len(before) > 1:
        variance = changes(first, second, variance_of, "ratio")
    return [changes(first, second, mean_of), variance]


def _of_models(before: np.ndarray, after: np.ndarray, clusters: np.ndarray) -> list[Changes]:
    """The same of two models; with targets fixed there is no error."""
    found = [change(before, after, clusters) for change in (comparison.mean_change, comparison.variance_change)]
    return [Changes(one, replace(one, error=math.nan)) for one in found]


def by_seeds(found: Changes, drawn: str) -> dict[str, float | str | None]:
    """The columns of STATISTICS that CHANGE does not have."""
    fixed = found.fixed.row()
    return {"drawn": drawn} | {f"fixed_{name}": fixed[name] for name in FIXED}


def changes(before: np.ndarray, after: np.ndarray, figure: Figure, how: How = "difference") -> Changes:
    """The changes of a figure's mean over seeds, from the sums of two policies over the targets of each word, (sums,
    words, seeds) each. For a ratio both errors are those of the logarithm of the ratio of means over seeds."""
    of_first, of_second = (figure(side.sum(axis=1)) for side in (before, after))
    first, second = float(of_first.mean()), float(of_second.mean())
    training = of_training(of_first, of_second, how)
    fixed = Change(first, second, how, *training)
    if before.shape[1] < 2:
        return Changes(Change(first, second, how), fixed)
    without = [_scaled(without_each(side, figure).mean(axis=1), how) for side in (before, after)]
    with np.errstate(invalid="ignore"):  # both may be without variance
        words = jackknife((without[1] - without[0])[:, None])
    parts = [training, (words.size.item(), words.degrees.item())]
    return Changes(Change(first, second, how, *together(parts)), fixed)


def of_training(baseline: np.ndarray, values: np.ndarray, how: How = "difference") -> tuple[float, float]:
    """The error of training and its degrees of freedom, for the change of a mean over seeds, from a figure of each
    seed: Welch's, with the jackknife over seeds in place of the variance. NaN where either side has fewer than
    FEWEST_SEEDS, whose spread says next to nothing."""
    if min(len(baseline), len(values)) < FEWEST_SEEDS:
        return math.nan, math.inf
    parts, sizes = [], [len(baseline), len(values)]
    for side in (baseline, values):
        without = _scaled((side.sum() - side) / (len(side) - 1), how)
        parts.append(float(jackknife(without[:, None]).size.item()) ** 2)
    return math.sqrt(sum(parts)), _satterthwaite(parts, sizes)


def of_seeds(baseline: Sequence[float], values: Sequence[float]) -> Change:
    """The change of the mean over seeds of a figure with one value for each seed; without an error where either side
    has a single seed. Raises MitigateError for a side without seeds."""
    if not baseline or not values:
        raise MitigateError(f"{len(baseline)} and {len(values)} seeds; give at least one for each side")
    first, second = np.array(baseline, dtype=float), np.array(values, dtype=float)
    return Change(float(first.mean()), float(second.mean()), "difference", *of_training(first, second))


def _scaled(values: np.ndarray, how: How) -> np.ndarray:
    """The values on the scale of the error."""
    if how == "difference":
        return values
    with np.errstate(divide="ignore"):
        return np.log(values)


def _satterthwaite(parts: Sequence[float], sizes: Sequence[int]) -> float:
    """The degrees of freedom of a sum of variances, each estimated from a sample of its own; at most those of all
    samples."""
    most = float(sum(sizes) - len(sizes))
    if not math.isfinite(sum(parts)):
        return most
    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return min(sum(parts) ** 2 / spread, most) if spread > 0 else most


def weighted_difference(baseline: np.ndarray, values: np.ndarray, weights: np.ndarray, clusters: np.ndarray) -> Changes:
    """The changes of weighted means over items, from baseline and values, (items, seeds) each; weights and clusters of
    the items, (items,).

    With two seeds or more on both sides the error includes the variation between trainings, otherwise only that of the
    items; with items fixed there is then no error. Raises MitigateError for one side with several seeds and another
    with one."""
    before, after = (
        np.concatenate([cluster_sums(part, clusters, powers=(1,)) for part in parts])
        for parts in (
            (np.broadcast_to(weights[:, None], side.shape), weights[:, None] * side) for side in (baseline, values)
        )
    )
    if baseline.shape[1] > 1 and values.shape[1] > 1:
        return changes(before, after, mean_of)
    if baseline.shape[1] > 1 or values.shape[1] > 1:
        raise MitigateError("compare one model with one, or at least 2 seeds with at least 2")
    found = comparison.paired(before, after, mean_of)
    return Changes(found, Change(found.baseline, found.value))
