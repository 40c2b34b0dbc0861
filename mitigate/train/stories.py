"""Training of a language model on texts, so that its stories follow them: the loss is over all their tokens."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from mitigate.errors import MitigateError
from mitigate.train.comet import Examples, Fitted, Settings, TailModule, fit_module
from mitigate.train.harness import Log
from models.hf import LanguageModel


class Texts(NamedTuple):
    """Training texts, and the weight of each."""

    texts: Sequence[str]
    weights: np.ndarray  # (n,) > 0

    @property
    def examples(self) -> Examples:
        """The texts as tails without a head."""
        nothing = [""] * len(self.texts)
        return Examples(nothing, nothing, self.texts, self.weights)


def check(settings: Settings) -> None:
    """Raise MitigateError for settings that `fit` does not support, before anything is labelled."""
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
    """Train the model in place, resuming from the newest intact checkpoint of the same training in folder.

    fingerprint: identifies the training; any change of its result must change it. The perplexity of the result is that
    of dev, per token, None where dev is empty. Raises MitigateError when there is nothing to read, for
    trainer.keep=best and trainer.vocabulary=tails, and when the checkpoint is of another training."""
    if not texts.texts:
        raise MitigateError("no text is left to train on; choose another policy or more data")
    check(settings)
    module = TailModule(Reader(model), texts.examples, settings)
    dev_examples = dev.examples if dev.texts else None
    return fit_module(module, folder, fingerprint=fingerprint, dev=dev_examples, log=log, accelerator=accelerator)


class Reader(nn.Module):
    """A language model whose tails are whole texts, with the methods that training asks for."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        before = model.tokenizer("")["input_ids"]
        self.start = [int(token) for token in before] or [model.end]  # as GPT-2 begins texts

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens before each text: its start, for every head and phrase."""
        return [self.start for _ in heads]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, cut where the model's positions end, and END."""
        positions = self.model.positions
        most = None if positions is None else positions - len(self.start)
        texts = self.model.tokenizer(list(tails), add_special_tokens=False)["input_ids"] if tails else []
        return [[*text[:most], self.model.end] for text in texts]

    def begin_steps(self) -> None:
        """Prepare the process that trains."""
        self.model.begin_steps()

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the texts, in order."""
        return self.model.nll(prompts, tails)
