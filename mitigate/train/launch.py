"""Training on several devices of one machine, with a process for each.

This module starts the processes. Lightning would run the whole command in each, which would score, record and write as
many times; here everything except training stays in the one process of the command."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins.environments.lightning import find_free_network_port
from lightning_fabric.utilities.exceptions import MisconfigurationException

from mitigate.child_processes import Send, share_out
from mitigate.errors import MitigateError, one_of
from mitigate.progress import Step, listening, progress
from mitigate.train import comet as training
from mitigate.train.checkpoints import Checkpoints
from mitigate.train.comet import Examples, Fitted, Settings
from mitigate.train.harness import Log, quiet, trainer
from mitigate.train.sharding import FullySharded
from mitigate.train.tail_learner import Learner

STRATEGIES = ("auto", "ddp", "fsdp")


def fit(
    model: Learner, examples: Examples, settings: Settings, folder: Path, *, log: Log | None = None, **more: Any
) -> Fitted:
    """Run training.fit on each of the devices; more: its further arguments, accelerator, devices and strategy included.

    Every batch is divided, so that the losses are those of one device except for the randomness of dropout. Raises
    MitigateError for devices that do not exist, and the errors of the processes."""
    devices = count_devices(more.get("accelerator", "auto"), more.get("devices", 1))
    if devices == 1:
        return training.fit(model, examples, settings, folder, log=log, **more | {"strategy": "auto"})
    # Damaged checkpoints are set aside here, once, so that all processes resume from the same one.
    Checkpoints(folder, more["fingerprint"]).newest()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mitigate-", dir=folder) as place:  # named where the disk is full
        start, trained = Path(place, "start.pt"), Path(place, "trained.pt")
        torch.save(model, start)
        where = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(find_free_network_port()),
            "NODE_RANK": "0",
            "WORLD_SIZE": str(devices),
        }
        threads = max(1, torch.get_num_threads() // devices)
        what = (examples, settings, folder, more)
        messages = share_out(_rank, [(rank, where, threads, start, trained, what) for rank in range(devices)])
        fitted = _listen(messages, log)
        model.load_state_dict(torch.load(trained, mmap=True))
    return fitted


def check(settings: Settings, *, accelerator: str, devices: Any, strategy: str) -> None:
    """Raise MitigateError for settings that `fit` does not allow, before any work."""
    if strategy not in STRATEGIES:
        raise one_of("trainer.strategy", strategy, STRATEGIES)
    count = count_devices(accelerator, devices)
    if count > settings.batch_size:
        raise MitigateError(
            f"trainer.batch_size={settings.batch_size} is smaller than the number of devices, {count}; set "
            f"trainer.batch_size={count} or more"
        )


def count_devices(accelerator: str, devices: Any) -> int:
    """The number of devices by Lightning's arguments accelerator and devices ("auto": all; one for CPUs). Raises
    MitigateError for devices that do not exist."""
    try:
        with quiet():
            return trainer(accelerator=accelerator, devices=devices).num_devices
    except (MisconfigurationException, TypeError, ValueError) as error:
        raise MitigateError(
            f"trainer.accelerator={accelerator} with trainer.devices={devices}: {error} Allowed: accelerator auto, "
            "cpu or gpu; devices a number or auto, on a GPU also a list such as [0,1]."
        ) from error


def _listen(messages: Iterator[Any], log: Log | None) -> Fitted:
    """Log and report the messages of the first process, and return its result."""
    reported = 0
    with ExitStack() as open_steps:
        advance = None
        for message in messages:
            if isinstance(message, Fitted):
                fitted = message
            elif isinstance(message, Step):
                if advance is None:
                    step = progress(message.name, message.total, message.unit, done=message.before)
                    advance = open_steps.enter_context(step)
                if message.count > reported:
                    advance(message.count - reported)
                    reported = message.count
            elif log:
                log(*message)
    return fitted


def _rank(
    rank: int, where: dict[str, str], threads: int, start: Path, trained: Path, what: tuple[Any, ...], send: Send
) -> None:
    """Train in one of the processes. The first one sends its steps, its log and its result, and saves the weights."""
    os.environ |= where | {"LOCAL_RANK": str(rank)}  # so that Lightning does not start any
    torch.set_num_threads(threads)
    model: Learner = torch.load(start, weights_only=False)  # a file of our own
    examples, settings, folder, more = what
    if more.get("strategy") == "fsdp":
        more["strategy"] = FullySharded(int(where["WORLD_SIZE"]))
    log = None if rank else lambda values, step: send((values, step))
    with nullcontext() if rank else listening(send):
        fitted = training.fit(model, examples, settings, folder, log=log, **more)
    if rank == 0:
        torch.save(model.state_dict(), trained)
        send(fitted)
