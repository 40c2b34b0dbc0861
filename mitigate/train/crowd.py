"""Training the crowd classifier: multinomial logistic regression towards the shares of raters, and its thresholds.

Every head but the first leaves out a fold of targets. The threshold of a head is chosen by heads that leave out one
fold more, so that no statement has a part in the threshold it is labelled by, nor in the head that scores it for that
choice."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from mitigate.progress import progress
from models.heads import LABELS, Heads, softmax

NEUTRAL = LABELS.index("neutral")
STEPS = 200
Head = tuple[np.ndarray, np.ndarray]
"""weight (width, 3) and bias (3,)."""


@dataclass(frozen=True)
class Learnt:
    """What is learnt from: n rated statements, and m further texts, all of them negative."""

    features: np.ndarray  # (n, width)
    shares: np.ndarray  # (n, 3), of raters, columns as in LABELS
    neutral: np.ndarray  # (n,), whether most raters find it neutral
    fold: np.ndarray  # (n,), from 0; of its target
    texts: np.ndarray  # (n,): equal texts may be about targets of several folds
    negative: np.ndarray  # (m, width)
    negative_weight: float  # what one of them counts, a rated statement being 1
    decay: float  # weight of half the sum of squared weights
    false_alarms: float  # share of neutral statements that the threshold calls polar

    @cached_property
    def folds(self) -> int:
        return int(self.fold.max()) + 1

    def kept(self, left_out: frozenset[int]) -> np.ndarray:
        """The statements that a head learns from, (n,): none of these folds, and none whose text is in them."""
        inside = np.isin(self.fold, list(left_out))
        return ~inside & ~np.isin(self.texts, self.texts[inside])


def fit_heads(learnt: Learnt) -> Heads:
    """Head 0 learns from everything, head k + 1 from all but fold k."""
    folds = range(learnt.folds)
    wanted = [frozenset[int](), *(frozenset([fold]) for fold in folds)]
    every = dict.fromkeys([*wanted, *(one | {fold} for one in wanted for fold in folds)])
    found: dict[frozenset[int], Head] = {}
    with progress("train", len(every), "heads") as advance:
        for left_out in every:
            found[left_out] = _fit(learnt, left_out)
            advance(1)
    weights, biases = zip(*(found[left_out] for left_out in wanted), strict=True)
    thresholds = [_threshold(learnt, found, left_out) for left_out in wanted]
    return Heads(np.stack(weights), np.stack(biases), np.array(thresholds, dtype=np.float32))


def _fit(learnt: Learnt, left_out: frozenset[int]) -> Head:
    kept = learnt.kept(left_out)
    negative = np.eye(len(LABELS))[np.full(len(learnt.negative), LABELS.index("negative"))]
    return fit_softmax(
        np.concatenate([learnt.features[kept], learnt.negative]),
        np.concatenate([learnt.shares[kept], negative]),
        np.concatenate([np.ones(kept.sum()), np.full(len(negative), learnt.negative_weight)]),
        learnt.decay,
    )


def _threshold(learnt: Learnt, heads: dict[frozenset[int], Head], left_out: frozenset[int]) -> float:
    """Above it are `false_alarms` of the neutral statements outside the folds left out."""
    polar = []
    for fold in sorted(set(range(learnt.folds)) - left_out):
        weight, bias = heads[left_out | {fold}]
        rows = (learnt.fold == fold) & learnt.neutral
        polar.append(1 - softmax(learnt.features[rows] @ weight + bias)[:, NEUTRAL])
    return float(np.quantile(np.concatenate(polar), 1 - learnt.false_alarms))


def fit_softmax(features: np.ndarray, shares: np.ndarray, counts: Sequence[float] | np.ndarray, decay: float) -> Head:
    """The weight (width, 3) and bias (3,) that minimise the cross-entropy with shares (n, 3), each row counted so
    often, plus decay times half the sum of squared weights. The bias does not decay."""
    x, wanted, count = (torch.tensor(np.asarray(part), dtype=torch.float32) for part in (features, shares, counts))
    weight = torch.zeros(x.shape[1], wanted.shape[1], requires_grad=True)
    bias = torch.zeros(wanted.shape[1], requires_grad=True)
    search = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        likelihood = (wanted * torch.log_softmax(x @ weight + bias, -1)).sum(-1)
        value = -(count * likelihood).sum() + decay * weight.square().sum() / 2
        value.backward()
        return value

    search.step(loss)
    return weight.detach().numpy(), bias.detach().numpy()
