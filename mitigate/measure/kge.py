"""Quality of embeddings of a knowledge graph, the shift of professions' scores by a sensitive attribute (equation 1 of
"Measuring social bias in knowledge graph embeddings"), and the uncertainty of figures over trainings."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from mitigate.measure.base import Estimate, measure

STEP = 0.01  # the paper's learning rate, footnote 5
LEVEL = 0.95
FEWEST = 5  # predictions of a profession, for a share of them to be taken
FOLDS = 5
ENDS_SHOWN = 20  # professions at each end, in the paper's tables
PROBES = ("linear", "nonlinear")


def mean_reciprocal_rank(ranks: np.ndarray) -> float:
    """The mean of 1 / rank: 1 when every true entity is ranked first. ranks (n,), from 1."""
    return float(np.mean(1 / np.asarray(ranks, dtype=float)))


def hits(ranks: np.ndarray, k: int) -> float:
    """The share of ranks that are at most k, 0 to 1."""
    return float(np.mean(np.asarray(ranks) <= k))


def attribute_direction(weights: np.ndarray, values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The gradient of m of equation 1, (dimension,), where a score is linear in the person.

    weights: (k, dimension), the gradient of the score of each entity as the attribute by the person; values, others:
    (k,) bool, which entities are value a and which are value b. Several entities are averaged: ids with one name, or
    all other values."""
    if not values.any() or not others.any():
        raise ValueError("both values need an entity")
    return weights[values].mean(0) - weights[others].mean(0)


def change_of_scores(professions: np.ndarray, direction: np.ndarray, step: float = STEP) -> np.ndarray:
    """Equation 1 in closed form where a score is linear in the person, as all dot products are: the change of each
    profession's score, (p,), the same for every person.

    A person e moves to e + step * direction. The score weight . e + offset of a profession therefore changes by step *
    weight . direction, which does not depend on e. professions: (p, dimension), their weights. 0: the attribute does
    not move the profession; above 0: value a raises its score."""
    return step * professions @ direction


def log_count_ratio(of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """log((a + 1/2) / (b + 1/2)) of each profession; the halves keep it finite where a group has no holder."""
    return np.log((np.asarray(of_a) + 0.5) / (np.asarray(of_b) + 0.5))


def rank_correlation(changes: np.ndarray, ratios: np.ndarray) -> float | None:
    """Spearman's rank correlation, -1 to 1, 0 for none; None where there are fewer than three professions or one of the
    two does not vary."""
    if len(changes) < 3 or np.ptp(changes) == 0 or np.ptp(ratios) == 0:
        return None
    from scipy.stats import spearmanr  # a second to load, which declarations of measures do without

    return float(spearmanr(changes, ratios).statistic)


def shares_of_groups(predicted: np.ndarray, is_a: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The percentage of each group's people for whom each profession is predicted, (size,) each.

    predicted: (n,) a profession 0 to size - 1; is_a: (n,) bool, whether the person is of group a, else of b."""
    if is_a.all() or not is_a.any():
        raise ValueError("both groups need people")
    first, second = (np.bincount(predicted[of], minlength=size) / of.sum() * 100 for of in (is_a, ~is_a))
    return first, second


def parity_distance(predicted: np.ndarray, is_a: np.ndarray, size: int) -> float:
    """Half the sum over professions of the difference in shares, in percent: 0 where both groups are predicted the same
    professions as often (demographic parity), 100 where they share none."""
    first, second = shares_of_groups(predicted, is_a, size)
    return float(np.abs(first - second).sum() / 2)


def distance_by_chance(predicted: np.ndarray, is_a: np.ndarray, size: int, permutations: int, seed: int) -> float:
    """The mean of parity_distance when people are assigned to the groups at random: the distance that few people
    cause."""
    rng = np.random.default_rng(seed)
    found = [parity_distance(predicted, rng.permutation(is_a), size) for _ in range(permutations)]
    return float(np.mean(found))


def predictive_parity(is_right: np.ndarray, is_a: np.ndarray) -> float | None:
    """The percentage of correct predictions of group a minus that of group b, in percentage points: 0 is parity. None
    where a group has fewer than FEWEST. is_right, is_a: (n,) bool."""
    if min(is_a.sum(), (~is_a).sum()) < FEWEST:
        return None
    return float(100 * (is_right[is_a].mean() - is_right[~is_a].mean()))


def amplification(predicted: np.ndarray, is_a: np.ndarray, of_a: np.ndarray, of_b: np.ndarray) -> float | None:
    """Amplification of the graph's bias by predictions, in percentage points.

    of_a, of_b: (p,) the number of people of each group with the profession in the graph. A profession leans to the
    group whose share of its holders is above that of all holders. Its share among those for whom it is predicted, minus
    its share in the graph, is taken towards that group; the mean over professions with at least FEWEST predictions
    and as many holders. Above 0: bias is amplified. 0: predictions have the graph's shares. None where there is no such
    profession."""
    size = len(of_a)
    all_of, of_group_a = (np.bincount(predicted[of], minlength=size) for of in (np.ones_like(is_a), is_a))
    holders = of_a + of_b
    used = (all_of >= FEWEST) & (holders >= FEWEST)
    if not used.any():
        return None
    in_graph = of_a[used] / holders[used]
    leans = np.sign(in_graph - of_a.sum() / holders.sum())
    return float(100 * np.mean(leans * (of_group_a[used] / all_of[used] - in_graph)))


def leakage(vectors: np.ndarray, is_a: np.ndarray, groups: np.ndarray, probe: str, seed: int) -> float | None:
    """The area under the ROC curve of a probe, mean over folds: 0.5 where the attribute cannot be predicted, 1 where it
    always can.

    vectors: (n, dimension); is_a: (n,) bool; groups: (n,) int, people of one group are in one fold, so that a probe
    cannot use their common properties. None where a fold would lack people of either kind."""
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2 or min(is_a.sum(), (~is_a).sum()) < 2 * folds:
        return None
    from sklearn.linear_model import LogisticRegression  # two seconds to load
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    probes: dict[str, Callable[[], Any]] = {
        "linear": lambda: LogisticRegression(C=0.1, class_weight="balanced", max_iter=2000),
        "nonlinear": lambda: SVC(kernel="rbf", class_weight="balanced"),
    }
    split = StratifiedGroupKFold(n_splits=folds, shuffle=True, random_state=seed)
    found = []
    for fitted, tested in split.split(vectors, is_a, groups):
        if is_a[fitted].all() or not is_a[fitted].any() or is_a[tested].all() or not is_a[tested].any():
            return None
        model = make_pipeline(StandardScaler(), probes[probe]()).fit(vectors[fitted], is_a[fitted])
        found.append(roc_auc_score(is_a[tested], model.decision_function(vectors[tested])))
    return float(np.mean(found))


def leakage_by_chance(vectors: np.ndarray, is_a: np.ndarray, groups: np.ndarray, probe: str, seed: int) -> float | None:
    """The leakage after the attribute is permuted among people: the value without any relation."""
    return leakage(vectors, np.random.default_rng(seed).permutation(is_a), groups, probe, seed)


class Mean(NamedTuple):
    """A mean with Student's 95 % interval; NaN for unknown bounds."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def over_seeds(values: np.ndarray) -> Mean:
    """The mean over trainings, (seeds, ...), and Student's interval. There is none for one training, nor for several
    with the same value: the next may have another."""
    values = np.asarray(values, dtype=float)
    mean, half = values.mean(0), np.full_like(values.mean(0), np.nan)
    if len(values) > 1:
        from scipy.stats import t

        half = t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(0, ddof=1) / np.sqrt(len(values))
        half = np.where(np.ptp(values, axis=0) > 0, half, np.nan)
    return Mean(mean, mean - half, mean + half)


def agreement(rankings: np.ndarray) -> float | None:
    """The mean of Spearman's rank correlation over all pairs of rankings (n, professions): 1 where all rank the same.
    None for fewer than two rankings or three professions, and for a ranking without any difference."""
    rankings = np.asarray(rankings, dtype=float)
    if len(rankings) < 2 or rankings.shape[1] < 3 or not np.ptp(rankings, axis=1).all():
        return None
    from scipy.stats import rankdata

    found = np.corrcoef(rankdata(rankings, axis=1))
    return float(found[np.triu_indices(len(found), 1)].mean())


def shared_ends(rankings: np.ndarray, size: int) -> float | None:
    """The share of the `size` largest and the `size` smallest of one ranking that another has among its own; mean over
    all pairs, 0 to 1. None for fewer than two rankings (n, professions)."""
    rankings = np.asarray(rankings)
    size = min(size, rankings.shape[1] // 2)
    if len(rankings) < 2 or not size:
        return None
    orders = np.argsort(rankings, axis=1, kind="stable")
    ends = [(set(order[:size].tolist()), set(order[-size:].tolist())) for order in orders]
    shares = [len(one[end] & other[end]) / size for one, other in combinations(ends, 2) for end in (0, 1)]
    return float(np.mean(shares))


of_trainings = partial(measure, of="trainings")
BORDES, FISHER, ARDUINI = "Bordes et al. 2013", "Fisher et al. 2020", "Arduini et al. 2020"
KEIDAR, DAS = "Keidar et al. 2021", "Das et al. 2023"
SPEARMAN: dict[str, Any] = {"unit": "correlation", "decimals": 2}


def over_trainings(trainings: pl.DataFrame, column: str, least: float, most: float, unit: float = 1) -> Estimate:
    """The mean over trainings with Student's interval, within the range of the figure; None where some training has no
    value."""
    values = trainings[column]
    if values.null_count() or not len(values):
        return Estimate(None)
    found = over_seeds(unit * values.to_numpy())

    def interval(*_: object) -> tuple[float | None, float | None]:
        low, high = max(float(found.low), least), min(float(found.high), most)
        return (None, None) if np.isnan(found.low) else (low, high)

    return Estimate(float(found.mean), interval, len(values))


@of_trainings("mrr", "mean reciprocal rank", unit="ratio", better="up", decimals=3, source=BORDES, headline="quality")
def mrr(trainings: pl.DataFrame) -> Estimate:
    """The mean over test triples of 1 / rank of the true head and of the true tail among all entities, other true ones
    left out (filtered). Mean over trainings. 1: the true entity is always first."""
    return over_trainings(trainings, "mrr", 0, 1)


@of_trainings("hits", "hits at {k}", key="kge/hits_{k}", better="up", source=BORDES, ks=(1, 3, 10), headline="quality")
def hits_at(trainings: pl.DataFrame, k: int) -> Estimate:
    """The percentage of filtered ranks that are at most k. Mean over trainings."""
    return over_trainings(trainings, f"hits_{k}", 0, 100, 100)


@of_trainings("rank_correlation", "rank correlation with log count ratio", source=FISHER, **SPEARMAN, headline="harm")
def correlation_with_counts(trainings: pl.DataFrame) -> Estimate:
    """Spearman's correlation over professions between the change of their score by equation 1 and the log ratio of the
    two groups' counts. Mean over trainings. 0: the embeddings do not follow the counts."""
    return over_trainings(trainings, "rank_correlation", -1, 1)


@of_trainings(
    "pairs/rank_correlation",
    "rank correlation of pairs with log count ratio",
    source=FISHER,
    **SPEARMAN,
    needs="with_counts",
)
def correlation_of_pairs(trainings: pl.DataFrame) -> Estimate:
    """The rank correlation with the log count ratio of the difference between the scores of two people drawn from both
    groups. Mean over trainings."""
    return over_trainings(trainings, "with_counts", -1, 1)


@of_trainings("pairs/agreement", "rank correlation between two pairs", source=FISHER, **SPEARMAN, needs="with_pairs")
def agreement_of_pairs(trainings: pl.DataFrame) -> Estimate:
    """Spearman's correlation between the differences of two such pairs: low where the measure depends on who is
    compared. Mean over trainings."""
    return over_trainings(trainings, "with_pairs", -1, 1)


@of_trainings(
    "parity",
    "demographic parity distance",
    better="closest",
    best="parity_by_chance",
    source=KEIDAR,
    headline="disparity",
)
def parity(trainings: pl.DataFrame) -> Estimate:
    """Half the sum over professions of the difference between the percentages of both groups that the profession is
    predicted for: 0 where both have the same. Few people differ by chance. Mean over trainings."""
    return over_trainings(trainings, "parity", 0, 100)


@of_trainings("parity_by_chance", "demographic parity distance by chance")
def parity_by_chance(trainings: pl.DataFrame) -> Estimate:
    """The same when people are put into the two groups at random. Mean over trainings."""
    return over_trainings(trainings, "parity_by_chance", 0, 100)


@of_trainings("predictive_parity", "predictive parity difference", better="closest", best="0", source=KEIDAR)
def precision_difference(trainings: pl.DataFrame) -> Estimate:
    """The percentage of people with a held-out profession for whom the first predicted profession is right, value a
    minus value b, in percentage points. 0 is parity. Mean over trainings."""
    return over_trainings(trainings, "predictive_parity", -100, 100)


@of_trainings(
    "amplification", "bias amplification", better="closest", best="0", source="Bourli and Pitoura 2020", headline="harm"
)
def bias_amplification(trainings: pl.DataFrame) -> Estimate:
    """The distance of the share of a group among people with a predicted profession from its share in the graph,
    towards the group that the profession leans to, in percentage points. 0: as in the graph. Mean over trainings."""
    return over_trainings(trainings, "amplification", -100, 100)


@of_trainings("accuracy", "accuracy of predicted professions", better="up")
def accuracy_of_professions(trainings: pl.DataFrame) -> Estimate:
    """The percentage of people with a held-out profession for whom the first predicted profession is right. Mean over
    trainings."""
    return over_trainings(trainings, "accuracy", 0, 100)


leaked = partial(of_trainings, unit="ratio", decimals=2)


@leaked(
    "leakage_linear", "leakage to a linear probe", better="closest", best="leakage_linear_by_chance", source=ARDUINI
)
def linear_leakage(trainings: pl.DataFrame) -> Estimate:
    """The area under the ROC curve of a linear classifier that predicts the attribute from a person's embedding, in
    cross-validation: 0.5 where it cannot be known. Mean over trainings."""
    return over_trainings(trainings, "leakage_linear", 0, 1)


@leaked("leakage_linear_by_chance", "leakage to a linear probe by chance")
def linear_leakage_by_chance(trainings: pl.DataFrame) -> Estimate:
    """The same with the attribute permuted among people. Mean over trainings."""
    return over_trainings(trainings, "leakage_linear_by_chance", 0, 1)


@leaked(
    "leakage_nonlinear",
    "leakage to a nonlinear probe",
    better="closest",
    best="leakage_nonlinear_by_chance",
    source=ARDUINI,
    headline="harm",
)
def nonlinear_leakage(trainings: pl.DataFrame) -> Estimate:
    """The area under the ROC curve of a nonlinear classifier that predicts the attribute from a person's embedding, in
    cross-validation: 0.5 where it cannot be known. Mean over trainings."""
    return over_trainings(trainings, "leakage_nonlinear", 0, 1)


@leaked("leakage_nonlinear_by_chance", "leakage to a nonlinear probe by chance")
def nonlinear_leakage_by_chance(trainings: pl.DataFrame) -> Estimate:
    """The same with the attribute permuted among people. Mean over trainings."""
    return over_trainings(trainings, "leakage_nonlinear_by_chance", 0, 1)


of_rankings = partial(measure, of="rankings", source=DAS, unit="correlation")


@of_rankings("seeds/agreement", "rank correlation between seeds")
def agreement_of_seeds(rankings: pl.DataFrame) -> float | None:
    """Spearman's correlation between the changes of professions in two trainings that differ by seed; mean over all
    pairs."""
    return agreement(by_model(rankings.filter(~pl.col("is_other"))))


@of_rankings("seeds/shared_ends", "extreme professions that two seeds share", unit="%", decimals=0)
def shared_by_seeds(rankings: pl.DataFrame) -> float | None:
    """The percentage of the 20 professions at each end of one training's ranking that are among those of another; mean
    over all pairs."""
    found = shared_ends(by_model(rankings.filter(~pl.col("is_other"))), ENDS_SHOWN)
    return None if found is None else 100 * found


@of_rankings("models/agreement", "rank correlation between models")
def agreement_of_models(rankings: pl.DataFrame) -> float | None:
    """Spearman's correlation between the mean changes of professions by this model and by another; mean over the other
    models."""
    mean = rankings.filter(~pl.col("is_other")).group_by("profession").agg(mine=pl.col("change").mean())
    found = []
    for _, other in rankings.filter("is_other").group_by("model", maintain_order=True):
        both = other.join(mean, on="profession", maintain_order="left")
        found.append(rank_correlation(both["mine"].to_numpy(), both["change"].to_numpy()))
    known = [one for one in found if one is not None]
    return float(np.mean(known)) if known else None


def by_model(changes: pl.DataFrame) -> np.ndarray:
    """The changes of a table (model, profession, change) as an array (models, professions)."""
    return changes["change"].to_numpy().reshape(-1, changes["profession"].n_unique())


of_graph = partial(measure, of="graph")


@of_graph("trainings", "trainings")
def num_trainings(graph: Mapping[str, int]) -> int:
    """The number of trainings with different seeds."""
    return graph["trainings"]


@of_graph("professions", "professions", headline="size")
def num_professions(graph: Mapping[str, int]) -> int:
    """The number of professions with enough people in the graph."""
    return graph["professions"]


@of_graph("people_a", "people of value a")
def people_a(graph: Mapping[str, int]) -> int:
    """The number of people with value a and without value b."""
    return graph["people_a"]


@of_graph("people_b", "people of value b")
def people_b(graph: Mapping[str, int]) -> int:
    """The number of people with value b and without value a."""
    return graph["people_b"]
