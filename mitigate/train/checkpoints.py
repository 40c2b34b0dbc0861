"""Checkpoints that are whole or not there, and that only the run that wrote them goes on from."""

import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.io import CheckpointIO

from mitigate.errors import MitigateError
from mitigate.files import replacing

AGREE_EVERY = 10  # steps, of several processes: to agree is to wait for each other, and for the GPU


class CheckpointFile(CheckpointIO):
    """Reads and writes checkpoints under a run's fingerprint, through a temporary file beside them."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with replacing(Path(path)) as file:
            torch.save({**checkpoint, "fingerprint": self.fingerprint}, file)

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if checkpoint["fingerprint"] != self.fingerprint:
            raise MitigateError(
                f"the checkpoint {path} is of another training ({checkpoint['fingerprint']}, this one is "
                f"{self.fingerprint}): its data, model or settings differ. Delete it to train anew, or give the "
                "settings it was made with to go on."
            )
        return checkpoint

    def remove_checkpoint(self, path: str | Path) -> None:
        Path(path).unlink(missing_ok=True)


class SaveRegularly(pl.Callback):
    """Writes a checkpoint every so many seconds of training."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path = path
        self.seconds = seconds

    def on_train_start(self, trainer: pl.Trainer, *_: Any) -> None:
        self.saved = time.monotonic()

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        if trainer.world_size > 1 and trainer.global_step % AGREE_EVERY:
            return
        due = time.monotonic() - self.saved >= self.seconds
        if trainer.strategy.broadcast(due):  # all processes save together
            trainer.save_checkpoint(self.path)
            self.saved = time.monotonic()
