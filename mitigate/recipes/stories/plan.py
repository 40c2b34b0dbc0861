"""What a probe of stories knows, has read and has checked before its first stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError
from mitigate.filter import Policy, check_relations
from mitigate.load.stories import LoadedStories
from mitigate.load.stream import Streamed
from mitigate.load.triples_file import Loaded
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import EmptyTargets
from mitigate.probe.comet import find_devices
from mitigate.recipes.job import build, plain
from mitigate.recipes.loading import known_by_relations, load_data
from mitigate.recipes.model_spec import find_start, training_settings
from mitigate.recipes.outline import Unread
from mitigate.recipes.reporting import origin, title_of
from mitigate.recipes.scorers import Scorers, missing
from mitigate.recipes.targets import shown_targets
from mitigate.runs.label_cache import LabelStore
from mitigate.runs.store import as_parquet, digest_of
from mitigate.tasks.base_model import Start, origin_notices
from mitigate.tasks.corpus import relations_in_training, triples_of
from mitigate.tasks.label import Labeller
from mitigate.tasks.labelling import Labelling, labellings
from mitigate.tasks.stories.generate import Sampling
from mitigate.tasks.stories.train import check_tells
from mitigate.tasks.targets import targets_of_statements, those_about
from mitigate.train import launch
from mitigate.train.comet import Settings
from mitigate.train.stories import check as check_training
from mitigate.words.prompts import prompts
from mitigate.words.relations import with_own
from mitigate.words.target_list import PAPER, TargetList, list_of
from mitigate.words.targets import LISTED, choose_targets

SAMPLING = ("temperature", "top_k", "max_tokens", "fewest", "most")


@dataclass(frozen=True)
class Resource:
    """What the generator is trained on first."""

    corpus: Loaded | Streamed
    policy: Policy
    labeller: Labeller  # that labels it
    settings: Settings  # of the training on it
    where: Mapping[str, Any]
    described: dict[str, dict[str, Any]]  # what the card says of data and model


@dataclass(frozen=True)
class Plan:
    """All that is known and checked before the first stage."""

    asked: pl.DataFrame  # the prompts (columns PROMPTS); of a file, with their stories
    targets: pl.DataFrame  # (target, category)
    how: Sampling
    roles: Mapping[str, str]  # the configured scorers of the roles, by what they are called
    labeller: Labeller  # of the sentences
    labellings: list[Labelling]  # a sentence has no relation, and so one template only
    intervals: Bootstrap
    empty_targets: EmptyTargets
    permutations: int
    generator: str  # what generated the stories, in a few words
    about: dict[str, Any]  # what the run is, as metrics.json begins
    source: str  # the hash of prompts, targets, and what is known of the generator
    shown: list[str]  # targets whose bars the page draws
    device: str = "cpu"
    start: Start | None = None  # the model that generates; None: the stories are from a file
    resource: Resource | None = None  # None: the model is probed as it is
    notices: list[str] = field(default_factory=list)  # of the file, or of the resource

    @property
    def demonstration(self) -> bool:
        """Whether it shows how things work, and claims nothing."""
        return self.resource is not None and self.resource.described["data"]["demonstration"]


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    how = Sampling(seed=config.seed, **{name: config.recipe[name] for name in SAMPLING})
    if is_file(config):
        loaded: LoadedStories = build(config.data.load, _partial_=True)(target_list=_own(config))
        chosen = targets_of_statements(plain(config.probe.targets), loaded.stories)
        stories, notices = those_about(loaded.stories, chosen)
        return _plan(config, stories, chosen, how, "", notices=[*loaded.notices, *notices])
    device = find_devices(config.probe.device, 1)[0]
    if config.recipe.post_train:
        return _with_training(config, how, device)
    policy = Scorers(config.score).policy(config.policy)
    check_policy(policy)
    start = find_start(_with(config, {"train": False}), policy)
    check_tells(start)
    chosen = choose_targets(plain(config.probe.targets))
    more: dict[str, Any] = {"device": device, "start": start, "notices": origin_notices(start)}
    return _plan(config, prompts(chosen, list_of(chosen)), chosen, how, start.weights, **more)


def is_file(config: DictConfig) -> bool:
    """Whether the stories are from a file."""
    return config.data.name == "stories" and config.data.path is not None


def to_download(config: DictConfig) -> list[str]:
    """Downloads of data, model and scorers that are not at hand."""
    groups = [] if is_file(config) else ["data", "model"] if config.recipe.post_train else ["model"]
    return missing(config, groups, Scorers(config.score))


def unread_plan(config: DictConfig) -> Plan:
    """What decides which stages there are, for a rehearsal whose data or models are still to be downloaded."""
    known: Any = Unread(
        start=None if is_file(config) else Unread(), resource=Unread() if config.recipe.post_train else None
    )
    return known  # type: ignore[no-any-return]


def _with_training(config: DictConfig, how: Sampling, device: str) -> Plan:
    """A generator that is trained on a resource first."""
    if config.data.name == "stories":
        raise MitigateError(
            "data=stories has no triples that a generator could learn first (recipe.post_train=true): name a resource "
            "(data=sample or data=cn100k), or set train=false policy=none, or give stories with data.path=FILE"
        )
    described, scorers = origin(config), Scorers(config.score)
    policy = scorers.policy(config.policy)
    check_policy(policy)
    settings, where = training_settings(config)
    if launch.count_devices(where["accelerator"], where["devices"]) > 1:
        raise MitigateError(f"recipe=stories trains on one device, not on trainer.devices={where['devices']}")
    if where["strategy"] == "fsdp" or where["compile"] is True:
        given = "strategy=fsdp" if where["strategy"] == "fsdp" else "compile=true"
        raise MitigateError(f"recipe=stories trains on one device as it is; leave trainer.{given} out")
    launch.check(settings, **where)
    check_training(settings)
    corpus = triples_of(load_data(config))
    relations_in_training(corpus.triples)  # raises where there is none
    check_relations(policy, with_own(corpus.own_relations))
    chosen = choose_targets(plain(config.probe.targets), corpus.triples, config.probe.fewest)
    start = find_start(_with(config, {"train": True, "model": {"trainable": True}}), policy)
    check_tells(start)
    labeller = Labeller(
        scorers=[*scorers.of_roles, *scorers.of_policy(policy)],
        masking=config.measure.masking,
        target_list=list_of(chosen),
        own_relations=corpus.own_relations,
        cache=_cache(config),
    )
    resource = Resource(corpus, policy, labeller, settings, where, described)
    read = as_parquet(corpus.triples) + as_parquet(_words(chosen)) + known_by_relations(corpus.own_relations)
    more: dict[str, Any] = {
        "device": device,
        "start": start,
        "resource": resource,
        "notices": [*origin_notices(start), *corpus.notices],
    }
    return _plan(config, prompts(chosen, list_of(chosen)), chosen, how, start.weights + digest_of(read), **more)


def check_policy(policy: Policy) -> None:
    """Raises MitigateError for one that acts on how a COMeT finds tails or is trained a second time, which no story
    is written with, and for one that needs a critic."""
    if policy.generator is not None:
        raise MitigateError(
            f"policy.generator={policy.generator} is asked by recipe=mitigate and recipe=filter alone; say "
            "policy.generator=null, which leaves the tails of the data"
        )
    if policy.decoding != "none":
        raise MitigateError(
            f"policy={policy.name} acts on the search for tails, and stories are sampled: their figures would be "
            "called the policy's. Set policy=none, or one that filters"
        )
    if policy.tunes or policy.unless_valid:
        raise MitigateError(
            f"policy={policy.name} with policy.tuning={policy.tuning} policy.unless_valid="
            f"{str(policy.unless_valid).lower()} needs the main job; set policy=none, or one that filters by labels"
        )


def _own(config: DictConfig) -> TargetList:
    """The targets that prompts of a file may name."""
    named = plain(config.probe.targets)
    return PAPER if named in LISTED else list_of(named)


def _words(chosen: pl.DataFrame) -> pl.DataFrame:
    return chosen.select("target", "category")


def _with(config: DictConfig, changes: dict[str, Any]) -> DictConfig:
    """The settings with some of them changed: whether the main job's model is trained is said here in other words."""
    return cast(DictConfig, OmegaConf.merge(config, changes))


def _plan(
    config: DictConfig, asked: pl.DataFrame, chosen: pl.DataFrame, how: Sampling, known: str, **more: Any
) -> Plan:
    configured, measure = Scorers(config.score), config.measure
    scorers = configured.labelling
    targets, target_list = _words(chosen), list_of(chosen)
    source = digest_of(as_parquet(asked) + as_parquet(targets) + known.encode() + target_list.content)
    is_trained = more.get("resource") is not None
    generator = _generator(config, is_trained) if "start" in more else title_of(config.data)
    return Plan(
        asked=asked,
        targets=targets,
        how=how,
        roles=configured.roles,
        labeller=Labeller(scorers, measure.masking, target_list, cache=_cache(config)),
        labellings=labellings(scorers, ["paper"]),
        intervals=Bootstrap(resamples=measure.resamples, seed=config.seed),
        empty_targets=measure.empty_targets,
        permutations=config.recipe.permutations,
        generator=generator,
        about={
            "data": config.data.name,
            "fingerprint": source,
            "model": generator,
            "policy": config.policy.name if is_trained else None,
        },
        source=source,
        shown=shown_targets(config, targets),
        **more,
    )


def _generator(config: DictConfig, is_trained: bool) -> str:
    base = config.model.base
    name = "/".join(Path(base).parts[-2:]) if Path(base).is_dir() else base
    return f"{name} after {config.data.name}, policy {config.policy.name}" if is_trained else name


def _cache(config: DictConfig) -> LabelStore:
    return LabelStore(Path(config.paths.cache) / "labels")
