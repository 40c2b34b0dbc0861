"""Fits embeddings of a knowledge graph (models.kge), and stops where they rank validation triples best."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as lightning
import torch

from mitigate.errors import MitigateError
from mitigate.train import harness
from mitigate.train.checkpoints import Checkpoints
from mitigate.train.harness import Log, seed
from mitigate.train.kge_losses import KgeTraining, OneVsAll, SharedNegatives
from mitigate.train.kge_settings import Settings
from models.kge.embeddings import Embeddings
from models.kge.ranking import filtered_ranks

__all__ = ["Fitted", "Settings", "fit", "seed", "validation_mrr"]

COUNTS = ("found", "epoch", "stale", "steps")  # of StopAtBest: after the last step, checkpoints alone know them


class Fitted(NamedTuple):
    """The result of a training. The weights of the best evaluation are in the network that was given."""

    steps: int
    epochs: int  # at whose end the weights were best
    seconds: float  # of training and its evaluations, interruptions not counted
    examples_per_second: float  # triples, or queries with loss="all"
    loss: float  # mean of the last steps
    valid_mrr: float  # filtered, of the weights that are kept


class StopAtBest(lightning.Callback):
    """Ranks the validation triples every few epochs, keeps the best weights, and ends the training when several
    evaluations found none better. Its counts are part of checkpoints."""

    def __init__(self, module: KgeTraining, valid: np.ndarray, known: np.ndarray, best: Path, log: Log | None) -> None:
        self.module = module
        self.valid, self.known = valid, known
        self.best = best
        self.write_log = log
        self.found = -1.0  # MRR
        self.epoch = 0
        self.stale = 0  # evaluations since
        self.steps = 0

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self.steps = trainer.global_step
        trainer.should_stop = self.stale >= self.module.settings.patience

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.steps = step = trainer.global_step
        batches = self.module.batches
        epoch = step * batches.size // len(batches.lengths)
        due = batches.ends_epoch(step - 1) and epoch % self.module.settings.evaluate_every == 0
        if not due and step < self.module.steps:
            return
        mrr = validation_mrr(self.module.network, self.valid, self.known)
        if self.write_log:
            self.write_log({"valid_mrr": mrr, "epoch": epoch}, step)
        if mrr > self.found:
            self.found, self.epoch, self.stale = mrr, epoch, 0
            weights = trainer.strategy.lightning_module_state_dict()
            trainer.strategy.checkpoint_io.save_checkpoint(weights, self.best)
        else:
            self.stale += 1
        trainer.should_stop = self.stale >= self.module.settings.patience

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in COUNTS}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name in COUNTS:
            setattr(self, name, state_dict[name])


def fit(
    network: Embeddings,
    train: np.ndarray,
    valid: np.ndarray,
    known: np.ndarray,
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str,
    log: Log | None = None,
    **trainer: Any,
) -> Fitted:
    """Trains the network in place, going on from the newest whole checkpoint that this same training left in folder.

    Triples are (n, 3) int64: head, relation, tail. known: all true ones, test triples too, which are only left out of
    the candidates that validation triples are ranked among. fingerprint names the training: whatever changes its
    result must change it. trainer is passed on to Lightning: accelerator.

    Raises MitigateError when there is nothing to train or to validate on, when training diverges, and when the
    checkpoint is of another training."""
    if not len(train) or not len(valid):
        raise MitigateError(
            f"{len(train):,} training and {len(valid):,} validation triples; embeddings need both: without validation "
            "nothing says when to stop"
        )
    module = (OneVsAll if settings.loss == "all" else SharedNegatives)(network, train, settings)
    checkpoints = Checkpoints(folder, fingerprint)
    watch = StopAtBest(module, valid, known, checkpoints.best, log)
    counts = harness.fit(
        module,
        precision=settings.precision,
        checkpoints=checkpoints,
        checkpoint_every=settings.checkpoint_every,
        callbacks=[watch],
        log=log,
        **trainer,
    )
    state = checkpoints.best_weights()
    network.load_state_dict({name: state[f"network.{name}"] for name in network.state_dict()})
    losses = [float(loss) for loss in counts.losses]
    return Fitted(
        watch.steps, watch.epoch, counts.seconds, counts.rate(watch.steps), float(np.mean(losses)), watch.found
    )


def validation_mrr(network: Embeddings, triples: np.ndarray, known: np.ndarray) -> float:
    """The filtered mean reciprocal rank over heads and tails.

    Raises MitigateError when a score is not a finite number."""
    device = network.entities.device
    try:
        ranks = filtered_ranks(
            network, torch.from_numpy(triples).to(device), torch.from_numpy(known).to(device), len(network.entities)
        )
    except FloatingPointError as error:
        raise MitigateError("kge: training diverged, scores are no finite numbers; lower the learning rate") from error
    return float(torch.cat(ranks).reciprocal().mean())
