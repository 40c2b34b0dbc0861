"""Has a language model read texts, so that it tells its stories with what they say: the loss is of all their words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytorch_lightning as pl
from lightning_fabric.plugins.environments import LightningEnvironment

from mitigate.errors import MitigateError
from mitigate.train.checkpoints import CheckpointFile, SaveRegularly
from mitigate.train.comet import (
    ALONE,
    CometModule,
    DevPerplexity,
    Examples,
    Fitted,
    Log,
    Progress,
    Settings,
    interruptible,
    native_precision,
    quiet,
)
from mitigate.train.memory import keep_freed_memory
from models.comet import Comet
from models.language_model import LanguageModel
from models.reading import Reader


class Texts(NamedTuple):
    """What to read, and how much each text counts beside the others."""

    texts: Sequence[str]
    weights: np.ndarray  # (n,) > 0

    @property
    def examples(self) -> Examples:
        """The same as tails that have no head."""
        nothing = [""] * len(self.texts)
        return Examples(nothing, nothing, self.texts, self.weights)


class ReadingModule(CometModule):
    """The loss of a batch, and the optimizer, for a language model of any kind."""

    def on_fit_start(self) -> None:
        """Nothing is padded or compiled here: the model is its library's own."""


def fit(
    model: LanguageModel,
    texts: Texts,
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str,
    dev: Texts,
    accelerator: str = "auto",
    log: Log | None = None,
) -> Fitted:
    """Trains the model in place, going on from folder/last.ckpt if this same training left one there.

    fingerprint names the training: whatever changes its result must change it. The perplexity of the result is that of
    dev, per token, and not told where dev is empty. Raises MitigateError when there is nothing to read, for
    trainer.keep=best, and when the checkpoint is of another training."""
    if not texts.texts:
        raise MitigateError("nothing is left to read; choose another policy or more data")
    if settings.keep != "last":
        raise MitigateError(f"trainer.keep={settings.keep} is not for recipe=stories; say trainer.keep=last")
    last = folder / "last.ckpt"
    learner = cast(Comet, Reader(model))  # in all that training asks of it
    module = ReadingModule(learner, texts.examples, settings)
    progress = Progress(module, log)
    watch = DevPerplexity(module, dev.examples, None, log) if dev.texts else None
    saving = SaveRegularly(last, settings.checkpoint_every)  # after the others, whose state it saves
    precision: Any = native_precision(accelerator) if settings.precision == "auto" else settings.precision
    keep_freed_memory()
    learner.train()
    with quiet(), interruptible():
        pl.Trainer(
            accelerator=accelerator,
            devices=1,
            max_steps=module.steps,
            precision=precision,
            plugins=[CheckpointFile(fingerprint), LightningEnvironment()],  # even within a job of SLURM
            callbacks=[callback for callback in (progress, watch, saving) if callback],
            default_root_dir=folder,
            **ALONE,
        ).fit(module, ckpt_path=last if last.is_file() else None)
    learner.eval()
    return Fitted(
        module.steps, progress.seconds, progress.rate(module.steps), progress.loss, watch.found if watch else None
    )
