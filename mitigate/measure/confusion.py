"""Figures of two labellings of the same items, with intervals: items about one word, and items of one text, are drawn
together.

Everything is a function of a confusion matrix, (..., 3, 3): the number of items with the first labelling's class (rows)
and the second's (columns), both in the order of agreement.CLASSES. Resampling clusters only adds such matrices, so one
set of draws gives the intervals of all figures. They are percentile intervals. Where items are clustered in two ways
that cross, as by word and by text, the variance is that of the one way plus that of the other less that of both
together (Cameron, Gelbach and Miller 2011), and the interval of the way that varies more is widened to it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mitigate.measure.agreement import CLASSES, ratio
from mitigate.measure.base import bounds
from mitigate.measure.intervals import Bootstrap, resampled_sums
from mitigate.triples import NEUTRAL

Figure = Callable[[np.ndarray], np.ndarray]
"""A function from sums over clusters, (..., sums), to a figure, (...,); NaN where it has no value."""

NEUTRAL_AT = list(CLASSES).index(NEUTRAL)


def confusion(truth: np.ndarray, predicted: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Each cluster's confusion matrix, (clusters, 9), its rows one after another.

    truth, predicted: labels -1, 0, 1, (items,); clusters: a number for each item, from 0 without gaps."""
    classes = np.array(list(CLASSES))
    cell = 3 * np.searchsorted(classes, truth) + np.searchsorted(classes, predicted)
    return np.bincount(9 * clusters + cell, minlength=9 * (clusters.max() + 1)).reshape(-1, 9).astype(float)


def with_intervals(
    sums: np.ndarray, figures: Mapping[str, Figure], bootstrap: Bootstrap, crossed: Sequence[np.ndarray] = ()
) -> dict[str, float | None]:
    """Figures of the sums of all clusters, (clusters, sums), by name, with NAME_low and NAME_high; None where a figure
    has no value, and for the bounds where fewer than two clusters, or no resample, give one.

    crossed: where the rows are single items, the numbers of their clusters in two ways, (items,) each."""
    total = sums.sum(axis=0)
    ways = [sums]
    if crossed:
        first, second = crossed
        both = np.unique(first * (second.max() + 1) + second, return_inverse=True)[1]  # the clusters of both ways
        ways = [np.zeros((way.max() + 1, sums.shape[1])) for way in (first, second, both)]
        for added, way in zip(ways, (first, second, both), strict=True):
            np.add.at(added, way, sums)
    in_resamples = [resampled_sums(way, bootstrap) for way in ways if len(way) > 1]
    found: dict[str, float | None] = {}
    for name, figure in figures.items():
        value, values = figure(total), [figure(way) for way in in_resamples]
        is_known = len(values) == len(ways)  # a single cluster leaves nothing to resample
        ends = _ends(float(value), [of[~np.isnan(of)] for of in values], bootstrap.level) if is_known else [np.nan] * 2
        named = zip((name, *bounds(name)), (value, *ends), strict=True)
        found |= {key: None if np.isnan(one) else float(one) for key, one in named}
    return found


def _ends(value: float, ways: Sequence[np.ndarray], level: float) -> np.ndarray:
    """The bounds, from a figure's values in the resamples of one way, or of two and of both together."""
    if not all(len(values) for values in ways):
        return np.array([np.nan, np.nan])
    variances = [values.var() for values in ways]
    most = int(np.argmax(variances[:2]))
    ends = np.quantile(ways[most], [(1 - level) / 2, (1 + level) / 2])
    if len(ways) == 1 or not variances[most]:
        return ends
    first, second, both = variances
    wider = max(1.0, (first + second - both) / variances[most]) ** 0.5
    return np.clip(value + wider * (ends - value), min(0.0, ways[most].min()), 1.0)  # shares from 0, kappas from below


def kappa(table: np.ndarray) -> np.ndarray:
    """Cohen's kappa (1960); NaN where only one class occurs."""
    cells = _cells(table)
    total = cells.sum(axis=(-2, -1))
    observed = np.trace(cells, axis1=-2, axis2=-1) / total
    expected = (cells.sum(axis=-1) * cells.sum(axis=-2)).sum(axis=-1) / total**2
    return ratio(observed - expected, 1 - expected)


def macro_f1(table: np.ndarray) -> np.ndarray:
    """The mean over the classes that occur of 2 * both / (rows + columns)."""
    cells = _cells(table)
    both, either = np.diagonal(cells, axis1=-2, axis2=-1), cells.sum(axis=-1) + cells.sum(axis=-2)
    f1 = np.where(either > 0, both / np.maximum(either, 1) * 2, 0.0)
    return f1.sum(axis=-1) / (either > 0).sum(axis=-1)


def polarised(table: np.ndarray) -> np.ndarray:
    """The share of items that the second labelling does not call neutral."""
    cells = _cells(table)
    return 1 - cells[..., NEUTRAL_AT].sum(axis=-1) / cells.sum(axis=(-2, -1))


def truly_polarised(table: np.ndarray) -> np.ndarray:
    """The share of items that the first labelling does not call neutral."""
    return polarised(np.swapaxes(_cells(table), -1, -2).reshape(*table.shape))


def sensitivity(table: np.ndarray) -> np.ndarray:
    """Recall: the share that the second labelling calls polarised, among items that the first calls polarised."""
    cells = _cells(table)
    positives = np.delete(cells, NEUTRAL_AT, axis=-2).sum(axis=-2)  # by column
    return ratio(positives.sum(axis=-1) - positives[..., NEUTRAL_AT], positives.sum(axis=-1))


def specificity(table: np.ndarray) -> np.ndarray:
    """The share that the second labelling calls neutral, among items that the first calls neutral."""
    negatives = _cells(table)[..., NEUTRAL_AT, :]
    return ratio(negatives[..., NEUTRAL_AT], negatives.sum(axis=-1))


def false_alarms(table: np.ndarray) -> np.ndarray:
    """The share that the second labelling calls polarised, among items that the first calls neutral."""
    return 1 - specificity(table)


def precision(table: np.ndarray) -> np.ndarray:
    """The share that the first labelling calls polarised, among items that the second calls polarised."""
    return sensitivity(np.swapaxes(_cells(table), -1, -2).reshape(*table.shape))


def left_polarised(table: np.ndarray) -> np.ndarray:
    """The share that the first labelling calls polarised, among items that the second calls neutral, which a filter by
    the second labelling would keep."""
    left = _cells(table)[..., NEUTRAL_AT]
    return 1 - ratio(left[..., NEUTRAL_AT], left.sum(axis=-1))


def _cells(table: np.ndarray) -> np.ndarray:
    """The matrices (..., 9) as (..., 3, 3)."""
    return table.reshape(*table.shape[:-1], 3, 3)
