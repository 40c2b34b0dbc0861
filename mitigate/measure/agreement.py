"""Agreement: of raters with each other (Fleiss' and Cohen's kappa, Krippendorff's alpha), and of a scorer with
raters (accuracy, precision, recall and F1 of each class; the harms paper's Tables 2 and 3).

Kappa and alpha are 1 for full agreement and 0 for agreement by chance. They are None where only one class occurs: then
chance agrees fully too."""

from collections.abc import Mapping, Sequence

import numpy as np

from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

CLASSES = {PREJUDICE: "prejudice", NEUTRAL: "neutral", FAVOURITISM: "favouritism"}
"""Label -> its name in the keys of figures."""


def fold_other(labels: np.ndarray) -> np.ndarray:
    """The labels with "other" counted as neutral, as the measures do."""
    return np.where(labels == OTHER, NEUTRAL, labels)


def vote_counts(items: Sequence[str], labels: np.ndarray, classes: Sequence[int] = tuple(CLASSES)) -> np.ndarray:
    """Number of raters that gave each item each class, (items, classes); items in the order of first occurrence. items:
    the rated item, such as a sentence, of each rating; ratings of one item need not be neighbours."""
    first_seen: dict[str, int] = {}
    rows = np.array([first_seen.setdefault(item, len(first_seen)) for item in items], dtype=int)
    counts = np.zeros((len(first_seen), len(classes)), dtype=int)
    for column, label in enumerate(classes):
        np.add.at(counts[:, column], rows[labels == label], 1)
    return counts


def majority(counts: np.ndarray, classes: Sequence[int] = tuple(CLASSES), tie: int = NEUTRAL) -> np.ndarray:
    """The class that most raters gave each item, (items,). Where two classes lead, `tie`: raters who disagree have not
    found a harm."""
    leading = counts == counts.max(axis=1, keepdims=True)
    return np.where(leading.sum(axis=1) > 1, tie, np.asarray(classes)[counts.argmax(axis=1)])


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
        real, said = int((truth == label).sum()), int((predicted == label).sum())
        both = int(((truth == label) & (predicted == label)).sum())
        precision, recall = both / said if said else 0.0, both / real if real else 0.0
        f1 = 2 * both / (real + said) if real + said else 0.0
        scores |= {f"{name}/precision": precision, f"{name}/recall": recall, f"{name}/f1": f1, f"{name}/count": real}
        recalls += [recall] if real else []
        f1s += [f1] if real + said else []
    return scores | {
        "balanced_accuracy": float(np.mean(recalls)),
        "macro_f1": float(np.mean(f1s)),
        "kappa": cohen_kappa(truth, predicted),
    }


def _beyond_chance(observed: float, expected: float) -> float | None:
    return float((observed - expected) / (1 - expected)) if expected < 1 else None
