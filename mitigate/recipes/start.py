"""The model that a run starts from: trained further, or probed as it is; and how it is asked about a relation."""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hydra.utils import get_object
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.recipes.job import build, plain
from mitigate.relations import asked_with
from models.comet import Regimen, regimen

MODEL_FILES = {".json", ".safetensors", ".txt", ".model"}  # of a Hugging Face folder, those that make the model


@dataclass(frozen=True)
class Start:
    """A model that is at hand."""

    settings: DictConfig  # the configuration's group `model`
    folder: Path
    weights: str  # the hash of its files
    regimen: Regimen

    @property
    def asked(self) -> dict[str, str]:
        """What it is asked with for each relation, by name: in training, in the probe and on held-out triples."""
        return asked_with(self.regimen.relation)

    def load(self) -> Any:
        """The model, with its words and its way to be asked."""
        return build(self.settings.load, folder=self.folder)

    @property
    def identity(self) -> dict[str, Any]:
        """What decides what it says, wherever its files are."""
        load = {name: value for name, value in plain(self.settings.load).items() if name != "checkpoint"}
        return {"load": load, "regimen": self.regimen, "weights": self.weights}

    @property
    def code(self) -> ModuleType:
        """The source that loads it."""
        return sys.modules[get_object(self.settings.load["_target_"]).__module__]


def find_start(config: DictConfig, policy: Policy) -> Start:
    """The model that the configuration names.

    Raises MitigateError where it is not at hand, cannot be trained as is asked, or was trained to be asked another
    way."""
    settings = config.model
    if config.train and not settings.trainable:
        raise MitigateError(
            f"model={settings.name} is probed as it is and cannot be trained here: leave train=true out, or train "
            "model=comet_minilm, or model=comet_gpt1 with model.base=FOLDER of a GPT-1 or GPT-2"
        )
    if policy.changes_training and not config.train:
        raise MitigateError(
            f"policy={policy.name} filters what a model is trained on, and this one is not trained (train=false): its "
            "figures would be called the policy's. Say policy=none"
        )
    folder = build(settings.folder)
    try:
        how = regimen(folder, settings.layout, settings.relation)
    except ValueError as error:
        raise MitigateError(str(error)) from error
    asked_with(how.relation)
    if how.relation == "token" and not config.train and regimen(folder).relation != "token":
        raise MitigateError(
            "model.relation=token asks with a word of each relation's own, which this model was not trained with and "
            "will not be (train=false). Say model.relation=phrase or words"
        )
    return Start(settings, folder, _content(folder, settings.get("init")), how)


def _content(folder: Path, checkpoint: str | None) -> str:
    """The hash of a model's files."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix in MODEL_FILES]
    found = hashlib.sha256()
    for path in [*files, Path(checkpoint)] if checkpoint else files:
        with path.open("rb") as file:
            found.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return found.hexdigest()
