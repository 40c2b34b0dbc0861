"""Training of networks (not of embeddings of graphs, or heads on ratings): Lightning's trainer with batches and random
numbers that are functions of the step, checkpoints that survive a kill, progress and logged numbers."""

import logging
import math
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import pytorch_lightning as lightning
import torch
from lightning_fabric.plugins.environments import LightningEnvironment
from pytorch_lightning.plugins.io import CheckpointIO
from torch import Tensor

from mitigate.errors import MitigateError
from mitigate.files import replacing
from mitigate.progress import notice, progress

Log = Callable[[dict[str, float], int], None]
LOG_EVERY = 20  # steps
AGREE_EVERY = 10  # steps; several processes that agree on a checkpoint wait for each other and for the GPU


# The order of examples


WINDOW = 16  # batches whose examples are sorted by length together: enough to leave about 5 % of padding


@dataclass(frozen=True)
class Batches:
    """Batches of indices of examples, each a function of (seed, step), so that a training resumes at any step. Examples
    come in a new random order each epoch, one epoch after the other without a break, so that every batch is full."""

    lengths: np.ndarray  # (n,) int, in tokens: examples of similar length share a batch
    size: int
    seed: int
    _orders: dict[int, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def start_at(self, step: int, stop: int) -> Iterator[np.ndarray]:
        """Yield the batches of steps step to stop - 1, each (size,) int."""
        while step < stop:
            number, place = divmod(step, WINDOW)
            for batch in self._window(number)[place : place + stop - step]:
                yield batch
                step += 1

    def ends_epoch(self, step: int) -> bool:
        """Return whether the batch of this step holds the last example of an epoch."""
        return (step + 1) * self.size // len(self.lengths) > step * self.size // len(self.lengths)

    def _window(self, number: int) -> np.ndarray:  # (WINDOW, size)
        drawn = number * WINDOW * self.size + np.arange(WINDOW * self.size)
        epochs, places = np.divmod(drawn, len(self.lengths))
        examples = np.concatenate([self._order(epoch)[places[epochs == epoch]] for epoch in np.unique(epochs)])
        by_length = examples[np.argsort(self.lengths[examples], kind="stable")].reshape(WINDOW, self.size)
        return np.random.default_rng([self.seed, 1, number]).permutation(by_length)

    def _order(self, epoch: int) -> np.ndarray:
        """The examples (n,) of an epoch in their order."""
        if epoch not in self._orders:
            for old in [other for other in self._orders if abs(other - epoch) > 1]:
                del self._orders[old]
            self._orders[epoch] = np.random.default_rng([self.seed, 0, epoch]).permutation(len(self.lengths))
        return self._orders[epoch]


@dataclass(frozen=True)
class Epochs:
    """An iterable of batches that draws those of an epoch anew in each pass, one epoch after the other."""

    batches: Iterable[Any]
    size: float  # examples in a batch, on average

    def start_at(self, step: int, stop: int) -> Iterator[Any]:
        """The batches of steps step to stop - 1; those before are drawn and dropped."""
        return islice(chain.from_iterable(repeat(self.batches)), step, stop)


# A network in training


class TrainingModule(lightning.LightningModule):
    """A network in training; its loss is `training_step(batch, number)`.

    learning_rate is a function of the step, 0 to steps - 1. Each step has random numbers of its own, from the seed, so
    that a training that resumes from a checkpoint repeats none and skips none; seed=None leaves torch's random numbers
    alone, for a training without checkpoints."""

    def __init__(
        self, batches: Batches | Epochs, steps: int, learning_rate: Callable[[int], float], *, seed: int | None
    ) -> None:
        super().__init__()
        self.batches, self.steps, self.learning_rate, self.seed = batches, steps, learning_rate, seed

    def train_dataloader(self) -> Iterable[Any]:
        return _Steps(self)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.learning_rate(self.global_step)
        if self.seed is not None:
            seed = np.random.SeedSequence([self.seed, self.global_step, self.global_rank])
            torch.manual_seed(int(seed.generate_state(1)[0]))

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Lightning itself refuses to clip for a fused optimizer.
        torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Leave out frozen weights, such as those below low-rank adapters: a training that resumes has loaded them."""
        parameters = self.named_parameters(remove_duplicate=False)
        frozen = {name for name, parameter in parameters if not parameter.requires_grad}
        state = checkpoint["state_dict"]
        checkpoint["state_dict"] = {name: tensor for name, tensor in state.items() if name not in frozen}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["state_dict"] = {**self.state_dict(), **checkpoint.get("state_dict", {})}


class _Steps:
    """The batches from the trainer's present step. Lightning does not fast-forward a loader of its own when it resumes
    in the middle of an epoch; this one reads the step."""

    def __init__(self, module: TrainingModule) -> None:
        self.module = module

    def __iter__(self) -> Iterator[Any]:
        return self.module.batches.start_at(self.module.global_step, self.module.steps)


def linear(peak: float, warmup: float, steps: int) -> Callable[[int], float]:
    """A learning rate that rises to the peak during the warmup, a share of the steps, then falls to 0 at the end."""
    warm = max(1, round(warmup * steps))
    return lambda step: peak * min((step + 1) / warm, (steps - step) / max(1, steps - warm), 1.0)


def adamw(
    parameters: Iterable[torch.nn.Parameter],
    learning_rate: float,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.Optimizer:
    """Fused AdamW of the trainable parameters; matrices decay, biases and norms do not."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=True)


# Checkpoints


class Checkpoints(CheckpointIO):
    """The checkpoint of one training, last.ckpt in a folder of its own. The fingerprint names the training."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder, self.fingerprint, self.last = folder, fingerprint, folder / "last.ckpt"

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Replace the file atomically: whenever the process is killed, there is a whole one."""
        with replacing(Path(path)) as file:
            torch.save({**checkpoint, "fingerprint": self.fingerprint}, file)

    def load_checkpoint(self, path: str | Path, *_: Any, **__: Any) -> dict[str, Any]:
        """Load a checkpoint. Raises MitigateError for one of another training."""
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
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
        """The checkpoint to resume from; None to train from the start, as with a damaged one, which is deleted with a
        notice. Raises MitigateError for one of another training."""
        if not self.last.is_file():
            return None
        try:
            is_whole = ZipFile(self.last).testzip() is None  # torch writes checksums and does not check them
        except BadZipFile:
            is_whole = False
        if not is_whole:
            notice(f"the checkpoint {self.last} is damaged; training starts again.")
            self.last.unlink()
            return None
        self.load_checkpoint(self.last)
        return self.last


# The fit


class Progress(lightning.Callback):
    """A callback that reports steps, logs loss, learning rate and pace, and writes a checkpoint every so many seconds
    of training. Its counts are part of checkpoints."""

    def __init__(
        self, module: TrainingModule, log: Log | None, open_steps: ExitStack, path: Path | None, every: float
    ) -> None:
        self.module, self.path, self.every = module, path, every
        self.write_log = log  # Lightning puts a method of its own under the name `log`
        self.open_steps = open_steps
        self.losses: deque[Tensor] = deque(maxlen=LOG_EVERY)
        self.loss = math.nan  # mean of the last steps
        self.seconds = 0.0  # of training, interruptions not counted

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        reported = progress("train", self.module.steps, "steps", done=trainer.global_step)
        self.advance = self.open_steps.enter_context(reported)
        self.strategy = trainer.strategy
        self.since = self.saved = time.monotonic()

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.losses.append(outputs["loss"].detach())
        self.advance(1)
        step = trainer.global_step
        if step % LOG_EVERY == 0 or step == self.module.steps:
            self._count_time()
            self.loss = float(self._losses().mean())
            if self.write_log and trainer.is_global_zero:
                lr = trainer.optimizers[0].param_groups[0]["lr"]
                self.write_log({"loss": self.loss, "lr": lr, "examples_per_second": self.rate(step)}, step)
        if self.path is None or (trainer.world_size > 1 and step % AGREE_EVERY):
            return
        if trainer.strategy.broadcast(time.monotonic() - self.saved >= self.every):  # all processes save together
            trainer.save_checkpoint(self.path)
            self.saved = time.monotonic()

    def rate(self, step: int) -> float:
        """Examples per second up to a step; 0 before any time was counted."""
        return step * self.module.batches.size / self.seconds if self.seconds else 0.0

    def state_dict(self) -> dict[str, Any]:
        self._count_time()
        return {"losses": list(self._losses()), "loss": self.loss, "seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.losses.extend(state_dict["losses"])
        self.loss, self.seconds = state_dict["loss"], state_dict["seconds"]

    def _losses(self) -> Tensor:  # (steps,), over the shares of all processes
        device = self.strategy.root_device  # those of a checkpoint come to the CPU
        return self.strategy.reduce(torch.stack([loss.to(device) for loss in self.losses]), reduce_op="mean")

    def _count_time(self) -> None:
        now = time.monotonic()
        self.seconds, self.since = self.seconds + now - self.since, now


def fit(
    module: TrainingModule,
    *,
    precision: str,
    checkpoints: Checkpoints | None = None,
    checkpoint_every: float = 30.0,
    callbacks: Sequence[lightning.Callback] = (),
    log: Log | None = None,
    **settings: Any,
) -> Progress:
    """Train in place, resuming from the checkpoint if there is one, and return the counts.

    precision: "auto" is that of native_precision. checkpoint_every: in seconds of training. settings: Lightning's
    accelerator, devices, strategy and deterministic. Raises MitigateError for a checkpoint of another training."""
    start = checkpoints.newest() if checkpoints else None
    if precision == "auto":
        precision = native_precision(settings.get("accelerator", "auto"))
    module.train()
    with quiet(), ExitStack() as open_steps:
        counts = Progress(module, log, open_steps, checkpoints.last if checkpoints else None, checkpoint_every)
        lightning_trainer = trainer(
            **settings,
            max_steps=module.steps,
            precision=precision,
            plugins=[checkpoints] if checkpoints else [],
            callbacks=[*callbacks, counts],  # which saves the state of the others
            default_root_dir=checkpoints.folder if checkpoints else None,
            use_distributed_sampler=False,
        )
        try:
            lightning_trainer.fit(module, ckpt_path=start)
        except SystemExit as end:  # by which Lightning answers Ctrl-C, and it would ignore a second one
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise KeyboardInterrupt from end
    module.eval()
    return counts


def trainer(*, plugins: Sequence[Any] = (), **settings: Any) -> lightning.Trainer:
    """Lightning's trainer of one device, unless settings name more, without Lightning's own records and output."""
    return lightning.Trainer(
        **{"accelerator": "auto", "devices": 1, **settings},
        plugins=[*plugins, LightningEnvironment()],  # even within a job of SLURM, for which it would take another
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def seed(number: int) -> None:
    """Seed all random numbers, among them those of a network's initial weights."""
    lightning.seed_everything(number, verbose=False)


def native_precision(accelerator: str = "auto") -> str:
    """bf16-mixed where the hardware computes in bf16 itself, 32-true elsewhere: emulated, a training step takes twenty
    times as long. ATEN_CPU_CAPABILITY may forbid a processor AVX-512, and so its bf16."""
    if accelerator != "cpu" and torch.cuda.is_available():
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # older versions of PyTorch do not say
        is_allowed = torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2")
        native = is_allowed and bool(has.get("avx512_bf16") or has.get("amx_tile"))
    return "bf16-mixed" if native else "32-true"


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress Lightning's messages about itself."""
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pytorch_lightning|typing_extensions")
        warnings.filterwarnings("ignore", "GPU available but not used")
        yield
