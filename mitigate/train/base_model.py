"""The model that a training or a probe starts from: its folder, its loader, and its prompts for relations."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.models.stored_tensors import CONFIG, read_facts, sha256_of
from mitigate.models.tail_prompts import RELATION_TOKENS, Layout, PromptFormat, read_prompt_format
from mitigate.stages import digest_of_values
from mitigate.words.relations import Relation, prompt_phrases

MODEL_FILES = {".json", ".jinja", ".safetensors", ".txt", ".model"}  # in a Hugging Face folder, the files of the model


@dataclass(frozen=True)
class Start:
    """A model that can be loaded."""

    code: Callable[..., Any]  # loads it, given folder and options
    folder: Path
    weights: str  # a hash of its files
    prompt_format: PromptFormat
    options: Mapping[str, Any] = field(default_factory=dict)
    further: Sequence[Relation] = ()  # relations that it is prompted with besides COMeT's 34
    comet: bool = True  # whether it is prompted with COMeT's 34 at all

    @property
    def phrases(self) -> dict[str, str]:
        """The wording of each relation in its prompts, by name: in training, in the probe and on held-out triples."""
        return prompt_phrases(self.prompt_format.relation, self.further, comet=self.comet)

    @property
    def fingerprint(self) -> str:
        """A hash of everything that its output depends on, but not of where its files are."""
        options = {name: value for name, value in self.options.items() if name != "checkpoint"}
        return digest_of_values(self.code, self.weights, self.prompt_format, options, self.further, self.comet)

    def load(self) -> Any:
        """Load the model. Raises MitigateError where its files cannot be used."""
        try:
            return self.code(folder=self.folder, **self.options)
        except (ValueError, OSError) as error:
            raise MitigateError(str(error)) from error


def find_start(
    code: Callable[..., Any],
    folder: Path,
    *,
    layout: Layout | None = None,
    relation: str | None = None,
    train: bool = True,
    options: Mapping[str, Any] | None = None,
    further: Sequence[Relation] = (),
    comet: bool = True,
) -> Start:
    """Find the model in a Hugging Face folder, loaded by code(folder=..., **options), such as Comet.load.

    layout and relation: of its prompts; None: as it was trained. train: whether it will be trained; otherwise it can
    learn no new words. Of the options, `checkpoint` names a file that belongs to the model. further: relations that it
    is prompted with besides COMeT's 34, or with comet=False in their place.

    Raises MitigateError where it was trained with other prompts, or cannot be prompted so."""
    try:
        how = read_prompt_format(folder, layout, relation)
    except ValueError as error:
        raise MitigateError(str(error)) from error
    prompt_phrases(how.relation, further, comet=comet)  # raises for an unknown wording
    if how.relation == "token" and not train and read_prompt_format(folder).relation != "token":
        raise MitigateError(
            "model.relation=token needs a token for each relation, and this model has none and is not trained here "
            "(train=false); set model.relation=phrase or model.relation=words"
        )
    options = options or {}
    return Start(code, folder, _content(folder, options.get("checkpoint")), how, options, further, comet)


def check_distinct_relations(start: Start) -> None:
    """Raise MitigateError for further relations that have the same tokens in prompts as another relation: the model
    reads only the first few of a phrase. Loads the model if it has further relations."""
    if not start.further or start.prompt_format.relation == "token":
        return
    names: dict[tuple[int, ...], list[str]] = {}
    prompts = start.load().prompts(["a"] * len(start.phrases), list(start.phrases.values()))
    for name, prompt in zip(start.phrases, prompts, strict=True):
        names.setdefault(tuple(prompt), []).append(name)
    further = {relation.name for relation in start.further}
    if same := [group for group in names.values() if len(group) > 1 and further & set(group)]:
        listed = "; ".join(", ".join(f"{name} ({start.phrases[name]!r})" for name in group) for group in same)
        raise MitigateError(
            f"these relations have phrases with the same first {RELATION_TOKENS} tokens, and the generator reads no "
            f"more: {listed}. Give them other phrases, or set model.relation=token, or with data=atomic words"
        )


def origin_facts(start: Start) -> dict[str, str]:
    """The commit on the hub that the weights come from, if they do, for a run's provenance."""
    folder = start.folder  # which the hub's cache names by the commit
    return {"commit of the base model": folder.name} if folder.parent.name == "snapshots" else {}


def _content(folder: Path, checkpoint: str | Path | None) -> str:
    """The hash of a model's files."""
    files = [folder] if folder.is_file() else [path for path in sorted(folder.iterdir()) if path.suffix in MODEL_FILES]
    digest = hashlib.sha256()
    for path in [*files, Path(checkpoint)] if checkpoint else files:
        digest.update(f"{path.name} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def class_of(folder: Path) -> Any:
    """The class that loads the model of a Hugging Face folder, by its config.json. A generator that was trained here
    has the class that it was trained as. Of other models, those that the project's decoder computes are a Comet, the
    others a sequence-to-sequence model or a language model.

    Raises OSError without a config.json, and ValueError for one that is not JSON."""
    from mitigate.models.comet import Comet  # loads PyTorch
    from mitigate.models.decoder import LAYOUTS, unsupported

    config = read_facts(folder / CONFIG)
    layouts = [layout for layout in LAYOUTS.values() if layout.model_type == config.get("model_type")]
    computed = "comet_relation" not in config and any(not unsupported(config, layout) for layout in layouts)
    if ("comet_layout" in config or computed) and not config.get("is_encoder_decoder"):
        return Comet
    # Loading transformers takes five seconds, which a Comet does without.
    from mitigate.models.hf import LanguageModel, Seq2Seq

    return Seq2Seq if config.get("is_encoder_decoder") else LanguageModel
