"""Trains a language model on texts, so that its stories follow them: the loss is of all their tokens."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mitigate.errors import MitigateError
from mitigate.train.comet import Examples, Fitted, Settings, TailModule, fit_module
from mitigate.train.harness import Log
from models.language_model import LanguageModel
from models.text_model import Reader


class Texts(NamedTuple):
    """Training texts, and the weight of each."""

    texts: Sequence[str]
    weights: np.ndarray  # (n,) > 0

    @property
    def examples(self) -> Examples:
        """The same as tails that have no head."""
        nothing = [""] * len(self.texts)
        return Examples(nothing, nothing, self.texts, self.weights)


def check(settings: Settings) -> None:
    """Raises MitigateError for settings that `fit` does not know, before anything is labelled."""
    if settings.keep != "last":
        raise MitigateError(f"trainer.keep={settings.keep} is not for recipe=stories; set trainer.keep=last")
    if settings.vocabulary == "tails":
        raise MitigateError("trainer.vocabulary=tails is not for recipe=stories; set trainer.vocabulary=all, or auto")


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
    """Trains the model in place, going on from the newest whole checkpoint that this same training left in
    folder.

    fingerprint names the training: whatever changes its result must change it. The perplexity of the result is that of
    dev, per token, None where dev is empty. Raises MitigateError when there is nothing to read, for
    trainer.keep=best and trainer.vocabulary=tails, and when the checkpoint is of another training."""
    if not texts.texts:
        raise MitigateError("nothing is left to read; choose another policy or more data")
    check(settings)
    module = TailModule(Reader(model), texts.examples, settings)
    dev_examples = dev.examples if dev.texts else None
    return fit_module(module, folder, fingerprint=fingerprint, dev=dev_examples, log=log, accelerator=accelerator)
