"""The share of a generator's triples that a classifier accepts, overall and in parts, with intervals over targets. The
caller chooses the classifier."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.metric_frame import MetricFrame
from mitigate.measure.quality import share_by_target
from mitigate.measure.uncertainty import mean_over_targets
from mitigate.metrics import ENDS, PLAUSIBLE, quality_key

PLAUSIBLE_KEY = partial(quality_key, PLAUSIBLE)  # "quality/valid/{part}"


def valid_metrics(
    triples: pl.DataFrame,
    parts: Mapping[str, pl.Expr],
    clusters: Mapping[str, str],
    bootstrap: Bootstrap,
    key: Callable[[str], str] = PLAUSIBLE_KEY,
    column: str = "judged_valid",
) -> dict[str, float | None]:
    """The mean over targets of the percentage accepted, or of the mean probability of acceptance, with "_low" and
    "_high", for each part of the probed triples (target, column, and the columns of the conditions), by the key of its
    name. None where there are fewer than two words to resample, or no triple. Triples that the classifier does not
    cover (column null) do not count."""
    metrics: dict[str, float | None] = {}
    for name, rows in MetricFrame(triples, parts):
        found = mean_over_targets(share_by_target(rows, column), clusters, bootstrap)
        metrics |= {key(name) + end: value for end, value in zip(ENDS, found, strict=True)}
    return metrics


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
