"""Training of a generator: from a head and a relation's phrase it learns to predict the tail (Bosselut et al. 2019,
section 2.2).

The tails of ConceptNet train100k have 11,342 of MiniLM's 30,522 tokens. The logits of the others take a third of the
training time, and only teach that these tokens are rare. A decoder with an untrained output bias begins with that
knowledge: each token's bias is the logarithm of its frequency in the tails, unseen tokens share the mass that Good
(1953) estimates for them, and the loss is normalised over the tokens of tails, while perplexity is over all."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pytorch_lightning as lightning
import torch
from pytorch_lightning.strategies import ModelParallelStrategy
from torch import Tensor
from torch.distributed.fsdp import fully_shard

from mitigate.errors import MitigateError
from mitigate.models.comet import Comet, send
from mitigate.models.decoder import Decoder
from mitigate.train import harness
from mitigate.train.harness import Batches, Checkpoints, Log, TrainingModule, adamw, linear
from mitigate.train.settings import Training as Settings

LARGEST = 700.0  # its exp is in the range of a float


class Learner(Protocol):
    """A torch module that learns tails: a COMeT, or a model of transformers with the same prompts."""

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]: ...

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of tails, with their end."""
        ...

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        ...


class Examples(NamedTuple):
    """Training examples: a triple as three texts, and its weight."""

    heads: Sequence[str]
    phrases: Sequence[str]
    tails: Sequence[str]
    weights: np.ndarray | None = None  # (n,) > 0; None is 1 for all


class Fitted(NamedTuple):
    """The result of a training. The weights are in the trained model."""

    steps: int
    planned: int  # steps by the epochs and min_steps
    ended_by: str  # the setting of the trainer that decided the number of steps
    passes: float  # through the examples
    seconds: float  # of training, interruptions not counted
    examples_per_second: float
    train_loss: float  # per token, mean of the last steps
    dev_perplexity: float | None


def learning_rate(settings: Settings, steps: int) -> Callable[[int], float]:
    """The learning rate of each step. With trainer.hold it rises to the peak, stays until that share of the steps, then
    falls to 0 as 1 minus a square root (Hägele et al. 2024)."""
    if settings.hold is None:
        return linear(settings.lr, settings.warmup, steps)
    warm, last = max(1, round(settings.warmup * steps)), min(round(settings.hold * steps), steps - 1)
    return lambda step: settings.lr * min((step + 1) / warm, 1 - (max(0.0, step - last) / (steps - last)) ** 0.5)


class TailModule(TrainingModule):
    """The loss of a batch of tails. The decoder of a COMeT may have a loss over some tokens, or be sharded."""

    batches: Batches

    def __init__(self, model: Learner, examples: Examples, settings: Settings) -> None:
        prompts, tails = model.prompts(examples.heads, examples.phrases), model.tails(examples.tails)
        lengths = np.array([len(prompt) + len(tail) for prompt, tail in zip(prompts, tails, strict=True)])
        steps = settings.num_steps(len(tails))
        batches = Batches(lengths, settings.batch_size, settings.seed)
        super().__init__(batches, steps, learning_rate(settings, steps), seed=settings.seed)
        self.model: Any = model
        self.settings = settings
        self.prompts, self.tails = prompts, tails
        weights = np.ones(len(tails)) if examples.weights is None else examples.weights
        self.weights = weights / weights.mean()  # over all examples, so that equal weights change nothing
        self.candidates = initialise_bias(model.decoder, tails) if isinstance(model, Comet) else None

    def configure_model(self) -> None:
        """Shard the decoder (trainer=fsdp): a block is gathered when it is used; weights outside of blocks, mainly the
        embedding, which is also the head, stay gathered from the first layer to the end of the step."""
        if isinstance(self.trainer.strategy, ModelParallelStrategy):
            for module in (*self.model.decoder.blocks, self.model.decoder):
                fully_shard(module, mesh=self.trainer.strategy.device_mesh["data_parallel"])

    def on_fit_start(self) -> None:
        self.nll: Callable[..., Tensor] = self.model.nll
        if self.candidates is not None:
            self.nll = partial(self.model.nll, candidates=self.candidates.to(self.device))

    def on_fit_end(self) -> None:
        """Give the first process a whole decoder again, and the others one without content. Lightning skips
        on_train_end after it resumes from a checkpoint of the last step."""
        if isinstance(self.trainer.strategy, ModelParallelStrategy):
            weights = self.trainer.strategy.lightning_module_state_dict()
            with torch.device("meta"):
                self.model.decoder = Decoder(self.model.decoder.config)
            if self.trainer.is_global_zero:
                self.load_state_dict(weights, assign=True)

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
        return adamw(self.parameters(), self.settings.lr)


def initialise_bias(decoder: Decoder, tails: Sequence[Sequence[int]]) -> Tensor | None:
    """Set an output bias that no training has changed to the log-frequencies of the tokens of tails. Return these
    tokens (n,), in rising order, over which the loss is normalised; None where it is over all tokens."""
    if decoder.bias is None or bool(decoder.bias.any()):
        return None
    tokens = torch.tensor(list(chain.from_iterable(tails)))
    decoder.bias.data.copy_(log_frequencies(tokens, decoder.config.vocab_size))
    return tokens.unique()


def log_frequencies(tokens: Tensor, vocab_size: int) -> Tensor:
    """The logarithms (vocab_size,) of each token's share of tokens (n,) int. Tokens that do not occur have together the
    share of those that occur once (Good 1953, equation 9), at least 1 in n and at most half."""
    counts = tokens.bincount(minlength=vocab_size).double()
    unseen = counts == 0
    if unseen.any():
        mass = ((counts == 1).sum() / len(tokens)).clamp(1 / len(tokens), 0.5)
        counts = torch.where(unseen, mass * len(tokens) / unseen.sum(), (1 - mass) * counts)
    return (counts / len(tokens)).log().float()


class DevPerplexity(lightning.Callback):
    """A callback that computes the perplexity of dev examples at the end of each epoch and of training."""

    def __init__(self, module: TailModule, dev: Examples, log: Log | None) -> None:
        self.module, self.dev = module, dev
        self.write_log = log
        self.perplexity = math.inf

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        if step < self.module.steps and not self.module.batches.ends_epoch(step - 1):
            return
        # All processes use the figure of the first one: their own could differ in the last digit.
        self.perplexity = trainer.strategy.broadcast(perplexity(self.module.model, self.dev))
        if not math.isfinite(self.perplexity):
            raise diverged(f"the dev perplexity after {step:,} steps is {self.perplexity}")
        if self.write_log and trainer.is_global_zero:
            self.write_log({"dev_perplexity": self.perplexity}, step)

    def state_dict(self) -> dict[str, Any]:
        return {"perplexity": self.perplexity}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.perplexity = state_dict["perplexity"]


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
    """Train the model in place, resuming from the checkpoint of the same training in folder.

    fingerprint: identifies the training; any change of its result (model, data, settings) must change it. log: receives
    numbers and their step. trainer: arguments of Lightning's trainer: accelerator, devices, strategy. With several
    devices this is the part of one process (launch.py starts them), and only the first one's model is the trained one.

    Raises MitigateError where there is nothing to learn from, for texts that are longer than a model of transformers
    reads, for a checkpoint of another training, and when training diverges."""
    if not len(examples.tails):
        raise MitigateError("there are no training triples; choose another policy or more data")
    parts = [examples, dev] if dev is not None and len(dev.tails) else [examples]  # a policy may leave no dev triples
    if not isinstance(model, Comet):
        for part in parts:
            try:
                lengths = [len(tail) for tail in model.tails(part.tails)]
                model.check_length(model.prompts(part.heads, part.phrases), lengths)  # type: ignore[attr-defined]
            except ValueError as error:
                raise MitigateError(f"{error}. Shorten such heads, or use a model with more positions") from error
    return fit_module(TailModule(model, examples, settings), folder, fingerprint, parts[1:], log, **trainer)


def fit_module(
    module: TailModule, folder: Path, fingerprint: str, dev: Sequence[Examples], log: Log | None, **trainer: Any
) -> Fitted:
    """The part of `fit` that all models of texts share. dev: one set of examples, or none."""
    evaluations = [DevPerplexity(module, examples, log) for examples in dev]
    counts = harness.fit(
        module,
        precision=module.settings.precision,
        checkpoints=Checkpoints(folder, fingerprint),
        checkpoint_every=module.settings.checkpoint_every,
        callbacks=evaluations,
        log=log,
        **trainer,
    )
    if not math.isfinite(counts.loss):
        raise diverged(f"the mean loss of the last steps is {counts.loss}")
    settings, num_examples = module.settings, len(module.tails)
    return Fitted(
        steps=module.steps,
        planned=settings.planned_steps(num_examples),
        ended_by=settings.ends_by(num_examples),
        passes=module.steps * settings.batch_size / num_examples,
        seconds=counts.seconds,
        examples_per_second=counts.rate(module.steps),
        train_loss=counts.loss,
        dev_perplexity=evaluations[0].perplexity if evaluations else None,
    )


@torch.no_grad()  # not inference_mode: sharded weights gathered here are those of the next step too
def perplexity(model: Any, examples: Examples, batch_size: int = 256) -> float:
    """The exponential of the mean negative log-likelihood over all tokens of tails, END counted; inf on overflow."""
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
