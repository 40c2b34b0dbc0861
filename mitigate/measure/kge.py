"""Figures of embeddings of a knowledge graph: how far scores of professions follow the counts of two groups of people,
whether both groups are predicted the same professions, and the uncertainty over trainings."""

from functools import partial

import numpy as np
import polars as pl
from scipy import special

from mitigate.measure.base import Estimate, measure, number

LEVEL = 0.95


def log_count_ratio(of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """log((a + 1/2) / (b + 1/2)) of each profession; the halves keep it finite where a group has no holder."""
    return np.log((np.asarray(of_a) + 0.5) / (np.asarray(of_b) + 0.5))


def agreement(rankings: np.ndarray) -> float | None:
    """The mean of Spearman's rank correlation over all pairs of rankings (n, professions): 1 where all rank the same.
    None for fewer than two rankings or three professions, and for a ranking without any difference."""
    if len(rankings) < 2 or rankings.shape[1] < 3 or not np.ptp(rankings, axis=1).all():
        return None
    found = np.corrcoef([pl.Series(ranking).rank().to_numpy() for ranking in rankings])
    return float(found[np.triu_indices(len(found), 1)].mean())


def parity_distance(predicted: np.ndarray, is_a: np.ndarray, size: int) -> float:
    """Half the sum over professions of the difference between the percentages of both groups for whom it is predicted:
    0 where both are predicted the same professions as often (demographic parity), 100 where they share none.

    predicted: (n,) a profession 0 to size - 1; is_a: (n,) bool, whether the person is of group a, else of b."""
    first, second = (np.bincount(predicted[of], minlength=size) / of.sum() * 100 for of in (is_a, ~is_a))
    return float(np.abs(first - second).sum() / 2)


def distance_by_chance(predicted: np.ndarray, is_a: np.ndarray, size: int, permutations: int, seed: int) -> float:
    """The mean of parity_distance when people are assigned to the groups at random: what few people cause."""
    rng = np.random.default_rng(seed)
    return float(np.mean([parity_distance(predicted, rng.permutation(is_a), size) for _ in range(permutations)]))


def over_seeds(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean over trainings, (seeds, ...), and Student's 95 % interval, its low and high end. These are NaN for one
    training, and for several with the same value: the next may have another."""
    values = np.asarray(values, dtype=float)
    mean, half = values.mean(0), np.full_like(values.mean(0), np.nan)
    if len(values) > 1:
        half = special.stdtrit(len(values) - 1, (1 + LEVEL) / 2) * values.std(0, ddof=1) / np.sqrt(len(values))
        half = np.where(np.ptp(values, axis=0) > 0, half, np.nan)
    return mean, mean - half, mean + half


def over_trainings(trainings: pl.DataFrame, column: str, least: float, most: float, unit: float = 1) -> Estimate:
    """The mean over trainings with Student's interval, within the range of the figure; None where one has none."""
    values = trainings[column]
    if values.null_count() or not len(values):
        return Estimate(None)
    mean, low, high = map(float, over_seeds(unit * values.to_numpy()))

    def interval(*_: object) -> tuple[float | None, float | None]:
        return (None, None) if np.isnan(low) else (max(low, least), min(high, most))

    return Estimate(mean, interval, len(values))


def by_model(changes: pl.DataFrame) -> np.ndarray:
    """The changes of a table (model, profession, change) as an array (models, professions)."""
    return changes["change"].to_numpy().reshape(-1, changes["profession"].n_unique())


of_trainings = partial(measure, of="trainings")
BORDES, FISHER, KEIDAR, DAS = "Bordes et al. 2013", "Fisher et al. 2020", "Keidar et al. 2021", "Das et al. 2023"


@of_trainings("mrr", "mean reciprocal rank", unit="ratio", better="up", decimals=3, source=BORDES, headline="quality")
def mrr(trainings: pl.DataFrame) -> Estimate:
    """The mean over test triples of 1 / rank of the true head and of the true tail among all entities, other true ones
    left out (filtered). Mean over trainings. 1: the true entity is always first."""
    return over_trainings(trainings, "mrr", 0, 1)


for k in (1, 3, 10):
    of_trainings(
        f"hits_{k}",
        f"hits at {k}",
        better="up",
        source=BORDES,
        headline="quality" if k == 10 else "",
        meaning=f"The percentage of filtered ranks that are at most {k}. Mean over trainings.",
    )(lambda trainings, k=k: over_trainings(trainings, f"hits_{k}", 0, 100, 100))


@of_trainings(
    "rank_correlation",
    "rank correlation with log count ratio",
    unit="correlation",
    decimals=2,
    source=FISHER,
    headline="harm",
)
def correlation_with_counts(trainings: pl.DataFrame) -> Estimate:
    """Spearman's correlation over professions between the change of their score by equation 1 and the log ratio of the
    two groups' counts. Mean over trainings. 0: the embeddings do not follow the counts."""
    return over_trainings(trainings, "rank_correlation", -1, 1)


@of_trainings("parity", "demographic parity distance", better="down", source=KEIDAR, headline="disparity")
def parity(trainings: pl.DataFrame) -> Estimate:
    """Half the sum over professions of the difference between the percentages of both groups that the profession is
    predicted for: 0 where both have the same. Few people differ by chance. Mean over trainings."""
    return over_trainings(trainings, "parity", 0, 100)


@of_trainings("parity_by_chance", "demographic parity distance by chance")
def parity_by_chance(trainings: pl.DataFrame) -> Estimate:
    """The same when people are put into the two groups at random. Mean over trainings."""
    return over_trainings(trainings, "parity_by_chance", 0, 100)


@measure("seeds/agreement", "rank correlation between seeds", of="rankings", source=DAS, unit="correlation")
def agreement_of_seeds(rankings: pl.DataFrame) -> float | None:
    """Spearman's correlation between the changes of professions in two trainings that differ by seed; mean over all
    pairs."""
    return agreement(by_model(rankings))


counted = partial(number, family="kge")
counted("kge/trainings", "trainings", "The number of trainings with different seeds.")
counted("kge/professions", "professions", "The number of professions with enough people in the graph.", headline="size")
counted("kge/people_a", "people of value a", "The number of people with value a and without value b.")
counted("kge/people_b", "people of value b", "The number of people with value b and without value a.")
