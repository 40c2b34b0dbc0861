"""Training of a generator: from a head and a relation's phrase it learns to predict the tail (Bosselut et al. 2019,
section 2.2)."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as lightning
import torch
from torch import Tensor

from mitigate.errors import MitigateError
from mitigate.train import harness
from mitigate.train.batches import Batches
from mitigate.train.checkpoint_weights import with_frozen, without_frozen
from mitigate.train.checkpoints import Checkpoints
from mitigate.train.harness import Log
from mitigate.train.module import TrainingModule, adamw, held, linear
from mitigate.train.settings import Training as Settings
from mitigate.train.sharding import FullySharded
from mitigate.train.tail_learner import Learner
from mitigate.train.vocabulary import begin_vocabulary
from models.comet import Comet, send

LARGEST = 700.0  # its exp is in the range of a float


class Examples(NamedTuple):
    """Training examples: a triple as three texts, and its weight."""

    heads: Sequence[str]
    phrases: Sequence[str]
    tails: Sequence[str]
    weights: np.ndarray | None = None  # (n,) > 0; None is 1 for all


def learning_rate(settings: Settings, steps: int) -> Callable[[int], float]:
    """The learning rate of each step."""
    if settings.hold is None:
        return linear(settings.lr, settings.warmup, steps)
    return held(settings.lr, settings.warmup, settings.hold, steps)


class Fitted(NamedTuple):
    """The result of a training. The weights are in the trained model."""

    steps: int
    planned: int  # steps by the epochs and min_steps
    ended_by: str  # the setting of the trainer that decided the number of steps
    passes: float  # through the examples
    seconds: float  # of training, interruptions not counted
    examples_per_second: float
    train_loss: float  # per token, mean of the last steps
    dev_perplexity: float | None  # of the weights that are kept
    kept: int  # the step after which the weights are kept


class TailModule(TrainingModule):
    """The loss of a batch of tails, for a learner of any kind."""

    batches: Batches

    def __init__(self, model: Learner, examples: Examples, settings: Settings) -> None:
        prompts, tails = model.prompts(examples.heads, examples.phrases), model.tails(examples.tails)
        lengths = np.array([len(prompt) + len(tail) for prompt, tail in zip(prompts, tails, strict=True)])
        steps = settings.num_steps(len(tails))
        super().__init__(
            Batches(lengths, settings.batch_size, settings.seed),
            steps,
            learning_rate(settings, steps),
            seed=settings.seed,
            clip=settings.clip,
        )
        self.model = model
        self.settings = settings
        self.nll: Callable[..., Tensor] = model.nll
        self.prompts, self.tails = prompts, tails
        weights = np.ones(len(tails)) if examples.weights is None else examples.weights
        self.weights = weights / weights.mean()  # over all examples, so that equal weights change nothing

    def on_fit_start(self) -> None:
        self.model.begin_steps()

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The weighted mean over the batch of each example's mean over the tokens of its tail.

        Each of several processes takes its share of the batch. As their gradients are averaged, the share's sum is
        divided by the mean size of a share, not by the number of examples in this one."""
        share = batch[self.global_rank :: self.trainer.world_size]
        tails = [self.tails[i] for i in share]
        nll = self.nll([self.prompts[i] for i in share], tails)
        lengths = np.array([len(tail) for tail in tails])
        weights = np.repeat(self.weights[share] / lengths, lengths) * self.trainer.world_size / len(batch)
        return (nll * send(weights.astype(np.float32), nll.device)).sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return adamw(self.parameters(), self.settings.lr, self.settings.weight_decay)


class CometModule(TailModule):
    """The loss of a batch of tails for a COMeT, whose loss may be normalised over some tokens, or sharded."""

    model: Comet

    def __init__(self, model: Comet, examples: Examples, settings: Settings) -> None:
        super().__init__(model, examples, settings)
        self.candidates = begin_vocabulary(model.decoder, self.tails, settings.vocabulary)  # None: all tokens

    def configure_model(self) -> None:
        if isinstance(self.trainer.strategy, FullySharded):
            self.trainer.strategy.shard(self.model.decoder)

    def on_fit_start(self) -> None:
        if self.candidates is not None:
            self.nll = partial(self.model.nll, candidates=self.candidates.to(self.device))

    def on_fit_end(self) -> None:
        """Gather a sharded model. Lightning skips on_train_end after it resumes from a checkpoint of the last step."""
        if isinstance(self.trainer.strategy, FullySharded):
            self.trainer.strategy.gather()


class DevPerplexity(lightning.Callback):
    """A callback that evaluates at the end of every epoch and of the run, and saves the best weights in the file
    `best`, if given."""

    def __init__(self, module: TailModule, dev: Examples, best: Path | None, log: Log | None) -> None:
        self.module = module
        self.dev = dev
        self.best = best
        self.write_log = log
        self.found = math.inf  # perplexity of the weights that are kept
        self.kept = 0  # their step

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        if step < self.module.steps and not self.module.batches.ends_epoch(step - 1):
            return
        # All use the first process's figure: theirs could differ in the last digit, and all gather where one saves.
        found = trainer.strategy.broadcast(perplexity(self.module.model, self.dev))
        if not math.isfinite(found):
            raise diverged(f"the dev perplexity after {step:,} steps is {found}")
        if self.write_log and trainer.is_global_zero:
            self.write_log({"dev_perplexity": found}, step)
        if self.best is None or found < self.found:
            self._keep(trainer, found)

    def _keep(self, trainer: lightning.Trainer, found: float) -> None:
        self.found, self.kept = found, trainer.global_step
        if self.best is None:
            return
        weights = trainer.strategy.lightning_module_state_dict()  # gathered from all processes
        if trainer.is_global_zero:
            trainer.strategy.checkpoint_io.save_checkpoint(without_frozen(weights, self.module), self.best)
        trainer.strategy.barrier()  # all processes read the file later

    def state_dict(self) -> dict[str, Any]:
        return {"found": self.found, "kept": self.kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.found, self.kept = state_dict["found"], state_dict["kept"]


def fit(
    model: Learner,
    examples: Examples,
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str,
    dev: Examples | None = None,
    log: Log | None = None,
    **trainer: Any,
) -> Fitted:
    """Train the model in place, resuming from the newest intact checkpoint of the same training in folder.

    fingerprint: identifies the training; any change of its result (model, data, settings) must change it. log: receives
    numbers and their step. trainer: arguments of Lightning's trainer: accelerator, devices, strategy. With several
    devices this is the part of one process (launch.py starts them), and only the first one's model is the trained one.

    Raises MitigateError where there is nothing to learn from, for a checkpoint of another training, and for settings of
    a COMeT with another model (check_settings)."""
    if not len(examples.tails):
        raise MitigateError("there are no training triples; choose another policy or more data")
    if dev is not None and not len(dev.tails):  # a policy may leave none
        dev = None
    if settings.keep == "best" and dev is None:
        raise MitigateError("trainer: keep='best' needs dev triples; give some, or keep='last'")
    if not isinstance(model, Comet):
        check_settings(settings, strategy=trainer.get("strategy", "auto"))
        check_lengths(model, [examples] if dev is None else [examples, dev])
    kind: Any = CometModule if isinstance(model, Comet) else TailModule
    module = kind(model, examples, settings)
    return fit_module(module, folder, fingerprint=fingerprint, dev=dev, log=log, **trainer)


def check_settings(settings: Settings, *, strategy: Any) -> None:
    """Raise MitigateError for settings that only the decoder of this project has, and a model of transformers does
    not."""
    faults = [
        (settings.vocabulary == "tails", "trainer.vocabulary=tails", "auto or all"),
        (strategy not in ("auto", "ddp"), "trainer.strategy=fsdp", "auto or ddp"),
    ]
    if found := [f"{given} (allowed: {allowed})" for holds, given, allowed in faults if holds]:
        raise MitigateError(
            f"{', '.join(found)}: only the project's own decoder (model=comet_minilm, comet_gpt1 or comet) has these "
            "settings, and this model is from transformers; leave them out"
        )


def check_lengths(model: Any, parts: Sequence[Examples]) -> None:
    """Raise MitigateError for texts that are too long for a model of transformers, before the first step."""
    for part in parts:
        try:
            model.check_length(model.prompts(part.heads, part.phrases), [len(tail) for tail in model.tails(part.tails)])
        except ValueError as error:
            raise MitigateError(
                f"{error}. Shorten such heads or leave them out, or use a model with more positions"
            ) from error


def fit_module(
    module: TailModule,
    folder: Path,
    *,
    fingerprint: str,
    dev: Examples | None,
    log: Log | None,
    **trainer: Any,
) -> Fitted:
    """The part of `fit` that all models of texts share."""
    keep_best = module.settings.keep == "best"
    checkpoints = Checkpoints(folder, fingerprint)
    watch = DevPerplexity(module, dev, checkpoints.best if keep_best else None, log) if dev else None
    counts = harness.fit(
        module,
        precision=module.settings.precision,
        checkpoints=checkpoints,
        checkpoint_every=module.settings.checkpoint_every,
        callbacks=[watch] if watch else [],
        log=log,
        **trainer,
    )
    if not math.isfinite(counts.loss):
        raise diverged(f"the mean loss of the last steps is {counts.loss}")
    if keep_best:
        weights = with_frozen(checkpoints.best_weights(), module, checkpoints.best)
        sharded = isinstance(trainer.get("strategy"), FullySharded)  # a share cannot copy whole weights
        module.load_state_dict(weights, assign=sharded)
    settings, num_examples = module.settings, len(module.tails)
    return Fitted(
        steps=module.steps,
        planned=settings.planned_steps(num_examples),
        ended_by=settings.ends_by(num_examples),
        passes=module.steps * settings.batch_size / num_examples,
        seconds=counts.seconds,
        examples_per_second=counts.rate(module.steps),
        train_loss=counts.loss,
        dev_perplexity=watch.found if watch else None,
        kept=watch.kept if watch and keep_best else module.steps,
    )


@torch.no_grad()  # not inference_mode: sharded weights gathered here are those of the next step too
def perplexity(model: Learner, examples: Examples, batch_size: int = 256) -> float:
    """exp of the mean of minus the log-likelihood over all tokens of all tails, their end tokens included; inf where it
    exceeds the range of a float."""
    was_training = model.training
    model.eval()
    prompts, tails = model.prompts(examples.heads, examples.phrases), model.tails(examples.tails)
    order = sorted(range(len(tails)), key=lambda i: len(prompts[i]) + len(tails[i]))  # little is padded
    total = 0.0
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        total += model.nll([prompts[i] for i in batch], [tails[i] for i in batch]).double().sum().item()
    model.train(was_training)
    mean = total / sum(map(len, tails))
    return math.exp(mean) if mean < LARGEST else math.inf


def diverged(sign: str) -> MitigateError:
    """The error of a training that diverged. sign: the evidence."""
    return MitigateError(f"training diverged: {sign}; lower trainer.lr, or raise trainer.warmup")
