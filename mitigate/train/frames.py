"""Training of a form on frames: equation 1 of Sap et al. 2020, without loss for missing or impossible values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mitigate.errors import MitigateError
from mitigate.stages import SURROUNDING
from mitigate.train import harness
from mitigate.train.batches import Batches
from mitigate.train.checkpoints import Checkpoints
from mitigate.train.harness import Log
from mitigate.train.module import TrainingModule, adamw, linear
from models.form import Example, Form


@dataclass(frozen=True)
class Settings:
    """Settings of a training. The paper's: batch 4, lr 5e-6 (GPT) or 1e-5 (GPT-2), linear warmup, 1, 2 or 5 epochs."""

    epochs: float = 3.0
    batch_size: int = 32
    lr: float = 2e-4
    warmup: float = 0.05  # of all steps
    weight_decay: float = 0.01
    precision: str = "auto"
    seed: int = 1
    checkpoint_every: float = field(default=30.0, metadata=SURROUNDING)  # seconds


class Fitted(NamedTuple):
    """The result of a training. The weights are in the trained form."""

    examples: int
    steps: int
    seconds: float
    examples_per_second: float
    train_loss: float  # per learnt choice plus per learnt token of texts (Form.loss), mean of the last steps


class FormModule(TrainingModule):
    """The loss of a form on a batch."""

    batches: Batches

    def __init__(self, form: Form, examples: Sequence[Example], settings: Settings) -> None:
        steps = math.ceil(settings.epochs * len(examples) / settings.batch_size)
        super().__init__(
            Batches(np.array([one.size for one in examples]), settings.batch_size, settings.seed),
            steps,
            linear(settings.lr, settings.warmup, steps),
            seed=settings.seed,
        )
        self.form = form
        self.examples = examples
        self.settings = settings

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        return self.form.loss([self.examples[i] for i in batch])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return adamw(self.parameters(), self.settings.lr, self.settings.weight_decay)


def fit(
    form: Form,
    examples: Sequence[Example],
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str,
    accelerator: str = "auto",
    log: Log | None = None,
) -> Fitted:
    """Train the form in place, resuming from the newest intact checkpoint of the same training in folder.

    fingerprint: identifies the training; any change of its result must change it. Raises MitigateError where no example
    has anything to learn, and where the checkpoint is of another training."""
    learnable = [one for one in examples if has_loss(one)]
    if not learnable:
        raise MitigateError("no post gives a value to learn; recipe=frames needs posts with values")
    counts = harness.fit(
        module := FormModule(form, learnable, settings),
        precision=settings.precision,
        checkpoints=Checkpoints(folder, fingerprint),
        checkpoint_every=settings.checkpoint_every,
        log=log,
        accelerator=accelerator,
    )
    return Fitted(len(learnable), module.steps, counts.seconds, counts.rate(module.steps), counts.loss)


def has_loss(example: Example) -> bool:
    """Return whether any token of the example is learnt."""
    return any(example.learnt) or any(any(texts) or learnt for texts, _, learnt in example.alternatives)
