"""The configuration of a job, and what it names: objects by `_target_`, data, targets, the model that a training or a
probe starts from, and how statements are labelled."""

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from mitigate.cache import LabelStore
from mitigate.errors import MitigateError
from mitigate.load.targets import Wanted, targets_of_statements
from mitigate.policies import Policy
from mitigate.score.base import in_short
from mitigate.score.labeller import Labeller
from mitigate.settings import NOT_ARGUMENTS, check
from mitigate.train.base_model import Start
from mitigate.train.base_model import find_start as find
from mitigate.train.settings import Generator, Training
from mitigate.triples import Scorer
from mitigate.words import targets as words
from mitigate.words.relations import Relation
from mitigate.words.targets import LISTED, PAPER, TargetList, choose_targets, list_of, notice_of_own

DESCRIBED = {"data": ("attribution", "licence", "demonstration"), "model": ("base", "licence")}
WHERE = ("accelerator", "devices", "strategy")  # settings of a trainer that do not change what is trained


@dataclass(frozen=True)
class Config:
    """The configuration of a job: its groups as objects of their classes (mitigate.settings), and all of it as
    composed, whose other parts are read as its attributes too."""

    node: DictConfig
    groups: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.groups[name] if name in self.groups else getattr(self.node, name)

    @property
    def call(self) -> dict[str, Any]:
        """The call of this job: arguments after `python -m mitigate`, settings among them (overrides), the folder of
        the sweep that it is part of, and its number there."""
        return plain(self.node.get("call"))

    @property
    def title(self) -> str:
        """The title of the resource; for a file of a user's own its name."""
        return self.data.title or (Path(self.data.path).name if self.data.path else self.data.name)

    def described(self, groups: Sequence[str] = tuple(DESCRIBED)) -> dict[str, dict[str, Any]]:
        """The description of data and model for a page and a model's card; `source` is the data's attribution, or else
        its title."""
        found = {group: {name: getattr(getattr(self, group), name) for name in DESCRIBED[group]} for group in groups}
        return found | {"data": {**found["data"], "source": self.data.attribution or self.title}}

    def load_data(self) -> Any:
        """The data, as the loader of `data` returns it. Raises MitigateError for data that only another recipe
        reads."""
        loaded = self.data.load and build(self.data.load, "data.load")
        if loaded is None or loaded.kind == "stories":
            raise MitigateError(
                f"data={self.data.name} is for recipe={'stories' if loaded else 'kge'}, and recipe={self.recipe.name} "
                "reads triples or statements; set data=sample, data=triples data.path=FILE or data=statements "
                "data.path=FILE"
            )
        return loaded

    def probed_targets(self, setting: str = "probe.targets") -> Any:
        """The targets that a setting names; None without it. Raises MitigateError for one that seems misspelt."""
        group, _, name = setting.partition(".")
        wanted = getattr(getattr(self, group), name, None)
        if wanted is not None and not self.probe.new_targets:
            words.check_spelling(wanted)
        return wanted

    def named_targets(self) -> Wanted:
        """The targets that recipe.targets names, or where that is null a list or a file in probe.targets; else None."""
        own, probed = self.probed_targets("recipe.targets"), self.probed_targets()
        return own if own is not None or probed in LISTED else probed

    def target_list(self, statements: pl.DataFrame | None = None) -> tuple[TargetList, list[str]]:
        """The paper's targets, and further ones that the configuration names, or where it names none a file of
        statements; and a notice of further ones."""
        named = self.named_targets()
        if statements is None and named is None:
            return PAPER, []
        chosen = choose_targets(named or []) if statements is None else targets_of_statements(named, statements)
        return list_of(chosen), notice_of_own(chosen)

    def shown_targets(self, chosen: pl.DataFrame) -> list[str]:
        """The targets whose bars the page draws: those of recipe.shown, and own ones."""
        return [*self.recipe.shown, *words.not_listed(chosen)[: words.NAMED]]

    def label_cache(self) -> LabelStore:
        """The labels that all runs share."""
        return LabelStore(Path(self.paths.cache) / "labels")

    def labeller(
        self, scorers: Sequence[Scorer], target_list: TargetList, own_relations: Sequence[Relation] = ()
    ) -> Labeller:
        """The labelling of triples and sentences by these scorers: masked as measure.masking states, with cached
        labels."""
        return Labeller(scorers, self.measure.masking, target_list, own_relations, self.label_cache())

    def training(self) -> tuple[Any, dict[str, Any]]:
        """The settings of a training (train.comet.Settings), and its devices."""
        trainer = asdict(self.trainer)
        where = {name: trainer.pop(name) for name in WHERE}
        return Training(**trainer | {"seed": self.seed}), where


def configured(node: DictConfig) -> Config:
    """A composed configuration with its groups built. Raises MitigateError for wrong settings."""
    return Config(node, check(plain(node)))


def plain(node: Any) -> Any:
    """A part of the configuration as plain lists and dicts; anything else as it is."""
    node = node.node if isinstance(node, Config) else node
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def use_folders(given: Any, conf: Path) -> None:
    """Let the modules in the current folder and that of --config-dir be imported, of the latter also in processes
    started from here. Raises MitigateError where a chosen file there is not read, since the project's own has its name.

    given: Hydra's own settings; conf: the project's folder."""
    sys.path += [] if (current := str(Path.cwd())) in sys.path else [current]
    for folder in (source.path for source in given.runtime.config_sources if source.provider == "command-line"):
        for group, option in given.runtime.choices.items():
            if all((Path(place) / group / f"{option}.yaml").is_file() for place in (folder, conf)):
                own = f"the project has its own {group}={option}; rename the file, for example to my_{option}.yaml"
                raise MitigateError(f"{folder}/{group}/{option}.yaml is ignored, because {own}")
        if folder not in sys.path:
            sys.path.append(folder)
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), folder]))


def build(node: Any, setting: str = "", /, **more: Any) -> Any:
    """The object of a part of the configuration: what its `_target_` names, called with its other keys and with `more`.
    Raises MitigateError for its faults. setting: the name of the part, where the part does not contain it."""
    where = setting or node._get_full_key("")
    given = {key: value for key, value in plain(node).items() if key not in NOT_ARGUMENTS}
    if "_target_" in given:
        imported(given, where)  # its error says which name is wrong, Hydra's does not
    try:
        return instantiate(given, _convert_="all", **more)
    except (InstantiationException, SystemExit) as error:
        cause: Any = error.__cause__ or error
        is_ours = str(given.get("_target_")).startswith(("mitigate.", "models."))
        if isinstance(cause, MitigateError) or (is_ours and isinstance(cause, ValueError | OSError)):
            raise MitigateError(str(cause)) from cause
        if is_ours and not (isinstance(cause, TypeError) and "argument" in str(cause)):
            raise
        raise MitigateError(f"{where}: {given['_target_']} fails with {in_short(cause)}") from cause


def imported(node: Mapping[str, Any], setting: str) -> Any:
    """The class or function that a part of the configuration names by `_target_`, not called. Raises MitigateError
    where it cannot be imported. hydra.utils.get_object would print the error."""
    target = str(node.get("_target_"))
    module, *names = target.split(".")
    try:
        found: Any = import_module(module)
        for name in names:
            module += f".{name}"
            found = getattr(found, name) if hasattr(found, name) else import_module(module)
    except Exception as error:
        raise MitigateError(
            f"{setting}._target_={target} cannot be imported ({type(error).__name__}: {error}). Set it to "
            "MODULE.CLASS of a module that is installed or is in the current folder or that of --config-dir"
        ) from error
    if not callable(found):
        raise MitigateError(f"{setting}._target_={target} is neither a class nor a function")
    return found


def find_start(settings: Generator, train: bool, further: Sequence[Relation] = (), *, comet: bool = True) -> Start:
    """The model that the group `model` names, with prompts for further relations besides COMeT's 34, or with
    comet=False in their place. train: whether it is trained, or probed as it is.

    Raises MitigateError where the model is not there, cannot be trained with these settings, or was trained with
    prompts of another form."""
    from mitigate.models.hf import check_chat, load_tokenizer, prompt_of, wording
    from mitigate.train.generator import OF_TRANSFORMERS  # loads PyTorch, which other recipes do without

    options = deepcopy(settings.load)
    code = imported(options, "model.load")
    folder = build(settings.folder, "model.folder")
    options.pop("_target_")
    kind = next((kind for kind in OF_TRANSFORMERS if kind.load == code), None)
    if settings.layout == "comet" and kind:
        raise MitigateError(
            f"model.layout=comet does not apply to model={settings.name}, whose prompt is one text without the fixed "
            "places of the original COMeT; set model.layout=packed"
        )
    if not (options.get("lora") or {}).get("rank"):
        options.pop("lora", None)  # its settings then have no effect
    relation: Any = settings.relation
    if options.get("system") is None:
        options.pop("system", None)
    elif train:
        raise MitigateError("model.system is for a model that is probed as it is; set train=false, or leave it out")
    if kind and "prompt" in options:
        try:
            options["prompt"] = prompt_of(folder, options["prompt"], kind.PROMPTS)
            options["relation"] = relation = wording(relation, options["prompt"])
            if options["prompt"] == "chat":
                check_chat(load_tokenizer(folder), folder, options.get("system"))
            elif "system" in options:
                raise MitigateError(f"model.system needs model.prompt=chat, not {options['prompt']}")
        except (ValueError, OSError) as error:
            raise MitigateError(str(error)) from error
    try:
        inspect.signature(code).bind(folder=folder, **options)
    except TypeError as error:
        raise MitigateError(f"model.load: {error}") from error
    how: dict[str, Any] = {"layout": settings.layout, "relation": relation, "train": train}
    return find(code, folder, **how, options=options, further=further, comet=comet)


def check_trained(settings: Generator, train: bool, policy: Policy) -> None:
    """Raise MitigateError where a model is to be trained that cannot be, and where a policy filters the training of one
    that is not trained. settings: of the group `model`."""
    if train and not settings.trainable:
        raise MitigateError(
            f"model={settings.name} cannot be trained here; leave train=true out, or choose model=comet_minilm, or "
            "model=hf with model.base=FOLDER of a causal language model"
        )
    if policy.filters and not train:
        raise MitigateError(
            f"policy={policy.name} changes training triples, and the model is not trained (train=false); set "
            "policy=none"
        )
