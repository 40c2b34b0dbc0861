"""The base of networks in training: batches and random numbers that are functions of the step, learning rates, AdamW,
and clipping. A subclass adds the loss of a batch."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytorch_lightning as lightning
import torch

from mitigate.train.checkpoint_weights import checksum, frozen, misfit, with_frozen, without_frozen


class Source(Protocol):
    """A source of batches (mitigate.train.batches)."""

    @property
    def size(self) -> float: ...  # examples in a batch, on average

    def start_at(self, step: int, stop: int) -> Iterator[Any]: ...


class TrainingModule(lightning.LightningModule):
    """A network in training; its loss is `training_step(batch, number)`.

    learning_rate is a function of the step, 0 to steps - 1. Each step has random numbers of its own, from the seed, so
    that a training that resumes from a checkpoint repeats none and skips none; seed=None leaves torch's random numbers
    alone, for a training without checkpoints."""

    def __init__(
        self, batches: Source, steps: int, learning_rate: Callable[[int], float], *, seed: int | None, clip: float = 1.0
    ) -> None:
        super().__init__()
        self.batches = batches
        self.steps = steps
        self.learning_rate = learning_rate
        self.seed = seed
        self.clip = clip  # largest norm of the gradient

    def train_dataloader(self) -> "Steps":
        return Steps(self)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.learning_rate(self.global_step)
        if self.seed is not None:
            seed = np.random.SeedSequence([self.seed, self.global_step, self.global_rank])
            torch.manual_seed(int(seed.generate_state(1)[0]))

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Lightning itself refuses to clip for a fused optimizer.
        torch.nn.utils.clip_grad_norm_(self.parameters(), self.clip)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if self._frozen_checksum:
            checkpoint["state_dict"] = without_frozen(checkpoint["state_dict"], self)
            checkpoint["frozen"] = self._frozen_checksum

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Raise MitigateError for weights of another model, and for frozen weights that have changed."""
        if self._frozen_checksum:
            path = Path(str(self.trainer.ckpt_path))
            checkpoint["state_dict"] = with_frozen(checkpoint["state_dict"], self, path)
            if checkpoint.get("frozen") != self._frozen_checksum:
                raise misfit(path, "the frozen weights differ from those at the time it was written")

    @cached_property
    def _frozen_checksum(self) -> str | None:  # computed once, as it takes seconds for a large model
        left_out = frozen(self)
        return checksum(left_out) if left_out else None


class Steps:
    """The batches from the trainer's present step. Lightning does not fast-forward a loader of its own when it resumes
    in the middle of an epoch; this one reads the step."""

    def __init__(self, module: TrainingModule) -> None:
        self.module = module

    def __iter__(self) -> Iterator[Any]:
        return self.module.batches.start_at(self.module.global_step, self.module.steps)


def linear(peak: float, warmup: float, steps: int) -> Callable[[int], float]:
    """A learning rate that rises to the peak during the warmup, a share of the steps, then falls to 0 at the end."""
    warm = max(1, round(warmup * steps))

    def learning_rate(step: int) -> float:
        return peak * min((step + 1) / warm, (steps - step) / max(1, steps - warm), 1.0)

    return learning_rate


def held(peak: float, warmup: float, hold: float, steps: int) -> Callable[[int], float]:
    """A learning rate that rises to the peak during the warmup, stays until a share `hold` of the steps, then falls to
    0 as 1 minus a square root (Hägele et al. 2024)."""
    warm, last = max(1, round(warmup * steps)), min(round(hold * steps), steps - 1)

    def learning_rate(step: int) -> float:
        return peak * min((step + 1) / warm, 1 - (max(0.0, step - last) / (steps - last)) ** 0.5)

    return learning_rate


def adamw(
    parameters: Iterable[torch.nn.Parameter],
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.Optimizer:
    """Fused AdamW of the trainable parameters; matrices decay, biases and norms do not."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=True)
