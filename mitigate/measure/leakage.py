"""How well an attribute of people is told from their embeddings (Arduini et al. 2020): by a linear probe and by a
nonlinear one, tested on people that they were not fitted on."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

FOLDS = 5
PROBES: dict[str, Callable[[], Any]] = {
    "linear": lambda: LogisticRegression(C=0.1, class_weight="balanced", max_iter=2000),
    "nonlinear": lambda: SVC(kernel="rbf", class_weight="balanced"),
}


def leakage(vectors: np.ndarray, is_a: np.ndarray, groups: np.ndarray, probe: str, seed: int) -> float | None:
    """The area under the ROC curve of a probe, mean over folds: 0.5 where the attribute cannot be told, 1 where it
    always can.

    vectors: (n, dimension); is_a: (n,) bool; groups: (n,) int, people of one group are in one fold, so that a probe
    cannot use what they have in common. None where a fold would lack people of either kind."""
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2 or min(is_a.sum(), (~is_a).sum()) < 2 * folds:
        return None
    split = StratifiedGroupKFold(n_splits=folds, shuffle=True, random_state=seed)
    found = []
    for fitted, tested in split.split(vectors, is_a, groups):
        if is_a[fitted].all() or not is_a[fitted].any() or is_a[tested].all() or not is_a[tested].any():
            return None
        model = make_pipeline(StandardScaler(), PROBES[probe]()).fit(vectors[fitted], is_a[fitted])
        found.append(roc_auc_score(is_a[tested], model.decision_function(vectors[tested])))
    return float(np.mean(found))


def leakage_by_chance(vectors: np.ndarray, is_a: np.ndarray, groups: np.ndarray, probe: str, seed: int) -> float | None:
    """The same with the attribute permuted among people: what is found where there is nothing."""
    return leakage(vectors, np.random.default_rng(seed).permutation(is_a), groups, probe, seed)
