"""Agreement: of raters with each other (Fleiss' and Cohen's kappa, Krippendorff's alpha), and of a scorer with
raters (accuracy, precision, recall and F1 of each class; the harms paper's Tables 2 and 3; the area under the receiver
operating characteristic (ROC) curve of its strengths, and of scores of valid items).

Kappa and alpha are 1 for full agreement and 0 for agreement by chance. They are None where only one class occurs: then
chance agrees fully too. An area is 0.5 by chance; unlike kappa it does not depend on thresholds."""

from collections.abc import Mapping, Sequence

import numpy as np

from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE

CLASSES = {PREJUDICE: "prejudice", NEUTRAL: "neutral", FAVOURITISM: "favouritism"}
"""Label -> its name in the keys of figures."""
LEVELS = 50
"""Levels of strength in resamples: neighbouring strengths are one level where there are more. The figure itself has
them all."""


def vote_counts(items: Sequence[str], labels: np.ndarray, classes: Sequence[int] = tuple(CLASSES)) -> np.ndarray:
    """Number of raters that gave each item each class, (items, classes); items in the order of first occurrence. items:
    the rated item, such as a sentence, of each rating; ratings of one item need not be neighbours."""
    first_seen: dict[str, int] = {}
    rows = np.array([first_seen.setdefault(item, len(first_seen)) for item in items], dtype=int)
    counts = np.zeros((len(first_seen), len(classes)), dtype=int)
    for column, label in enumerate(classes):
        np.add.at(counts[:, column], rows[labels == label], 1)
    return counts


def majority(counts: np.ndarray, tie: int = NEUTRAL) -> np.ndarray:
    """The class that most raters gave each item, (items,). Where two classes lead, `tie`: raters who disagree have not
    found a harm."""
    leading = counts == counts.max(axis=1, keepdims=True)
    return np.where(leading.sum(axis=1) > 1, tie, np.array(list(CLASSES))[counts.argmax(axis=1)])


def fleiss_kappa(counts: np.ndarray) -> float | None:
    """Fleiss (1971), from vote_counts. Items may have different numbers of ratings: chance is taken from the
    shares of all ratings, agreement is averaged over items with at least two."""
    kappa = float(fleiss_of(fleiss_sums(counts, np.zeros(len(counts), dtype=int)).sum(axis=0)))
    return None if np.isnan(kappa) else kappa


def fleiss_sums(counts: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The terms of Fleiss' kappa, summed over the items of each cluster, (clusters, 2 + classes): the shares of
    agreeing pairs of ratings, the number of items with at least two ratings, and the ratings of each class.

    clusters: a number for each item, from 0 without gaps."""
    raters = counts.sum(axis=1)
    several = raters > 1
    agreeing = np.where(several, (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1), 0.0)
    columns = np.column_stack([agreeing, several, counts]).astype(float)
    sums = np.zeros((clusters.max() + 1, columns.shape[1]))
    np.add.at(sums, clusters, columns)
    return sums


def fleiss_of(sums: np.ndarray) -> np.ndarray:
    """Fleiss' kappa of sums of fleiss_sums, (..., 2 + classes); NaN where it has no value."""
    agreeing, items, ratings = sums[..., 0], sums[..., 1], sums[..., 2:]
    expected = ((ratings / ratings.sum(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((items > 0) & (expected < 1), (agreeing / items - expected) / (1 - expected), np.nan)


def krippendorff_alpha(counts: np.ndarray) -> float | None:
    """Krippendorff's alpha for nominal data, from vote_counts; items with a single rating do not count."""
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        return None
    raters, total, by_class = counts.sum(axis=1), counts.sum(), counts.sum(axis=0)
    agreeing = ((counts * (counts - 1)).sum(axis=1) / (raters - 1)).sum() / total
    expected = (by_class * (by_class - 1)).sum() / (total * (total - 1))
    return _beyond_chance(agreeing, expected)


def cohen_kappa(first: np.ndarray, second: np.ndarray) -> float | None:
    """Cohen (1960): agreement of two labellings of the same items, (items,) each."""
    classes = np.union1d(first, second)
    expected = sum((first == label).mean() * (second == label).mean() for label in classes)
    return _beyond_chance((first == second).mean(), expected)


def classification(
    truth: np.ndarray, predicted: np.ndarray, classes: Mapping[int, str] = CLASSES
) -> dict[str, float | None]:
    """Agreement of `predicted` with `truth`: accuracy, balanced_accuracy (mean recall), macro_f1, kappa, and
    NAME/precision, NAME/recall, NAME/f1 and NAME/count (in truth) for each class, all from 0 to 1.

    truth, predicted: labels, (items,), of one item at least. Precision is 0 for a class never predicted, recall 0 for
    one that never occurs. The means run over the classes that occur in truth or prediction, balanced accuracy over
    those that occur in truth. Accuracy alone says little where most items are neutral: compare it with a scorer that
    always returns neutral."""
    scores: dict[str, float | None] = {"accuracy": float((truth == predicted).mean())}
    recalls, f1s = [], []
    for label, name in classes.items():
        num_true, num_predicted = int((truth == label).sum()), int((predicted == label).sum())
        both = int(((truth == label) & (predicted == label)).sum())
        precision, recall = both / num_predicted if num_predicted else 0.0, both / num_true if num_true else 0.0
        f1 = 2 * both / (num_true + num_predicted) if num_true + num_predicted else 0.0
        figures = {"precision": precision, "recall": recall, "f1": f1, "count": num_true}
        scores |= {f"{name}/{figure}": value for figure, value in figures.items()}
        recalls += [recall] if num_true else []
        f1s += [f1] if num_true + num_predicted else []
    return scores | {
        "balanced_accuracy": float(np.mean(recalls)),
        "macro_f1": float(np.mean(f1s)),
        "kappa": cohen_kappa(truth, predicted),
    }


def _beyond_chance(observed: float, expected: float) -> float | None:
    return float((observed - expected) / (1 - expected)) if expected < 1 else None


def level_counts(truth: np.ndarray, strength: np.ndarray, most: int | None = None) -> np.ndarray:
    """One row for each item with a 1 in the column of its class and its level of strength, (items, 3 * levels). most:
    the number of levels, if there are more strengths; None: a level for each strength.

    truth: labels -1, 0, 1, (items,)."""
    levels = np.unique(strength, return_inverse=True)[1]
    number = int(levels.max()) + 1
    if most is not None and number > most:
        levels, number = levels * most // number, most
    counts = np.zeros((len(truth), len(CLASSES) * number))
    counts[np.arange(len(truth)), number * np.searchsorted(list(CLASSES), truth) + levels] = 1
    return counts


def area(counts: np.ndarray) -> np.ndarray:
    """The mean of two areas from sums of level_counts, (..., 3 * levels) -> (...,): of prejudice against all other
    statements by low strengths, and of favouritism against all others by high ones. One alone where the other class
    does not occur, NaN where neither does."""
    by_class = counts.reshape(*counts.shape[:-1], len(CLASSES), -1)
    prejudice, favouritism, all_of = by_class[..., 0, :], by_class[..., -1, :], by_class.sum(axis=-2)
    areas = np.stack([_below(prejudice, all_of - prejudice), _below(all_of - favouritism, favouritism)])
    known = ~np.isnan(areas)
    return ratio(np.nan_to_num(areas).sum(axis=0), known.sum(axis=0))


def _below(lower: np.ndarray, higher: np.ndarray) -> np.ndarray:
    """The share of pairs in which the item of `lower` has the lower level, equal levels counting half."""
    until = np.cumsum(lower, axis=-1) - lower / 2
    return ratio((until * higher).sum(axis=-1), lower.sum(axis=-1) * higher.sum(axis=-1))


def auc(scores: np.ndarray, valid: np.ndarray) -> float | None:
    """The area under the ROC curve: the probability that a valid item has a higher score than an invalid one, ties
    counted half. scores (n,), valid (n,) bool. .5 is chance; None where all are valid, or none is."""
    valid = np.asarray(valid, dtype=bool)
    above, below = int(valid.sum()), int((~valid).sum())
    if not above or not below:
        return None
    from scipy.stats import rankdata  # a second to load, which filters and labels do without

    ranks = rankdata(scores)
    return float((ranks[valid].sum() - above * (above + 1) / 2) / (above * below))


def auc_of_a_rater(votes: np.ndarray) -> float | None:
    """The area under the ROC curve with one rater's vote as the score, on items where the two others agree; mean over
    the three. votes: (n, 3) bool. A vote has two values and a score has many, so that a score may exceed it. None as in
    auc."""
    found = []
    for rater in range(3):
        others = np.delete(votes, rater, axis=1)
        agreed = others[:, 0] == others[:, 1]
        found.append(auc(votes[agreed, rater], others[agreed, 0]))
    return None if None in found else float(np.mean(np.array(found, dtype=float)))


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotient; NaN where the lower number is 0."""
    return np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below) > 0)
