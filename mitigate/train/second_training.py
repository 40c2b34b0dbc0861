"""A second, short training of a generator: on tails as in the first one, or on pairs of tails of one prompt. It keeps
the last weights at which perplexity has risen by at most a bound."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.nn import functional as F

from mitigate.train.comet import (
    DevPerplexity,
    Examples,
    Fitted,
    Settings,
    TailModule,
    check_lengths,
    fit_module,
    perplexity,
)
from mitigate.train.harness import Log
from mitigate.train.tail_learner import Learner
from models.comet import Comet

BATCH = 128  # pairs, where nothing is learnt
LEAST = 1e-6  # nats of an almost certain token, so that the logarithm of the rest exists

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A function of minus the log-likelihood (tokens,) of each token, the number (tokens,) of each token's tail (even:
chosen, the next: rejected), and the reference's log-likelihoods (pairs, 2) of both."""


class Bound(NamedTuple):
    """The bound of perplexity's rise, and the interval of its measurement."""

    rise: float  # as a share of the perplexity before
    every: int  # steps


class WithinBound(DevPerplexity):
    """A callback that keeps the last weights whose perplexity is within the bound, at first those before training."""

    def __init__(self, *given: Any, before: float, bound: Bound) -> None:
        super().__init__(*given)
        self.before = before
        self.bound = bound

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if not trainer.global_step:
            self.keep(trainer, self.before)

    def is_due(self, step: int) -> bool:
        return step % self.bound.every == 0

    def is_better(self, found: float) -> bool:
        return found <= self.before * (1 + self.bound.rise)


class PairModule(TailModule):
    """The mean loss of pairs of tails, the chosen one of each in `examples`."""

    def __init__(
        self, model: Learner, examples: Examples, rejected: Sequence[str], loss: Loss, settings: Settings
    ) -> None:
        super().__init__(model, examples, settings)
        self.rejected = model.tails(rejected)
        self.loss = loss
        self.reference = self._by_model()

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        super().on_train_batch_start(batch, batch_idx)
        self.model.eval()  # dropout would differ from the reference, which has none

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        nll, tails = self._nll(batch)
        return self.loss(nll, tails, self.reference[batch].to(nll.device))

    def _nll(self, batch: np.ndarray) -> tuple[Tensor, Tensor]:
        """The first two arguments of `Loss` for some pairs, the two tails of a pair side by side."""
        prompts = [self.prompts[i] for i in batch for _ in range(2)]
        tails = [tail for i in batch for tail in (self.tails[i], self.rejected[i])]
        lengths = torch.tensor([len(tail) for tail in tails])
        nll = self.nll(prompts, tails)
        return nll, torch.arange(len(tails)).repeat_interleave(lengths).to(nll.device)

    @torch.no_grad()
    def _by_model(self) -> Tensor:
        """The log-likelihoods (pairs, 2) by the present weights."""
        self.model.eval()
        batches = [np.arange(start, min(start + BATCH, len(self.tails))) for start in range(0, len(self.tails), BATCH)]
        return torch.cat([log_likelihoods(*self._nll(batch)) for batch in batches])


def dpo(nll: Tensor, tails: Tensor, reference: Tensor, *, beta: float) -> Tensor:
    """Direct preference optimisation (Rafailov et al. 2023, equation 7): minus the log-sigmoid of beta times the chosen
    tail's gain in log-likelihood over the reference minus the rejected one's."""
    gained = log_likelihoods(nll, tails) - reference
    return -F.logsigmoid(beta * (gained[:, 0] - gained[:, 1])).mean()


def unlikelihood(nll: Tensor, tails: Tensor, reference: Tensor, *, alpha: float) -> Tensor:
    """Likelihood of the chosen tail and unlikelihood of the rejected one (Welleck et al. 2020, equations 4 and 5): the
    mean over its tokens of -log p, and alpha times that of -log(1 - p)."""
    of_token = torch.where(tails % 2 == 0, nll, -alpha * torch.log(-torch.expm1(-nll.clamp_min(LEAST))))
    lengths = torch.bincount(tails, minlength=2 * len(reference))
    return (of_token / lengths[tails]).sum() / len(reference)


def log_likelihoods(nll: Tensor, tails: Tensor) -> Tensor:
    """The log-likelihoods (pairs, 2) of whole tails."""
    return -torch.zeros(int(tails[-1]) + 1, device=nll.device).index_add(0, tails, nll.float()).view(-1, 2)


LOSSES: Mapping[str, Callable[..., Tensor]] = {"dpo": dpo, "unlikelihood": unlikelihood}


def fit(
    model: Learner,
    examples: Examples,
    settings: Settings,
    folder: Path,
    *,
    dev: Examples,
    bound: Bound,
    fingerprint: str,
    rejected: Sequence[str] | None = None,
    loss: Loss | None = None,
    log: Log | None = None,
    accelerator: str = "auto",
) -> tuple[Fitted, float]:
    """Train the model in place, resuming as train.comet.fit does, and leave it with the kept weights; also returns the
    perplexity on dev before. rejected: for each example the tail that the loss compares with its own; None: the
    examples' tails are learnt as in the first training."""
    if not isinstance(model, Comet):
        tails = [*examples.tails, *(rejected or ())]
        times = len(tails) // len(examples.tails)
        both = Examples([*examples.heads] * times, [*examples.phrases] * times, tails)
        check_lengths(model, [both, dev])
    before = perplexity(model, dev)
    if rejected is None or loss is None:
        module = TailModule(model, examples, settings)
    else:
        module = PairModule(model, examples, rejected, loss, settings)
    watching = partial(WithinBound, before=before, bound=bound)
    where: dict[str, Any] = {"accelerator": accelerator, "watching": watching}
    return fit_module(module, folder, fingerprint=fingerprint, dev=dev, log=log, **where), before
