"""The configuration of a job, and what it names: objects by `_target_`, data, targets, the model that a training or a
probe starts from, scorers, and how statements are labelled.

In tables and metrics, a scorer that measures its role is called by the role, any other by the name it is configured
under (triples.called)."""

import inspect
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError, one_of
from mitigate.load.targets import Wanted, targets_of_statements
from mitigate.measure.base import check_scorer_name
from mitigate.policies import Policy, needs_of, renamed
from mitigate.recipes.settings import Score
from mitigate.score.base import check_name, identified, in_short
from mitigate.score.labeller import Labeller
from mitigate.score.labels import LabelStore, OnWorkers
from mitigate.settings import NOT_ARGUMENTS, check
from mitigate.train.base_model import Start
from mitigate.train.base_model import find_start as find
from mitigate.train.settings import Generator, Training
from mitigate.triples import ROLES, Scorer, called, role_scorers
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
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    for folder in (source.path for source in given.runtime.config_sources if source.provider == "command-line"):
        for group, option in given.runtime.choices.items():
            if all((Path(place) / group / f"{option}.yaml").is_file() for place in (folder, conf)):
                reason = f"the project has its own {group}={option}; rename the file, for example to my_{option}.yaml"
                raise MitigateError(f"{folder}/{group}/{option}.yaml is ignored, because {reason}")
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


# Scorers


NETWORKS = ("minilm", "bert", "crowd2", "frames")  # scorers slow enough to use workers


class Scorers:
    """The scorers of the group `score`. Raises MitigateError where one measures no role, or has a role's name.

    roles: {name in tables: configured name}, e.g. {'regard': 'minilm'}; names: {role: name in tables}, without a role
    that is null. Each scorer is built when it is first needed; an unknown name then raises MitigateError."""

    def __init__(self, score: Score) -> None:
        self.score = score
        for name, node in score.scorers.items():
            if not isinstance(node, dict) or "_target_" not in node or name in ROLES:
                raise MitigateError(
                    f"score.scorers.{name} must be a class and its arguments, such as {{_target_: MODULE.CLASS}}, "
                    "and its name not a role; with `measures: regard` its results count as those of regard"
                )
            if node.get("measures") not in (None, *ROLES):
                raise one_of(f"score.scorers.{name}.measures", node["measures"], ROLES)
        named = {role: getattr(score, role) for role in ROLES} | {"scorers": score.scorers}
        self.names, self.roles = called(named), role_scorers(named)

    @cached_property
    def of_roles(self) -> list[Scorer]:
        """The scorers that score.sentiment and score.regard name, but for a role that is null."""
        settings = {str(getattr(self.score, role)): f"score.{role}" for role in reversed(ROLES)}
        return [self._build(settings[configured], configured, name) for name, configured in self.roles.items()]

    @cached_property
    def extras(self) -> list[Scorer]:
        """The scorers of score.extra, each under its own name in tables: ngram beside minilm has columns of its own. A
        scorer that labels for a role under that name does not label twice."""
        return self.named([name for name in self.score.extra if self.roles.get(name) != name], "score.extra")

    @property
    def labelling(self) -> list[Scorer]:
        """The scorers of both roles and of score.extra. Raises MitigateError when there is none."""
        if not (found := [*self.of_roles, *self.extras]):
            raise MitigateError(
                "score.sentiment, score.regard and score.extra are all empty; set at least one, such as "
                "score.sentiment=vader"
            )
        return found

    def of_policy(self, policy: Policy) -> list[Scorer]:
        """The scorers that a policy reads besides the roles'. The triples that it filters must be labelled by them."""
        return self.named([name for name in policy.reads if name not in self.roles], "scorer in policy.scorers")

    def critic(self, policy: Policy) -> Scorer | None:
        """The classifier of validity by people's ratings, for a policy that needs it. Raises MitigateError where none
        is configured."""
        if needs_of(policy) != "validity":
            return None
        if not self.score.critic:
            raise MitigateError(
                f"policy={policy.name} needs score.critic, which is null; leave score.critic out for the shipped "
                "classifier, or set score.critic.folder=RUN/people_valid"
            )
        return build(self.score.critic, "score.critic")

    def rated(self, held_out: Iterable[str] = ("keyword",)) -> list[Scorer]:
        """The scorers that are compared with people's ratings: those of the roles, and held-out ones by name."""
        return [*self.of_roles, *self.named([name for name in held_out if self.roles.get(name) != name])]

    def named(self, names: Iterable[str], setting: str = "score.scorers") -> list[Scorer]:
        """The scorers configured under these names, which are their names in tables too. setting: where they are
        named."""
        return [self._build(setting, name, name) for name in dict.fromkeys(names)]

    def policy(self, node: DictConfig) -> Policy:
        """The policy, with the names that its scorers have in tables. Raises MitigateError for an unknown scorer, a
        class that is not a policy, and a policy that acts under the name of the baseline."""
        policy = build(node)
        if not isinstance(policy, Policy):
            raise MitigateError(
                f"policy._target_={node.get('_target_')} makes a {type(policy).__name__}, not a policy; begin the "
                "file with `defaults: [both, _self_]`, or derive the class from mitigate.Policy"
            )
        if policy.name == "none" and type(policy) is not Policy:
            raise MitigateError(
                "policy.name=none is reserved for the baseline, which keeps every triple, and this policy acts; set "
                "another name: policy.name=NAME"
            )
        if absent := [role for role in policy.reads if role in ROLES and role not in self.names]:
            raise MitigateError(
                f"policy={policy.name} reads the labels of {' and '.join(absent)}, and score.{absent[0]} is null; "
                f"leave score.{absent[0]} out, or choose a policy without it"
            )
        known = [*self.names, *self.score.scorers]
        if unknown := [name for name in policy.reads if name not in known]:
            raise one_of("scorer in policy.scorers", unknown[0], known)
        return renamed(policy, self.names)

    def _build(self, setting: str, configured: str, name: str) -> Scorer:
        """The scorer configured under that name; `name` is its name in tables."""
        if configured not in self.score.scorers:
            raise one_of(setting, configured, self.score.scorers)
        check_name(configured)
        check_scorer_name(configured)
        arguments = self.score.scorers[configured]
        here = _load(arguments, configured, name)
        if self.score.engine == "local" or configured not in NETWORKS:
            return here
        return OnWorkers(here, partial(_load, arguments, configured, name), self.score.workers)


def _load(arguments: Mapping[str, Any], configured: str, name: str) -> Scorer:
    """The scorer of a class and its arguments."""
    given, setting = {k: v for k, v in arguments.items() if k not in NOT_ARGUMENTS}, f"score.scorers.{configured}"
    return identified(build(given, setting), name, given, imported(given, setting))
