"""Training of all networks (except heads on ratings: classifiers.py): Lightning's trainer with its precision,
checkpoints, progress and logged numbers, and without its own output. A TrainingModule has the network and its data."""

import logging
import math
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytorch_lightning as lightning
import torch
from lightning_fabric.plugins.environments import LightningEnvironment
from torch import Tensor

from mitigate.progress import progress
from mitigate.train.checkpoints import Checkpoints, SaveRegularly
from mitigate.train.module import TrainingModule

Log = Callable[[dict[str, float], int], None]
LOG_EVERY = 20  # steps


class Progress(lightning.Callback):
    """A callback that reports steps and logs loss, learning rate and pace. Its counts are part of checkpoints."""

    def __init__(self, module: TrainingModule, log: Log | None, open_steps: ExitStack) -> None:
        self.module = module
        self.write_log = log  # Lightning puts a method of its own under the name `log`
        self.open_steps = open_steps
        self.losses: deque[Tensor] = deque(maxlen=LOG_EVERY)
        self.loss = math.nan  # mean of the last steps
        self.seconds = 0.0  # of training, interruptions not counted

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        reported = progress("train", self.module.steps, "steps", done=trainer.global_step)
        self.advance = self.open_steps.enter_context(reported)
        self.strategy = trainer.strategy
        self.since = time.monotonic()

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

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._count_time()  # a training may stop before the first LOG_EVERY steps

    def rate(self, step: int) -> float:
        """Examples per second up to a step; 0 before any time was counted."""
        return step * self.module.batches.size / self.seconds if self.seconds else 0.0

    def state_dict(self) -> dict[str, Any]:
        self._count_time()
        return {"losses": list(self._losses()), "loss": self.loss, "seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.losses.extend(state_dict["losses"])
        self.loss = state_dict["loss"]
        self.seconds = state_dict["seconds"]

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
    """Train in place, resuming from the newest intact checkpoint if there is one, and return the counts.

    precision "auto" is bf16-mixed where the hardware computes in it, else 32-true. checkpoint_every is in seconds of
    training. settings are Lightning's: accelerator, devices, strategy, deterministic. Raises MitigateError when the
    checkpoint is of another training."""
    start = checkpoints.newest() if checkpoints else None
    if precision == "auto":
        precision = native_precision(settings.get("accelerator", "auto"))
    module.train()
    with quiet(), interruptible(), ExitStack() as open_steps:
        counts = Progress(module, log, open_steps)
        # Saving comes after the others, whose state it saves.
        saving = [SaveRegularly(checkpoints.last, checkpoint_every)] if checkpoints else []
        trainer(
            **settings,
            max_steps=module.steps,
            precision=precision,
            plugins=[checkpoints] if checkpoints else [],
            callbacks=[counts, *callbacks, *saving],
            default_root_dir=checkpoints.folder if checkpoints else None,
            use_distributed_sampler=False,
        ).fit(module, ckpt_path=start)
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
def interruptible() -> Iterator[None]:
    """Keep Ctrl-C a KeyboardInterrupt: Lightning would end the process itself, and ignore a second one."""
    try:
        yield
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise KeyboardInterrupt from end


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress Lightning's messages about itself."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module="pytorch_lightning|typing_extensions")
            warnings.filterwarnings("ignore", "GPU available but not used")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
