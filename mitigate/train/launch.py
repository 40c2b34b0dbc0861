"""Trains on as many devices of one machine as are asked for, a process each.

The processes are ours. Lightning's own way to start them runs the whole command anew in each, which would score,
record and write as many times; here all but training stays in the one process that the command is."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments.lightning import LightningEnvironment, find_free_network_port
from lightning_fabric.utilities.exceptions import MisconfigurationException

from mitigate.errors import MitigateError, one_of
from mitigate.processes import Send, share_out
from mitigate.train import comet as training
from mitigate.train.comet import Examples, Fitted, Log, Settings, quiet
from mitigate.train.sharding import FullySharded
from models.comet import Comet

STRATEGIES = ("auto", "ddp", "fsdp")


def fit(
    comet: Comet, examples: Examples, settings: Settings, folder: Path, *, log: Log | None = None, **more: Any
) -> Fitted:
    """training.fit on each of the devices; more is what else it takes, accelerator, devices and strategy included.

    Every batch is shared out, so that but for the chance in dropout the losses are those of one device. Raises
    MitigateError for devices that are not there, and what any of the processes raises."""
    devices = count_devices(more.get("accelerator", "auto"), more.get("devices", 1))
    if devices == 1:
        return training.fit(comet, examples, settings, folder, log=log, **more | {"strategy": "auto"})
    with tempfile.TemporaryDirectory(prefix="mitigate-") as place:
        start, trained = Path(place, "start.pt"), Path(place, "trained.pt")
        torch.save(comet, start)
        where = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(find_free_network_port()),
            "NODE_RANK": "0",
            "WORLD_SIZE": str(devices),
        }
        threads = max(1, torch.get_num_threads() // devices)
        what = (examples, settings, folder, more)
        for said in share_out(_rank, [(rank, where, threads, start, trained, what) for rank in range(devices)]):
            if isinstance(said, Fitted):
                fitted = said
            elif log:
                log(*said)
        comet.load_state_dict(torch.load(trained, mmap=True))
    return fitted


def check(settings: Settings, *, accelerator: str, devices: Any, strategy: str, compile: Any) -> None:
    """Raises MitigateError where `fit` would, before anything is done."""
    if strategy not in STRATEGIES:
        raise one_of("trainer.strategy", strategy, STRATEGIES)
    if compile not in ("auto", True, False):
        raise one_of("trainer.compile", compile, ("auto", "true", "false"))
    if compile is True and strategy == "fsdp":
        raise MitigateError("trainer.compile=true is for one device; with trainer.strategy=fsdp say auto or false")
    count = count_devices(accelerator, devices)
    if count > settings.batch_size:
        raise MitigateError(
            f"trainer.batch_size={settings.batch_size} is too small to be shared out to {count} devices; give each at "
            "least one triple"
        )


def count_devices(accelerator: str, devices: Any) -> int:
    """How many devices are meant by what Lightning calls accelerator and devices ("auto" is all there are; of CPUs,
    one). Raises MitigateError when they are not there."""
    try:
        with quiet():
            chosen = pl.Trainer(
                accelerator=accelerator,
                devices=devices,
                plugins=[LightningEnvironment()],  # even within a job of SLURM
                logger=False,
                enable_checkpointing=False,
            )
            return chosen.num_devices
    except (MisconfigurationException, TypeError, ValueError) as error:
        raise MitigateError(
            f"trainer.accelerator={accelerator} with trainer.devices={devices}: {error} Allowed are the accelerators "
            "auto, cpu and gpu, and as devices a number or auto, on a gpu also a list such as [0,1]."
        ) from error


def _rank(
    rank: int, where: dict[str, str], threads: int, start: Path, trained: Path, what: tuple[Any, ...], send: Send
) -> None:
    """One process's part. The first one tells what it logs and what came of it, and leaves the weights."""
    os.environ |= where | {"LOCAL_RANK": str(rank)}  # by which Lightning knows that it has not to start any
    torch.set_num_threads(threads)
    comet: Comet = torch.load(start, weights_only=False)  # a file of our own
    examples, settings, folder, more = what
    if more.get("strategy") == "fsdp":
        more["strategy"] = FullySharded(int(where["WORLD_SIZE"]))
    log = None if rank else lambda values, step: send((values, step))
    fitted = training.fit(comet, examples, settings, folder, log=log, **more)
    if rank == 0:
        torch.save(comet.state_dict(), trained)
        send(fitted)
