"""Teaches a network of models.plausibility which relations hold between two phrases: true triples against the same
with their head, their relation or their tail put in by chance, as in the labelled triples of Li et al. (2016).

What is put in is drawn as often as it occurs in training, which is how the false triples of dev and test were made:
a third of them differs in each part. A corruption that is itself a training triple does not count."""

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
from torch import Tensor
from torch.nn.functional import softplus

from mitigate.train.batches import Batches
from mitigate.train.checkpoints import CheckpointFile, SaveRegularly
from mitigate.train.comet import interruptible, native_precision, quiet
from mitigate.train.memory import keep_freed_memory
from models.plausibility.pairs import in_batches

Log = Callable[[dict[str, float], int], None]
LOG_EVERY = 20  # steps


@dataclass(frozen=True)
class Settings:
    """How to train."""

    epochs: int
    batch_size: int  # of true triples; with corruptions three times as many pairs are read
    learning_rate: float  # reached after the warmup, then falling to 0 along a line
    weight_decay: float = 0.01  # of matrices
    warmup: float = 0.06  # of all steps
    precision: str = "auto"  # bf16-mixed where the processor computes in it, else 32-true
    seed: int = 1
    checkpoint_every: float = 30.0  # seconds


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
        self._held: dict[tuple[int, int], list[int]] = {}
        for head, relation, tail in zip(self.heads, self.relations, self.tails, strict=True):
            self._held.setdefault((head, tail), []).append(relation)

    def holds(self, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """Which relations are known to hold between heads and tails, (n, relations) bool."""
        found = np.zeros((len(heads), len(self.share)), dtype=bool)
        for i, pair in enumerate(zip(heads, tails, strict=True)):
            found[i, self._held.get(pair, [])] = True
        return found


class PlausibilityTraining(lightning.LightningModule):
    """The loss of a batch, and the optimizer."""

    def __init__(self, network: Any, known: Known, settings: Settings) -> None:
        super().__init__()
        self.network = network
        self.known = known
        self.settings = settings
        self.pieces = network.encode(known.phrases)
        lengths = np.array([len(pieces) for pieces in self.pieces])
        self.batches = Batches(lengths[known.heads] + lengths[known.tails], settings.batch_size, settings.seed)
        self.steps = math.ceil(settings.epochs * len(known.heads) / settings.batch_size)

    def train_dataloader(self) -> "Steps":
        return Steps(self)

    def on_train_batch_start(self, batch: np.ndarray, batch_idx: int) -> None:
        step, warm = self.global_step, max(1, round(self.settings.warmup * self.steps))
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.settings.learning_rate * min((step + 1) / warm, (self.steps - step) / self.steps)
        # Each step has random numbers of its own, so that going on from a checkpoint repeats none and skips none.
        torch.manual_seed(int(np.random.SeedSequence([self.settings.seed, step]).generate_state(1)[0]))

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The mean over the batch of -log p(true) - (sum over the three corruptions of log(1 - p)) / 3.

        The corrupted relation is not drawn: the network answers for all, so each counts by its share."""
        known, chance = self.known, np.random.default_rng([self.settings.seed, 2, self.global_step])
        heads, relations, tails = known.heads[batch], known.relations[batch], known.tails[batch]
        drawn = chance.integers(len(known.heads), size=(2, len(batch)))
        first = np.concatenate([heads, known.heads[drawn[0]], heads])
        second = np.concatenate([tails, tails, known.tails[drawn[1]]])
        logits = in_batches(self.network, [self.pieces[i] for i in first], [self.pieces[i] for i in second]).float()
        wrong = torch.tensor(false_weights(known.holds(first, second), relations, known.share)).to(logits)
        right = logits[torch.arange(len(batch)), torch.tensor(relations)]
        return (softplus(-right).sum() + (wrong * softplus(logits)).sum() / 3) / len(batch)

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


def false_weights(holds: np.ndarray, relations: np.ndarray, share: np.ndarray) -> np.ndarray:
    """How much each relation counts as false, (3n, relations) float32, between the pairs of n true triples (by their
    share in training), those with another head and those with another tail (the triple's own relation: 1). What is
    known to hold counts nothing."""
    size = len(relations)
    weights = np.zeros(holds.shape, dtype=np.float32)
    weights[:size] = share
    weights[np.arange(size, 3 * size), np.tile(relations, 2)] = 1
    weights[holds] = 0
    return weights


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
    network: Any,
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
    precision: Any = native_precision() if settings.precision == "auto" else settings.precision
    keep_freed_memory()
    network.train()
    with quiet(), interruptible():
        lightning.Trainer(
            max_steps=module.steps,
            accelerator="cpu",
            devices=1,
            precision=precision,
            plugins=[CheckpointFile(fingerprint)],
            callbacks=[progress, SaveRegularly(last, settings.checkpoint_every)],
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        ).fit(module, ckpt_path=last if last.is_file() else None)
    network.eval()
    done = module.steps * settings.batch_size
    return Fitted(module.steps, progress.seconds, done / progress.seconds, progress.loss)
