"""Training on several devices of one machine, with a process for each.

This module starts the processes. Lightning would run the whole command in each, which would score, record and write as
many times; here everything except training stays in the one process of the command."""

import os
import tempfile
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins.environments.lightning import find_free_network_port
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.strategies import ModelParallelStrategy

from mitigate.child_processes import Send, share_out
from mitigate.errors import MitigateError
from mitigate.progress import Step, listening, progress
from mitigate.train import comet as training
from mitigate.train.comet import Examples, Fitted, Learner, Settings
from mitigate.train.harness import Checkpoints, Log, quiet, trainer


def fit(
    model: Learner, examples: Examples, settings: Settings, folder: Path, *, log: Log | None = None, **more: Any
) -> Fitted:
    """Run training.fit on each of the devices; more: its further arguments, accelerator, devices and strategy included.

    Every batch is divided, so that the losses are those of one device except for the randomness of dropout. Raises
    MitigateError for devices that do not exist, and the errors of the processes."""
    devices = count_devices(more.get("accelerator", "auto"), more.get("devices", 1))
    if devices == 1:
        return training.fit(model, examples, settings, folder, log=log, **more | {"strategy": "auto"})
    if more["strategy"] == "fsdp":  # whose checkpoints number the optimizer's states in another order
        more["fingerprint"] += "-fsdp"
    # A damaged checkpoint is deleted here, once, so that all processes begin in the same way.
    Checkpoints(folder, more["fingerprint"]).newest()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mitigate-", dir=folder) as place:  # named where the disk is full
        start, trained = Path(place, "start.pt"), Path(place, "trained.pt")
        torch.save(model, start)
        env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(find_free_network_port()), "NODE_RANK": "0"}
        env["WORLD_SIZE"] = str(devices)
        task = (examples, settings, folder, more)
        reported, advance = 0, None
        with ExitStack() as open_steps:
            for message in share_out(_rank, [(rank, env, start, trained, task) for rank in range(devices)]):
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
        model.load_state_dict(torch.load(trained, mmap=True))  # type: ignore[attr-defined]
    return fitted


def _rank(rank: int, env: dict[str, str], start: Path, trained: Path, task: tuple[Any, ...], send: Send) -> None:
    """Train in one of the processes. The first one sends its steps, its log and its result, and saves the weights."""
    os.environ |= env | {"LOCAL_RANK": str(rank)}  # so that Lightning does not start processes
    devices = int(env["WORLD_SIZE"])
    torch.set_num_threads(max(1, torch.get_num_threads() // devices))
    model: Any = torch.load(start, weights_only=False)  # a file of our own
    examples, settings, folder, more = task
    if more.get("strategy") == "fsdp":
        # torch's second FSDP. The first, which Lightning calls "fsdp", supports only CUDA and flattens parameters, some
        # of which decay and others do not.
        more["strategy"] = ModelParallelStrategy(devices, 1, save_distributed_checkpoint=False)
    log = None if rank else lambda values, step: send((values, step))
    with nullcontext() if rank else listening(send):
        fitted = training.fit(model, examples, settings, folder, log=log, **more)
    if rank == 0:
        torch.save(model.state_dict(), trained)
        send(fitted)


def check(settings: Settings, *, accelerator: str, devices: Any, strategy: str) -> None:
    """Raise MitigateError for devices that do not exist, or are more than a batch has triples, before any work."""
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
