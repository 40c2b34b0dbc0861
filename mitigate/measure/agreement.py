"""Agreement: of raters with each other (Fleiss' kappa), and of a scorer with raters (Cohen's kappa, accuracy,
precision, recall and F1 of each class; the harms paper's Tables 2 and 3; the area under the receiver operating
characteristic (ROC) curve of scores of valid items).

Kappa is 1 for full agreement and 0 for agreement by chance. It has no value where only one class occurs: then chance
agrees fully too. An area is 0.5 by chance; unlike kappa it does not depend on thresholds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.files import frame_of
from mitigate.load.ratings import RESOURCES
from mitigate.measure.base import bounds
from mitigate.measure.intervals import Bootstrap, resampled_sums
from mitigate.score.labels import label_column, text_for
from mitigate.triples import (
    FAVOURITISM,
    NEUTRAL,
    OTHER,
    PREJUDICE,
    ROLES,
    LabelCache,
    Scorer,
    fold_other,
    majority_labels,
)

CLASSES = {PREJUDICE: "prejudice", NEUTRAL: "neutral", FAVOURITISM: "favouritism"}
"""Label -> its name in the keys of figures."""


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotient; NaN where the lower number is 0."""
    return np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below) > 0)


# Raters among themselves


def fleiss_sums(votes: pl.Series, classes: Sequence[int] = tuple(CLASSES)) -> np.ndarray:
    """The terms of Fleiss' kappa (1971) of each item's list of ratings, (items, 2 + classes): the share of agreeing
    pairs of ratings, whether it has at least two, and the ratings of each class. Items may have different numbers of
    ratings: chance is taken from the shares of all ratings, agreement is averaged over items with at least two."""
    counts = np.column_stack([votes.list.count_matches(label).to_numpy() for label in classes]).astype(int)
    raters = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1)
    return np.column_stack([agreeing, raters > 1, counts]).astype(float)


def fleiss_of(sums: np.ndarray) -> np.ndarray:
    """Fleiss' kappa of sums of fleiss_sums, (..., 2 + classes); NaN where it has no value."""
    agreeing, items, ratings = sums[..., 0], sums[..., 1], sums[..., 2:]
    expected = ((ratings / ratings.sum(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((items > 0) & (expected < 1), (agreeing / items - expected) / (1 - expected), np.nan)


# Two labellings: figures of a confusion matrix, (..., 9), the number of items with the first labelling's class (rows)
# and the second's (columns), in the order of CLASSES. Resampling clusters only adds such matrices, so that one set of
# draws gives the intervals of all figures.

Statistic = Callable[[np.ndarray], np.ndarray]
"""A function from sums over clusters, (..., sums), to a figure, (...,); NaN where it has no value."""
AT_NEUTRAL = list(CLASSES).index(NEUTRAL)


def confusion(truth: np.ndarray, predicted: np.ndarray, clusters: np.ndarray | None = None) -> np.ndarray:
    """Each cluster's confusion matrix, (clusters, 9), its rows one after another.

    truth, predicted: labels -1, 0, 1, (items,); clusters: numbers from 0 without gaps, (items,); None: one an item."""
    clusters = np.arange(len(truth)) if clusters is None else clusters
    cell = 3 * np.searchsorted(list(CLASSES), truth) + np.searchsorted(list(CLASSES), predicted)
    return np.bincount(9 * clusters + cell, minlength=9 * (clusters.max() + 1)).reshape(-1, 9).astype(float)


def _cells(table: np.ndarray) -> np.ndarray:
    return table[..., :9].reshape(*table.shape[:-1], 3, 3)


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
    return 1 - cells[..., AT_NEUTRAL].sum(axis=-1) / cells.sum(axis=(-2, -1))


def sensitivity(table: np.ndarray) -> np.ndarray:
    """Recall: the share that the second labelling calls polarised, among items that the first calls polarised."""
    positives = np.delete(_cells(table), AT_NEUTRAL, axis=-2).sum(axis=-2)  # by column
    return ratio(positives.sum(axis=-1) - positives[..., AT_NEUTRAL], positives.sum(axis=-1))


def specificity(table: np.ndarray) -> np.ndarray:
    """The share that the second labelling calls neutral, among items that the first calls neutral."""
    negatives = _cells(table)[..., AT_NEUTRAL, :]
    return ratio(negatives[..., AT_NEUTRAL], negatives.sum(axis=-1))


def classification(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float | None]:
    """Agreement of `predicted` with `truth`: accuracy, balanced_accuracy (mean recall), macro_f1, kappa, and
    NAME/precision, NAME/recall, NAME/f1 and NAME/count (in truth) for each class, all from 0 to 1.

    truth, predicted: labels, (items,), of one item at least. Precision is 0 for a class never predicted, recall 0 for
    one that never occurs. The means run over the classes that occur in truth or prediction, balanced accuracy over
    those that occur in truth. Accuracy alone says little where most items are neutral: compare it with a scorer that
    always returns neutral."""
    table = confusion(truth, predicted).sum(axis=0)
    cells = table.reshape(3, 3)
    true, assigned, both = cells.sum(axis=1), cells.sum(axis=0), cells.diagonal()
    scores: dict[str, float | None] = {"accuracy": float(both.sum() / cells.sum())}
    for place, name in enumerate(CLASSES.values()):
        shares = {"precision": (assigned, 1), "recall": (true, 1), "f1": (true + assigned, 2)}
        for figure, (below, times) in shares.items():
            scores[f"{name}/{figure}"] = float(times * both[place] / below[place]) if below[place] else 0.0
        scores[f"{name}/count"] = int(true[place])
    agreed = float(kappa(table))
    scores["balanced_accuracy"] = float(np.mean(both[true > 0] / true[true > 0]))
    return scores | {"macro_f1": float(macro_f1(table)), "kappa": None if np.isnan(agreed) else agreed}


def with_intervals(
    sums: np.ndarray, figures: Mapping[str, Statistic], bootstrap: Bootstrap, crossed: Sequence[np.ndarray] = ()
) -> dict[str, float | None]:
    """Figures of the sums of all clusters, (clusters, sums), by name, with NAME_low and NAME_high, of percentiles; None
    where a figure has no value, and for the bounds where fewer than two clusters, or no resample, give one.

    crossed: where the rows are single items that are clustered in two ways that cross, as by word and by text, the
    numbers of their clusters, (items,) each. The variance is that of the one way plus that of the other less that of
    both together (Cameron, Gelbach and Miller 2011), and the interval of the way that varies more is widened to it."""
    total, ways = sums.sum(axis=0), [sums]
    if crossed:
        first, second = crossed
        both = np.unique(first * (second.max() + 1) + second, return_inverse=True)[1]  # the clusters of both ways
        ways = [np.zeros((way.max() + 1, sums.shape[1])) for way in (first, second, both)]
        for added, way in zip(ways, (first, second, both), strict=True):
            np.add.at(added, way, sums)
    in_resamples = [resampled_sums(way, bootstrap) for way in ways if len(way) > 1]
    with_bounds: dict[str, float | None] = {}
    for name, figure in figures.items():
        value, values = figure(total), [figure(way) for way in in_resamples]
        is_known = len(values) == len(ways)  # a single cluster leaves nothing to resample
        ends = _ends(float(value), [of[~np.isnan(of)] for of in values], bootstrap.level) if is_known else [np.nan] * 2
        named = zip((name, *bounds(name)), (value, *ends), strict=True)
        with_bounds |= {key: None if np.isnan(one) else float(one) for key, one in named}
    return with_bounds


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


# Areas under ROC curves


def auc(scores: np.ndarray, valid: np.ndarray) -> float | None:
    """The area under the ROC curve: the probability that a valid item has a higher score than an invalid one, ties
    counted half. scores (n,), valid (n,) bool. .5 is chance; None where all are valid, or none is."""
    valid = np.asarray(valid, dtype=bool)
    above, below = int(valid.sum()), int((~valid).sum())
    if not above or not below:
        return None
    ranks = pl.Series(scores).rank().to_numpy()
    return float((ranks[valid].sum() - above * (above + 1) / 2) / (above * below))


def auc_of_a_rater(votes: np.ndarray) -> float | None:
    """The area under the ROC curve of one rater's vote, on items where the two others agree; mean over the three. A
    score has more values than a vote and may exceed this area. votes: (n, 3) bool. None as in auc."""
    areas = []
    for rater in range(3):
        others = np.delete(votes, rater, axis=1)
        agreed = others[:, 0] == others[:, 1]
        areas.append(auc(votes[agreed, rater], others[agreed, 0]))
    return None if None in areas else float(np.mean(np.array(areas, dtype=float)))


# Scorers against raters

SCORERS = (*ROLES, "keyword")
ALWAYS_NEUTRAL, PEOPLE = "always_neutral", "people"
PER_RATING, BY_MAJORITY = "rating", "majority"
LABEL_FIGURES = [f"{name}/{one}" for name in ("favouritism", "prejudice") for one in ("recall", "precision", "f1")]
FIGURES = {  # measure -> its heading
    **{"accuracy": "acc", "balanced_accuracy": "bal.acc", "macro_f1": "macroF1", "kappa": "kappa"},
    **{name: f"{name[:3]} {name.partition('/')[2][0].upper()}" for name in LABEL_FIGURES},
}
ABSTAINED = "abstained"  # a scorer's share of labels "other"
WITH_INTERVALS: dict[str, Statistic] = {
    **{"kappa": kappa, "macro_f1": macro_f1, "polarised": polarised},
    **{"sensitivity": sensitivity, "specificity": specificity},
    ABSTAINED: lambda sums: sums[..., 9] / sums[..., :9].sum(axis=-1),
}
"""Figures of a scorer's labels against the majority of raters, from sums of confusion and abstentions, (..., 10)."""


def label_rated(crowd: pl.DataFrame, scorers: Sequence[Scorer], *, cache: LabelCache) -> pl.DataFrame:
    """Label rated sentences (resource, sentence, votes, masked): a column of labels for each scorer."""
    found = [pl.Series(scorer.name, label_column(text_for(scorer, crowd), scorer, cache).label) for scorer in scorers]
    return crowd.with_columns(*found)


def measure_agreement(
    labels: pl.DataFrame, scorers: Sequence[str] = SCORERS, intervals: Bootstrap | None = None
) -> dict[str, Any]:
    """{resource}/{scorer}/{rating|majority}/{figure}: against every single rating, and against the majority of a
    sentence's raters, also of a scorer that labels everything neutral; "other" counts as neutral.

    intervals: bounds of WITH_INTERVALS and ABSTAINED over the columns cluster and masked (statements that differ
    by their target alone are one text, and get one label), and {resource}/people/{polarised|fleiss}: the share of
    sentences that most raters find polarised, and Fleiss' kappa of the raters."""
    found: dict[str, Any] = {}
    labels = labels.with_columns(pl.lit(NEUTRAL, dtype=pl.Int8).alias(ALWAYS_NEUTRAL))
    for (resource,), rows in labels.group_by("resource", maintain_order=True):
        ratings, sizes = rows["votes"].explode().to_numpy(), rows["votes"].list.len().to_numpy()
        most = majority_labels(rows["votes"])
        for scorer in (*scorers, ALWAYS_NEUTRAL):
            label = fold_other(rows[scorer].to_numpy())
            for against, figures in (
                (PER_RATING, classification(ratings, np.repeat(label, sizes))),
                (BY_MAJORITY, classification(most, label)),
            ):
                found |= {f"{resource}/{scorer}/{against}/{figure}": value for figure, value in figures.items()}
        found |= {f"{resource}/sentences": rows.height, f"{resource}/ratings": len(ratings)}
        if intervals is None:
            continue
        # Words and masked texts are crossed: many words share a text.
        crossed = [np.unique(rows[column].to_list(), return_inverse=True)[1] for column in ("cluster", "masked")]
        of = with_intervals(fleiss_sums(rows["votes"]), {f"{PEOPLE}/fleiss": fleiss_of}, intervals, crossed)
        of |= with_intervals(confusion(most, most), {f"{PEOPLE}/polarised": polarised}, intervals, crossed)
        for scorer in (*scorers, ALWAYS_NEUTRAL):
            given = rows[scorer].to_numpy()
            sums = np.column_stack([confusion(most, fold_other(given)), given == OTHER])
            ways = {f"{scorer}/{BY_MAJORITY}/{name}": one for name, one in WITH_INTERVALS.items()}
            of |= with_intervals(sums, ways, intervals, crossed)
        found |= {f"{resource}/{key}": value for key, value in of.items()}
    return found


def agreement_table(
    metrics: dict[str, Any], resources: Iterable[str] = RESOURCES, scorers: Sequence[str] = SCORERS
) -> pl.DataFrame:
    """A row for each resource, scorer and kind of comparison, with the paper's rows; a column for each figure."""
    stated, rows = frame_of("paper_agreement.csv"), []  # the paper's sentiment is by VADER, its regard by another
    for resource in resources:
        for scorer in (*scorers, ALWAYS_NEUTRAL):
            about = {"resource": resource, "scorer": scorer}
            for against in (PER_RATING, BY_MAJORITY):
                figures = {name: metrics[f"{resource}/{scorer}/{against}/{name}"] for name in FIGURES}
                rows.append({**about, "against": against, **figures})
            if printed := dict(stated.filter(**about).select("measure", "value").iter_rows()):
                rows.append({**about, "against": "the paper", **{name: printed.get(name) for name in FIGURES}})
    return pl.DataFrame(rows, infer_schema_length=None)
