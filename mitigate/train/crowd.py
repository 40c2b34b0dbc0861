"""Training of heads on people's ratings: multinomial logistic regression towards the shares of raters.

`fit_crossed` trains the heads of models.heads.CrossFitted, which leave out folds of targets and of texts. `fit_heads`
trains the first crowd classifier: every head but the first leaves out a fold of targets. The threshold of a head is
chosen by heads that leave out one fold more, so that no statement affects the threshold it is labelled by, or the head
that scores it for that choice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from mitigate.runs.progress import progress
from models.heads import FOLDS, LABELS, Heads, softmax

NEUTRAL = LABELS.index("neutral")
STEPS = 200
Head = tuple[np.ndarray, np.ndarray]
"""weight (width, 3) and bias (3,)."""


@dataclass(frozen=True)
class Learnt:
    """Training data: n rated statements, and m further texts, all of them negative."""

    features: np.ndarray  # (n, width)
    shares: np.ndarray  # (n, 3), of raters, columns as in LABELS
    neutral: np.ndarray  # (n,), whether most raters call it neutral
    fold: np.ndarray  # (n,), from 0; of its target
    texts: np.ndarray  # (n,): equal texts may be about targets of several folds
    negative: np.ndarray  # (m, width)
    negative_weight: float  # of one of them; a rated statement has 1
    decay: float  # weight of half the sum of squared weights
    false_alarms: float  # share of neutral statements that the threshold calls polar

    @cached_property
    def folds(self) -> int:
        return int(self.fold.max()) + 1

    def kept(self, left_out: frozenset[int]) -> np.ndarray:
        """The mask of statements that a head learns from, (n,): none of these folds, and none whose text is in them."""
        inside = np.isin(self.fold, list(left_out))
        return ~inside & ~np.isin(self.texts, self.texts[inside])


def fit_heads(learnt: Learnt) -> Heads:
    """Fit the heads: head 0 learns from all statements, head k + 1 from all but fold k."""
    folds = range(learnt.folds)
    wanted = [frozenset[int](), *(frozenset([fold]) for fold in folds)]
    every = dict.fromkeys([*wanted, *(one | {fold} for one in wanted for fold in folds)])
    found: dict[frozenset[int], Head] = {}
    with progress("train", len(every), "heads") as advance:
        for left_out in every:
            found[left_out] = _fit(learnt, left_out)
            advance(1)
    weights, biases = zip(*(found[left_out] for left_out in wanted), strict=True)
    thresholds = []
    for left_out in wanted:  # `false_alarms` of the neutral statements outside these folds are above the threshold
        polar = []
        for fold in sorted(set(folds) - left_out):
            weight, bias = found[left_out | {fold}]
            rows = (learnt.fold == fold) & learnt.neutral
            polar.append(1 - softmax(learnt.features[rows] @ weight + bias)[:, NEUTRAL])
        thresholds.append(float(np.quantile(np.concatenate(polar), 1 - learnt.false_alarms)))
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


@dataclass(frozen=True)
class Rows:
    """Training data of cross-fitted heads, n rows: ratings, copies of rated texts, texts with known labels."""

    features: np.ndarray  # (n, width)
    shares: np.ndarray  # (n, columns), of raters
    counts: np.ndarray  # (n,): the weight of a row; a rated statement has 1
    subjects: np.ndarray  # (n,): the fold of the target of the rated statement; -1: every head learns from the row
    texts: np.ndarray  # (n,): the fold of its text; -1 as in subjects

    def without(self, subject: int, text: int) -> np.ndarray:
        """The mask of rows that the head at (subject, text) learns from, (n,) bool."""
        return (self.subjects != subject) & (self.texts != text)


def fit_crossed(rows: Rows, decay: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The weight (FOLDS, FOLDS, width, columns) and bias (FOLDS, FOLDS, columns) of heads. The head at (s, t) has
    learnt from no row of a subject of fold s and no row of a text of fold t. decay, steps: as in fit_softmax."""
    found = []
    with progress("train", FOLDS**2, "heads") as advance:
        for place in range(FOLDS**2):
            kept = rows.without(*divmod(place, FOLDS))
            found.append(fit_softmax(rows.features[kept], rows.shares[kept], rows.counts[kept], decay, steps))
            advance(1)
    weights, biases = (np.stack(parts) for parts in zip(*found, strict=True))
    return weights.reshape(FOLDS, FOLDS, *weights.shape[1:]), biases.reshape(FOLDS, FOLDS, -1)


def calibrate(logits: np.ndarray, shares: np.ndarray) -> tuple[float, np.ndarray]:
    """The slope and the shift (columns,) of logits (n, columns) that bring their softmax closest to the shares."""
    x, wanted = torch.tensor(logits, dtype=torch.float32), torch.tensor(shares, dtype=torch.float32)
    slope, shift = torch.ones((), requires_grad=True), torch.zeros(x.shape[1], requires_grad=True)
    _minimise([slope, shift], lambda: -(wanted * torch.log_softmax(slope * x + shift, -1)).sum())
    return float(slope.detach()), shift.detach().numpy()


def fit_softmax(
    features: np.ndarray,
    shares: np.ndarray,
    counts: Sequence[float] | np.ndarray,
    decay: float,
    steps: int = STEPS,
) -> Head:
    """The weight (width, 3) and bias (3,) that minimise the cross-entropy with shares (n, 3), each row weighted by
    counts, plus decay times half the sum of squared weights. The bias does not decay."""
    x, wanted, count = (torch.tensor(np.asarray(part), dtype=torch.float32) for part in (features, shares, counts))
    # With (3, width) products take a fifth of the time, but sums round otherwise: after 60 steps single labels differ.
    weight = torch.zeros(x.shape[1], wanted.shape[1], requires_grad=True)
    bias = torch.zeros(wanted.shape[1], requires_grad=True)

    def loss() -> torch.Tensor:
        likelihood = (wanted * torch.log_softmax(x @ weight + bias, -1)).sum(-1)
        return -(count * likelihood).sum() + decay * weight.square().sum() / 2

    _minimise([weight, bias], loss, steps)
    return weight.detach().numpy(), bias.detach().numpy()


def _minimise(parameters: list[torch.Tensor], loss: Callable[[], torch.Tensor], steps: int = STEPS) -> None:
    search = torch.optim.LBFGS(parameters, max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        search.zero_grad()
        value = loss()
        value.backward()
        return value

    search.step(closure)
