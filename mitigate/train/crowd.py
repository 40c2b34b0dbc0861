"""Training of heads on people's ratings: multinomial logistic regression towards the shares of raters.

`fit_crossed` trains the heads of models.heads.CrossFitted, which leave out folds of targets and of texts. `fit_heads`
trains the first crowd classifier: every head but the first leaves out a fold of targets. The threshold of a head is
chosen by heads that leave out one fold more, so that no statement affects the threshold it is labelled by, or the head
that scores it for that choice."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax

from mitigate.progress import progress
from models.heads import FOLDS, LABELS, Heads

NEUTRAL = LABELS.index("neutral")
STEPS = 200


@dataclass(frozen=True)
class Rows:
    """Training texts of heads, n rows: rated texts, copies of them, and texts whose label is known."""

    texts: Sequence[str]
    shares: np.ndarray  # (n, columns), of raters
    weights: np.ndarray  # (n,): 1 for a rated statement
    subjects: np.ndarray  # (n,): the fold of the target, from 0; -1: every head learns from the row
    folds: np.ndarray  # (n,): the fold of the text, as in subjects

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """The rows of all parts, in their order."""
        columns = ("shares", "weights", "subjects", "folds")
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in columns)
        return cls([text for part in parts for text in part.texts], *joined)

    def without(self, subject: int, fold: int) -> np.ndarray:
        """The mask of rows that the head at (subject, fold) learns from, (n,) bool."""
        return (self.subjects != subject) & (self.folds != fold)

    def outside(self, folds: Iterable[int]) -> np.ndarray:
        """The mask of rows of no such fold of targets, and with no text that is in them, (n,) bool."""
        inside, texts = np.isin(self.subjects, list(folds)), np.array(self.texts, dtype=object)
        return ~inside & ~np.isin(texts, texts[inside])


def fit_heads(rows: Rows, features: np.ndarray, neutral: np.ndarray, false_alarms: float, decay: float) -> Heads:
    """Fit the heads to features (n, width): head 0 learns from all rows, head k + 1 from all but fold k. neutral: the
    mask (n,) of rows that most raters call neutral, of which the thresholds call the share `false_alarms` polar. decay:
    as in fit_softmax."""
    folds = range(int(rows.subjects.max()) + 1)
    wanted = [frozenset[int](), *(frozenset([fold]) for fold in folds)]
    every = list(dict.fromkeys([*wanted, *(one | {fold} for one in wanted for fold in folds)]))
    weights, biases = _fit_each(rows, features, [rows.outside(left_out) for left_out in every], decay, STEPS)
    thresholds = []
    for left_out in wanted:
        polar = []
        for fold in sorted(set(folds) - left_out):
            head, kept = every.index(left_out | {fold}), (rows.subjects == fold) & neutral
            polar.append(1 - softmax(features[kept] @ weights[head] + biases[head], axis=-1)[:, NEUTRAL])
        thresholds.append(float(np.quantile(np.concatenate(polar), 1 - false_alarms)))
    return Heads(weights[: len(wanted)], biases[: len(wanted)], np.array(thresholds, dtype=np.float32))


def fit_crossed(rows: Rows, features: np.ndarray, decay: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The weight (FOLDS, FOLDS, width, columns) and bias (FOLDS, FOLDS, columns) of heads on features (n, width). The
    head at (s, t) learns from no row of a subject of fold s and no row of a text of fold t. decay, steps: as in
    fit_softmax."""
    masks = [rows.without(*divmod(place, FOLDS)) for place in range(FOLDS**2)]
    weights, biases = _fit_each(rows, features, masks, decay, steps)
    return weights.reshape(FOLDS, FOLDS, *weights.shape[1:]), biases.reshape(FOLDS, FOLDS, -1)


def _fit_each(
    rows: Rows, features: np.ndarray, masks: Sequence[np.ndarray], decay: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The weights (m, width, columns) and biases (m, columns) of m heads, each of which learns from the rows of a
    mask."""
    heads = []
    with progress("train", len(masks), "heads") as advance:
        for kept in masks:
            heads.append(fit_softmax(features[kept], rows.shares[kept], rows.weights[kept], decay, steps))
            advance(1)
    weights, biases = zip(*heads, strict=True)
    return np.stack(weights), np.stack(biases)


def calibrate(logits: np.ndarray, shares: np.ndarray) -> tuple[float, np.ndarray]:
    """The slope and the shift (columns,) of logits (n, columns) that bring their softmax closest to the shares."""
    x, wanted = torch.tensor(logits, dtype=torch.float32), torch.tensor(shares, dtype=torch.float32)
    slope, shift = torch.ones((), requires_grad=True), torch.zeros(x.shape[1], requires_grad=True)
    _minimise([slope, shift], lambda: -(wanted * torch.log_softmax(slope * x + shift, -1)).sum())
    return float(slope.detach()), shift.detach().numpy()


def fit_softmax(
    features: np.ndarray, shares: np.ndarray, counts: Sequence[float] | np.ndarray, decay: float, steps: int = STEPS
) -> tuple[np.ndarray, np.ndarray]:
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
