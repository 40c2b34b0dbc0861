"""Fits COMeT: given a head and a relation's phrase, it learns to say the tail (Bosselut et al. 2019, section 2.2)."""

import logging
import math
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments import LightningEnvironment
from torch import Tensor
from tqdm import tqdm

from mitigate.errors import MitigateError, one_of
from mitigate.train.batches import Batches
from mitigate.train.checkpoints import CheckpointFile, SaveRegularly
from mitigate.train.memory import keep_freed_memory
from mitigate.train.sharding import FullySharded
from models.comet import Comet
from models.compiled import PaddedNll, send

PRECISIONS = ("auto", "bf16-mixed", "32-true")
Log = Callable[[dict[str, float], int], None]
Compile = Literal["auto"] | bool
LOG_EVERY = 20  # steps


class Examples(NamedTuple):
    """What to learn from: a triple as three texts, and how much it counts beside the others."""

    heads: Sequence[str]
    phrases: Sequence[str]
    tails: Sequence[str]
    weights: np.ndarray | None = None  # (n,) > 0; None is 1 for all


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults suit a warm-started MiniLM; COMeT's own are lr 1e-5 and 100,000 steps."""

    max_epochs: int = 2
    max_steps: int | None = None  # if given, the run ends there at the latest
    batch_size: int = 64
    lr: float = 3e-4  # reached after the warmup, then falling to 0 along a line
    warmup: float = 0.002  # of all steps
    weight_decay: float = 0.01  # of matrices
    clip: float = 1.0  # largest norm of the gradient
    precision: str = "auto"  # bf16-mixed where the hardware computes in it, else 32-true
    seed: int = 1
    checkpoint_every: float = 30.0  # seconds
    keep: Literal["last", "best"] = "last"
    """Which weights are kept. The last ones: the learning rate has then fallen to 0, and no dev triple, filtered
    or not, has had a say. "best" takes those of the epoch with the lowest dev perplexity."""

    def __post_init__(self) -> None:
        checks = [
            (self.max_epochs >= 1, f"max_epochs={self.max_epochs} must be at least 1"),
            (self.max_steps is None or self.max_steps >= 1, f"max_steps={self.max_steps} must be null or at least 1"),
            (self.batch_size >= 1, f"batch_size={self.batch_size} must be at least 1"),
            (self.lr > 0, f"lr={self.lr} must be above 0"),
            (0 <= self.warmup < 1, f"warmup={self.warmup} must be a share of the steps, at least 0 and below 1"),
            (self.weight_decay >= 0, f"weight_decay={self.weight_decay} must be at least 0"),
            (self.clip > 0, f"clip={self.clip} must be above 0"),
            (self.precision in PRECISIONS, f"precision={self.precision!r} must be one of {', '.join(PRECISIONS)}"),
            (self.checkpoint_every > 0, f"checkpoint_every={self.checkpoint_every} must be above 0 seconds"),
            (self.keep in ("last", "best"), f"keep={self.keep!r} must be 'last' or 'best'"),
        ]
        if faults := [fault for holds, fault in checks if not holds]:
            raise MitigateError("trainer: " + "; ".join(faults))

    def num_steps(self, num_examples: int) -> int:
        """As many batches as hold each example max_epochs times."""
        steps = math.ceil(self.max_epochs * num_examples / self.batch_size)
        return steps if self.max_steps is None else min(steps, self.max_steps)


class Fitted(NamedTuple):
    """What came of it. The weights are in the model that was given."""

    steps: int
    seconds: float  # of training, interruptions not counted
    examples_per_second: float
    train_loss: float  # per token, mean of the last steps
    dev_perplexity: float | None  # of the weights that are kept


class CometModule(pl.LightningModule):
    """The loss of a batch, and the optimizer."""

    def __init__(self, comet: Comet, examples: Examples, settings: Settings, compiled: Compile = False) -> None:
        super().__init__()
        self.comet = comet
        self.compiled = compiled
        self.nll = comet.nll
        self.settings = settings
        self.prompts = comet.prompts(examples.heads, examples.phrases)
        self.tails = comet.tails(examples.tails)
        weights = np.ones(len(self.tails)) if examples.weights is None else examples.weights
        self.weights = weights / weights.mean()  # over all examples, so that equal weights change nothing
        self.steps = settings.num_steps(len(self.tails))
        lengths = np.array([len(prompt) + len(tail) for prompt, tail in zip(self.prompts, self.tails, strict=True)])
        self.batches = Batches(lengths, settings.batch_size, settings.seed)

    def configure_model(self) -> None:
        if isinstance(self.trainer.strategy, FullySharded):
            self.trainer.strategy.shard(self.comet.decoder)

    def on_fit_start(self) -> None:
        on_gpu = self.device.type == "cuda"
        compiled = on_gpu and self.trainer.world_size == 1 if self.compiled == "auto" else self.compiled
        if on_gpu or compiled:
            self.nll = PaddedNll(self.comet, compiled)

    def train_dataloader(self) -> "Steps":
        return Steps(self)

    def on_train_batch_start(self, batch: np.ndarray, batch_idx: int) -> None:
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.lr
        # Each step has random numbers of its own, so that going on from a checkpoint repeats none and skips none.
        seed = np.random.SeedSequence([self.settings.seed, self.global_step, self.global_rank])
        torch.manual_seed(int(seed.generate_state(1)[0]))

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The weighted mean over the batch of each example's mean over the tokens of its tail.

        Of several processes each takes its share of the batch; as their gradients are averaged, the share's
        sum is divided by the size of a share and not by what this one happens to hold."""
        share = batch[self.global_rank :: self.trainer.world_size]
        tails = [self.tails[i] for i in share]
        nll = self.nll([self.prompts[i] for i in share], tails)
        lengths = np.array([len(tail) for tail in tails])
        weights = np.repeat(self.weights[share] / lengths, lengths) * self.trainer.world_size / len(batch)
        return (nll * send(weights.astype(np.float32), nll.device)).sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        groups = [
            {"params": [p for p in self.parameters() if p.ndim > 1], "weight_decay": self.settings.weight_decay},
            {"params": [p for p in self.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.settings.lr, fused=True)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Lightning itself refuses to clip for a fused optimizer.
        torch.nn.utils.clip_grad_norm_(self.parameters(), self.settings.clip)

    @property
    def lr(self) -> float:
        """The learning rate of the step to come: up during the warmup, then down to 0 at the end."""
        step = self.global_step
        warm = max(1, round(self.settings.warmup * self.steps))
        return self.settings.lr * min((step + 1) / warm, (self.steps - step) / max(1, self.steps - warm), 1.0)


class Steps:
    """The batches from the step the trainer has come to. Lightning does not fast-forward a loader of its own when
    it goes on in the middle of an epoch; this one asks."""

    def __init__(self, module: CometModule) -> None:
        self.module = module

    def __iter__(self) -> Iterator[np.ndarray]:
        return self.module.batches.start_at(self.module.global_step, self.module.steps)


class Progress(pl.Callback):
    """Counts steps, time and loss for the progress bar, the log and the result."""

    def __init__(self, module: CometModule, log: Log | None) -> None:
        self.module = module
        self.tell = log  # Lightning puts a method of its own under the name `log`
        self.losses: deque[Tensor] = deque(maxlen=LOG_EVERY)
        self.loss = math.nan  # mean of the last steps
        self.seconds = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        hidden = None if trainer.is_global_zero else True  # None: hidden unless stderr is a terminal
        self.bar = tqdm(total=self.module.steps, initial=trainer.global_step, desc="train", unit="step", disable=hidden)
        self.strategy = trainer.strategy
        self.since = time.monotonic()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.losses.append(outputs["loss"].detach())
        self.bar.update()
        step = trainer.global_step
        if step % LOG_EVERY == 0 or step == self.module.steps:
            self._count_time()
            self.loss = float(self._losses().mean())
            self.bar.set_postfix_str(f"loss {self.loss:.3f}", refresh=False)
            if self.tell and trainer.is_global_zero:
                lr = trainer.optimizers[0].param_groups[0]["lr"]
                self.tell({"loss": self.loss, "lr": lr, "examples_per_second": self.rate(step)}, step)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.bar.close()

    def rate(self, step: int) -> float:
        """Examples a second up to a step."""
        return step * self.module.settings.batch_size / self.seconds

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


class DevPerplexity(pl.Callback):
    """Evaluates at the end of every epoch and of the run; keeps the best weights in a file if one is named."""

    def __init__(self, module: CometModule, dev: Examples, best: Path | None, log: Log | None) -> None:
        self.module = module
        self.dev = dev
        self.best = best
        self.tell = log
        self.found = math.inf  # perplexity of the weights that are kept

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        if step < self.module.steps and not self.module.batches.ends_epoch(step - 1):
            return
        # All go by the first process's figure: theirs could differ by a last digit, and where one saves, all gather.
        found = trainer.strategy.broadcast(perplexity(self.module.comet, self.dev))
        if self.tell and trainer.is_global_zero:
            self.tell({"dev_perplexity": found}, step)
        if self.best is None:
            self.found = found
        elif found < self.found:
            self.found = found
            weights = trainer.strategy.lightning_module_state_dict()  # gathered from all processes
            if trainer.is_global_zero:
                trainer.strategy.checkpoint_io.save_checkpoint(weights, self.best)
            trainer.strategy.barrier()  # all will read it

    def state_dict(self) -> dict[str, Any]:
        return {"found": self.found}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.found = state_dict["found"]


def fit(
    comet: Comet,
    examples: Examples,
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str,
    dev: Examples | None = None,
    log: Log | None = None,
    compile: Compile = False,
    **trainer: Any,
) -> Fitted:
    """Trains comet in place, going on from folder/last.ckpt if this same training left one there.

    fingerprint names the training: whatever changes its result (model, data, settings) must change it. log gets
    numbers and the step they belong to. compile has steps compiled and replayed (models/compiled.py); "auto" does so on
    one GPU. trainer is passed on to Lightning: accelerator, devices, strategy. Of several devices this is the part of
    one process (launch.py starts them); only the first one's comet is then the trained one.

    Raises MitigateError when there is nothing to learn from, or the checkpoint is of another training."""
    if not len(examples.tails):
        raise MitigateError("no triple is left to train on; choose another policy or more data")
    if dev is not None and not len(dev.tails):  # a policy may leave none
        dev = None
    if settings.keep == "best" and dev is None:
        raise MitigateError("trainer: keep='best' needs dev triples; give some, or keep='last'")
    if compile not in ("auto", True, False):
        raise one_of("trainer.compile", compile, ("auto", "true", "false"))
    last, best = folder / "last.ckpt", folder / "best.ckpt"
    checkpoints = CheckpointFile(fingerprint)
    module = CometModule(comet, examples, settings, compile)
    progress = Progress(module, log)
    watch = DevPerplexity(module, dev, best if settings.keep == "best" else None, log) if dev else None
    saving = SaveRegularly(last, settings.checkpoint_every)  # after the others, whose state it saves
    precision: Any = settings.precision
    if precision == "auto":
        precision = native_precision(trainer.get("accelerator", "auto"))
    keep_freed_memory()
    comet.train()
    with quiet(), interruptible():
        pl.Trainer(
            **{"accelerator": "auto", "devices": 1, **trainer},
            max_steps=module.steps,
            precision=precision,
            plugins=[checkpoints, LightningEnvironment()],  # even within a job of SLURM, which has another in mind
            callbacks=[callback for callback in (progress, watch, saving) if callback],
            default_root_dir=folder,
            **ALONE,
            use_distributed_sampler=False,
        ).fit(module, ckpt_path=last if last.is_file() else None)
    comet.eval()
    if settings.keep == "best":
        state = checkpoints.load_checkpoint(best)
        comet.load_state_dict({name: state[f"comet.{name}"] for name in comet.state_dict()}, assign=True)
    return Fitted(
        steps=module.steps,
        seconds=progress.seconds,
        examples_per_second=progress.rate(module.steps),
        train_loss=progress.loss,
        dev_perplexity=watch.found if watch else None,
    )


@torch.no_grad()  # not inference_mode: sharded weights gathered here are those of the next step too
def perplexity(comet: Comet, examples: Examples, batch_size: int = 256) -> float:
    """exp of the mean of minus the log-likelihood over all tokens of all tails, their end tokens counted."""
    was_training = comet.training
    comet.eval()
    prompts, tails = comet.prompts(examples.heads, examples.phrases), comet.tails(examples.tails)
    order = sorted(range(len(tails)), key=lambda i: len(prompts[i]) + len(tails[i]))
    total = 0.0
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        total += comet.nll([prompts[i] for i in batch], [tails[i] for i in batch]).double().sum().item()
    comet.train(was_training)
    return math.exp(total / sum(map(len, tails)))


def native_precision(accelerator: str = "auto") -> str:
    """bf16-mixed where the hardware computes in bf16 itself; elsewhere bf16 is slower than float32."""
    if accelerator != "cpu" and torch.cuda.is_available():
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16-mixed" if native else "32-true"


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C stays a KeyboardInterrupt: Lightning would end the process itself, and turn a deaf ear to a second one."""
    try:
        yield
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise KeyboardInterrupt from end


ALONE: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
"""What Lightning's Trainer leaves to us: records, checkpoints, and what is said."""


@contextmanager
def quiet() -> Iterator[None]:
    """Without what Lightning has to say about itself."""
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
