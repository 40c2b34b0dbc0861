"""Checkpoints with a checksum. Training never resumes from a damaged one: the one before the last is kept too.

A file has the bytes of torch.save, then a line with their SHA-256, so that torch.load can still read it."""

import hashlib
import os
import pickle
import time
from pathlib import Path
from typing import Any, BinaryIO

import pytorch_lightning as lightning
import torch
from pytorch_lightning.plugins.io import CheckpointIO

from mitigate.errors import MitigateError
from mitigate.files import replacing
from mitigate.progress import notice

AGREE_EVERY = 10  # steps, with several processes: to agree, they wait for each other and for the GPU
BLOCK = 2**20  # bytes read at a time
MARK = b"\nsha256 "
TRAILER = len(MARK) + 64 + 1  # bytes: the mark, the digest in hexadecimal, a line's end


class DamagedError(MitigateError):
    """A checkpoint whose content changed after it was written."""


class Checkpoints(CheckpointIO):
    """The checkpoints of one training, in a folder of their own: last.ckpt, previous.ckpt, the one before it, and
    best.ckpt, the weights of the best epoch. The fingerprint names the training."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.fingerprint = fingerprint
        self.last, self.previous, self.best = (folder / f"{name}.ckpt" for name in ("last", "previous", "best"))

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Replace the file atomically. Before last.ckpt is replaced it becomes previous.ckpt: whenever the process is
        killed, one of them is complete."""
        path = Path(path)
        with replacing(path) as file:
            hashing: Any = _Hashing(file)
            torch.save({**checkpoint, "fingerprint": self.fingerprint}, hashing)
            file.write(_trailer(hashing.digest))
            file.flush()
            os.fsync(file.fileno())
            if path == self.last and path.is_file():
                path.replace(self.previous)

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        """Load a checkpoint. Raises DamagedError for a damaged file, and MitigateError for one of another training."""
        checkpoint = _load(Path(path))
        if checkpoint["fingerprint"] != self.fingerprint:
            raise MitigateError(
                f"the checkpoint {path} belongs to another training (fingerprint {checkpoint['fingerprint']}, "
                f"expected {self.fingerprint}): its data, model or settings differ. Delete the folder {self.folder} "
                "to train from the beginning, or give the settings it was made with to resume."
            )
        return checkpoint

    def remove_checkpoint(self, path: str | Path) -> None:
        Path(path).unlink(missing_ok=True)

    def newest(self) -> Path | None:
        """The checkpoint to resume from; None to train from the start. Damaged ones are set aside under other names,
        with a notice to the user. Raises MitigateError for one of another training."""
        if self._best_is_lost():
            return None
        damaged: list[str] = []
        found = None
        for path in (self.last, self.previous):
            try:
                if path.is_file():
                    self.load_checkpoint(path)
                    found = path
                    break
            except DamagedError as error:
                damaged.append(f"{error} and was set aside as {_set_aside(path).name}")
        way = f"resumes from {found.name}" if found else "starts again"
        for sentence in damaged:
            notice(f"{sentence}; training {way}.")
        return found

    def best_weights(self) -> dict[str, Any]:
        """The weights in best.ckpt. Raises MitigateError when it is missing or damaged."""
        try:
            if not self.best.is_file():
                raise DamagedError(f"the checkpoint {self.best} is missing")
            found = self.load_checkpoint(self.best)
            return {name: weights for name, weights in found.items() if name != "fingerprint"}
        except DamagedError as error:
            raise MitigateError(
                f"{error}, so the weights of the best epoch are lost. Delete the folder {self.folder} and run the "
                "same command to train from the beginning, or set trainer.keep=last."
            ) from error

    def _best_is_lost(self) -> bool:
        """Return whether best.ckpt is damaged, so that all epochs are to be trained again; if so, no checkpoint is
        left."""
        try:
            if self.best.is_file():
                self.load_checkpoint(self.best)
        except DamagedError as error:
            for path in (self.previous, self.last):  # before best.ckpt, whose damage is the reason
                path.unlink(missing_ok=True)
            notice(f"{error} and was set aside as {_set_aside(self.best).name}; training starts again.")
            return True
        return False


class SaveRegularly(lightning.Callback):
    """A callback that writes a checkpoint every so many seconds of training."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path = path
        self.seconds = seconds

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        self.saved = time.monotonic()

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.world_size > 1 and trainer.global_step % AGREE_EVERY:
            return
        due = time.monotonic() - self.saved >= self.seconds
        if trainer.strategy.broadcast(due):  # all processes save together
            trainer.save_checkpoint(self.path)
            self.saved = time.monotonic()


class _Hashing:
    """A file whose content is hashed while it is written. torch.save writes in order, and uses only these methods."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.digest = hashlib.sha256()

    def write(self, content: Any) -> int:
        self.digest.update(content)
        return self.file.write(content)

    def flush(self) -> None:
        self.file.flush()


def _trailer(digest: Any) -> bytes:
    return MARK + digest.hexdigest().encode() + b"\n"


def _load(path: Path) -> dict[str, Any]:
    """The content of a whole checkpoint, on the CPU. Raises DamagedError for any other file."""
    try:
        with path.open("rb") as file:
            fault = _fault(file)
            if fault:
                raise DamagedError(f"the checkpoint {path} is damaged ({fault})")
            file.seek(0)
            checkpoint = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise MitigateError(f"cannot read the checkpoint {path} ({error.strerror}); check its permissions") from error
    except (EOFError, RuntimeError, pickle.UnpicklingError) as error:
        if isinstance(error, RuntimeError) and "PytorchStreamReader" not in str(error):
            raise  # such as a lack of memory
        raise DamagedError(f"the checkpoint {path} is damaged (it is not a file of torch)") from error
    if not isinstance(checkpoint, dict) or "fingerprint" not in checkpoint:
        raise DamagedError(f"the checkpoint {path} is damaged (it holds no training)")
    return checkpoint


def _fault(file: BinaryIO) -> str | None:
    """The fault in the bytes of a checkpoint; None if they are intact."""
    left = os.fstat(file.fileno()).st_size - TRAILER
    digest = hashlib.sha256()
    while left > 0 and (block := file.read(min(BLOCK, left))):
        digest.update(block)
        left -= len(block)
    trailer = file.read()
    if not trailer.startswith(MARK):
        return "it ends before its checksum"
    return None if trailer == _trailer(digest) else "its checksum is not that of its content"


def _set_aside(path: Path) -> Path:
    """Rename a damaged file, in place of one set aside before."""
    return path.replace(path.with_name(f"{path.name}.damaged"))
