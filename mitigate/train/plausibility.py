"""Teaches a network of models.plausibility which triples hold: true ones against the same with another head, relation
or tail, a third each, as in the labelled triples of Li et al. (2016).

Other heads and tails are those of all other triples in the batch, so that a phrase is read once and seen in many wrong
places, and each as often as it occurs in training. Other relations are all of them, each by its share in training. What
is itself a training triple never counts as wrong."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytorch_lightning as lightning
import torch
from lightning_fabric.plugins.environments import LightningEnvironment
from torch import Tensor
from torch.nn.functional import softplus

from mitigate.errors import MitigateError
from mitigate.train.batches import Batches
from mitigate.train.checkpoints import CheckpointFile, SaveRegularly
from mitigate.train.comet import ALONE, PRECISIONS, interruptible, native_precision, quiet
from mitigate.train.memory import keep_freed_memory
from models.plausibility.bilinear import Bilinear

Log = Callable[[dict[str, float], int], None]
LOG_EVERY = 20  # steps


@dataclass(frozen=True)
class Settings:
    """How to train."""

    epochs: int
    batch_size: int
    learning_rate: float  # reached after the warmup, then falling to 0 along a line
    weight_decay: float = 0.01  # of matrices
    warmup: float = 0.06  # of all steps
    precision: str = "auto"  # bf16-mixed where the processor computes in it, else 32-true
    seed: int = 1
    checkpoint_every: float = 30.0  # seconds

    def __post_init__(self) -> None:
        checks = [
            (self.epochs >= 1, f"epochs={self.epochs} must be at least 1"),
            (self.batch_size >= 1, f"batch_size={self.batch_size} must be at least 1"),
            (self.learning_rate > 0, f"learning_rate={self.learning_rate} must be above 0"),
            (self.weight_decay >= 0, f"weight_decay={self.weight_decay} must be at least 0"),
            (0 <= self.warmup < 1, f"warmup={self.warmup} must be a share of the steps, at least 0 and below 1"),
            (self.precision in PRECISIONS, f"precision={self.precision!r} must be one of {', '.join(PRECISIONS)}"),
            (self.checkpoint_every > 0, f"checkpoint_every={self.checkpoint_every} must be above 0 seconds"),
        ]
        if faults := [fault for holds, fault in checks if not holds]:
            raise MitigateError("plausibility: " + "; ".join(faults))


class Fitted(NamedTuple):
    """What came of it. The weights are in the network that was given."""

    steps: int
    seconds: float  # of training, interruptions not counted
    triples_per_second: float
    loss: float  # mean of the last steps


class Known:
    """The true triples (head, relation, tail) as numbers: of phrases, and of a network's relations."""

    def __init__(self, triples: pl.DataFrame, relations: Sequence[str]) -> None:
        self.phrases = sorted({*triples["head"], *triples["tail"]})
        number = {phrase: i for i, phrase in enumerate(self.phrases)}
        column = {relation: i for i, relation in enumerate(relations)}
        self.heads = np.array([number[head] for head in triples["head"]])  # (n,)
        self.relations = np.array([column[relation] for relation in triples["relation"]])
        self.tails = np.array([number[tail] for tail in triples["tail"]])
        self.share = np.bincount(self.relations, minlength=len(column)) / len(self.relations)  # (relations,)
        self._keys = np.unique(self._key(self.heads, self.relations, self.tails))

    def holds(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """Which triples are known to hold, bool, of the shape that the three have together."""
        keys = self._key(heads, relations, tails)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[places] == keys

    def _key(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        return (heads * len(self.share) + relations) * len(self.phrases) + tails


class PlausibilityTraining(lightning.LightningModule):
    """The loss of a batch, and the optimizer."""

    def __init__(self, network: Bilinear, known: Known, settings: Settings) -> None:
        super().__init__()
        self.network = network
        self.known = known
        self.settings = settings
        self.pieces = network.phrases.encode(known.phrases)
        # Of no length: phrases of a batch that are all long, or all short, would be each other's only wrong answers.
        self.batches = Batches(np.zeros(len(known.heads)), settings.batch_size, settings.seed)
        self.steps = math.ceil(settings.epochs * len(known.heads) / settings.batch_size)

    def train_dataloader(self) -> "Steps":
        return Steps(self)

    def on_train_batch_start(self, batch: np.ndarray, batch_idx: int) -> None:
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.learning_rate(self.global_step)
        # Each step has random numbers of its own, so that going on from a checkpoint repeats none and skips none.
        torch.manual_seed(int(np.random.SeedSequence([self.settings.seed, self.global_step]).generate_state(1)[0]))

    def learning_rate(self, step: int) -> float:
        """Up during the warmup, then down to 0 at the end."""
        warm = max(1, round(self.settings.warmup * self.steps))
        falling = (self.steps - step) / max(1, self.steps - warm)
        return self.settings.learning_rate * min((step + 1) / warm, falling, 1.0)

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The mean over the batch of -log p(true) - (sum over head, relation, tail of log(1 - p(other))) / 3."""
        known = self.known
        heads, relations, tails = known.heads[batch], known.relations[batch], known.tails[batch]
        read, places = np.unique(np.concatenate([heads, tails]), return_inverse=True)
        vectors = self.network.vectors([self.pieces[phrase] for phrase in read])
        first, second = vectors[torch.tensor(places)].chunk(2)  # (batch, width) each
        matrices = self.network.matrices
        own = matrices[torch.tensor(relations)]  # (batch, width, width)
        by_tail = torch.einsum("ni,nij->nj", first, own) @ second.T  # (batch, batch): row's head, column's tail
        by_head = torch.einsum("nij,nj->ni", own, second) @ first.T  # row's tail, column's head
        by_relation = torch.einsum("ni,rij,nj->nr", first, matrices, second)
        column = np.arange(len(matrices))
        others = (
            (by_tail, ~known.holds(heads[:, None], relations[:, None], tails), np.ones(len(batch))),
            (by_head, ~known.holds(heads, relations[:, None], tails[:, None]), np.ones(len(batch))),
            (by_relation, ~known.holds(heads[:, None], column, tails[:, None]), known.share),
        )
        wrong = sum(mean_by(softplus(logits.float()), false * share) for logits, false, share in others)
        return (softplus(-by_tail.diagonal().float()) + wrong / 3).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        groups = [
            {"params": [p for p in trained if p.ndim > 1], "weight_decay": self.settings.weight_decay},
            {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.settings.learning_rate, betas=(0.9, 0.98), fused=True)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)  # Lightning refuses to, for a fused optimizer


def seed(number: int) -> None:
    """Fixes the chance by which a network starts."""
    lightning.seed_everything(number, verbose=False)


def mean_by(values: Tensor, weights: np.ndarray) -> Tensor:
    """The weighted mean of each row, (n,); 0 for a row without weight."""
    scaled = weights / np.maximum(weights.sum(1, keepdims=True), 1e-12)
    return (values * torch.tensor(scaled).to(values)).sum(1)


class Steps:
    """The batches from the step the trainer has come to, wherever it goes on."""

    def __init__(self, module: PlausibilityTraining) -> None:
        self.module = module

    def __iter__(self) -> Iterator[np.ndarray]:
        return self.module.batches.start_at(self.module.global_step, self.module.steps)


class Progress(lightning.Callback):
    """Counts time and tells the loss; what it knows is kept in checkpoints."""

    def __init__(self, log: Log) -> None:
        self.tell = log
        self.losses: list[float] = []
        self.loss = math.nan  # mean of the last LOG_EVERY steps or fewer
        self.seconds = 0.0

    def on_train_start(self, *_: Any) -> None:
        self.since = time.monotonic()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        now = time.monotonic()
        self.seconds, self.since = self.seconds + now - self.since, now
        self.losses.append(float(outputs["loss"]))
        if len(self.losses) == LOG_EVERY or trainer.global_step == module.steps:
            self.loss, self.losses = sum(self.losses) / len(self.losses), []
            self.tell({"loss": self.loss}, trainer.global_step)

    def state_dict(self) -> dict[str, Any]:
        return {"losses": self.losses, "loss": self.loss, "seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.losses, self.loss = list(state_dict["losses"]), state_dict["loss"]
        self.seconds = state_dict["seconds"]


def fit(
    network: Bilinear,
    known: Known,
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str,
    log: Log = lambda values, step: None,
) -> Fitted:
    """Trains the network in place, going on from folder/last.ckpt if this same training left one there.

    fingerprint names the training: whatever changes its result must change it. Raises MitigateError when the
    checkpoint is of another one."""
    last = folder / "last.ckpt"
    module = PlausibilityTraining(network, known, settings)
    progress = Progress(log)
    precision: Any = native_precision("cpu") if settings.precision == "auto" else settings.precision
    keep_freed_memory()
    network.train()
    with quiet(), interruptible():
        lightning.Trainer(
            max_steps=module.steps,
            accelerator="cpu",
            devices=1,
            precision=precision,
            plugins=[CheckpointFile(fingerprint), LightningEnvironment()],  # even within a job of SLURM
            callbacks=[progress, SaveRegularly(last, settings.checkpoint_every)],
            default_root_dir=folder,
            **ALONE,
        ).fit(module, ckpt_path=last if last.is_file() else None)
    network.eval()
    done = module.steps * settings.batch_size
    return Fitted(module.steps, progress.seconds, done / progress.seconds, progress.loss)
