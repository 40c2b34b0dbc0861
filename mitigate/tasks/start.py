"""The model that a training or a probe starts from: where it is, how it is loaded, and how it is asked about a
relation."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.fingerprints import digest_of_values
from mitigate.relations import asked_with
from models.comet import Layout, Regimen, regimen

MODEL_FILES = {".json", ".safetensors", ".txt", ".model"}  # of a Hugging Face folder, those that make the model


@dataclass(frozen=True)
class Start:
    """A model that is at hand."""

    code: Callable[..., Any]  # loads it, given folder and options; results depend on its source, too
    folder: Path
    weights: str  # a hash of its files
    regimen: Regimen
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, str]:
        """What it is asked with for each relation, by name: in training, in the probe and on held-out triples."""
        return asked_with(self.regimen.relation)

    @property
    def fingerprint(self) -> str:
        """What decides what it generates, wherever its files are; but for the code that loads it."""
        options = {name: value for name, value in self.options.items() if name != "checkpoint"}
        return digest_of_values(self.code.__qualname__, self.weights, self.regimen, options)

    @property
    def identity(self) -> str:
        """The fingerprint, for the stages that are still listed by hand."""
        return self.fingerprint

    def load(self) -> Any:
        """The model. Raises MitigateError where its files cannot be used."""
        try:
            return self.code(folder=self.folder, **self.options)
        except (ValueError, OSError) as error:
            raise MitigateError(str(error)) from error

    def trained(self, code: Callable[..., Any], folder: Path, weights: str) -> "Start":
        """What became of it by training: asked the same way, loaded from a folder of its own."""
        return Start(code, folder, weights, self.regimen)


def find_start(
    code: Callable[..., Any],
    folder: Path,
    *,
    layout: Layout | None = None,
    relation: str | None = None,
    train: bool = True,
    options: Mapping[str, Any] | None = None,
) -> Start:
    """The model in a Hugging Face folder, loaded by code(folder=..., **options), such as models.comet.Comet.load.

    layout and relation: how it is asked; None: as it was trained. train: whether it will be trained; one that is not
    knows no new words. Of the options, `checkpoint` names a file that belongs to the model.

    Raises MitigateError where it was trained to be asked another way, or cannot be asked so."""
    try:
        how = regimen(folder, layout, relation)
    except ValueError as error:
        raise MitigateError(str(error)) from error
    asked_with(how.relation)
    if how.relation == "token" and not train and regimen(folder).relation != "token":
        raise MitigateError(
            "model.relation=token asks with a word of each relation's own, which this model was not trained with and "
            "will not be (train=false). Say model.relation=phrase or words"
        )
    options = options or {}
    return Start(code, folder, _content(folder, options.get("checkpoint")), how, options)


def _content(folder: Path, checkpoint: str | Path | None) -> str:
    """The hash of a model's files."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix in MODEL_FILES]
    found = hashlib.sha256()
    for path in [*files, Path(checkpoint)] if checkpoint else files:
        with path.open("rb") as file:
            found.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return found.hexdigest()
