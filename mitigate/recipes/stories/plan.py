"""What a probe of stories knows and has checked before anything is told or labelled."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError, one_of
from mitigate.label_cache import LabelStore
from mitigate.load.stories import LoadedStories
from mitigate.measure.harms import EmptyTargets
from mitigate.probe.comet import find_devices
from mitigate.probe.stories import Telling
from mitigate.prompts import prompts
from mitigate.recipes.audit.plan import AuditPlan, Held, Labelling, targets_of_statements, those_about
from mitigate.recipes.job import build, plain
from mitigate.recipes.mitigate.plan import Plan, training_settings
from mitigate.recipes.mitigate.plan import make_plan as plan_training
from mitigate.recipes.scorers import build_scorers
from mitigate.recipes.start import Start, find_start
from mitigate.store import as_parquet, digest_of
from mitigate.targets import choose_targets
from mitigate.train.launch import count_devices
from mitigate.triples import label_columns


@dataclass(frozen=True)
class StoryPlan:
    """All that is known and checked before the first stage."""

    audit: AuditPlan  # how sentences are labelled and measured: as the statements of an audit
    asked: pl.DataFrame  # the prompts (columns PROMPTS); of a file, with their stories
    how: Telling
    start: Start | None  # who tells; None: the stories are from a file
    resource: Plan | None = None  # what the generator learns first; None: it is probed as it is
    notices: list[str] = field(default_factory=list)  # of the file, or of the resource

    @property
    def config(self) -> DictConfig:
        return self.audit.config

    @property
    def demonstration(self) -> bool:
        """Whether it shows how things work, and claims nothing."""
        return self.resource is not None and self.config.data.demonstration

    @property
    def teller(self) -> str:
        """Whose stories they are, in a few words."""
        if self.start is None:
            return self.audit.title
        base = self.config.model.base
        name = "/".join(Path(base).parts[-2:]) if Path(base).is_dir() else base
        return (
            name if self.resource is None else f"{name} after {self.config.data.name}, policy {self.config.policy.name}"
        )


def make_plan(config: DictConfig) -> StoryPlan:
    """Everything the stages need, with all faults of settings and input raised here."""
    verbalising.check(config.measure.masking)
    if config.measure.empty_targets not in get_args(EmptyTargets):
        raise one_of("measure.empty_targets", config.measure.empty_targets, get_args(EmptyTargets))
    names = ("temperature", "top_k", "max_tokens", "fewest", "most")
    how = Telling(seed=config.seed, **{name: config.recipe[name] for name in names})
    if is_file(config):
        loaded: LoadedStories = build(config.data.load)
        targets = targets_of_statements(plain(config.probe.targets), loaded.stories)
        stories, notices = those_about(loaded.stories, targets)
        return StoryPlan(_audit(config, stories, targets, ""), stories, how, None, None, [*loaded.notices, *notices])
    find_devices(config.probe.device, 1)
    if config.recipe.post_train:
        resource = _resource(config)
        asked = prompts(resource.targets)
        known = resource.start.weights + resource.source
        audit = _audit(config, asked, resource.targets, known)
        return StoryPlan(audit, asked, how, resource.start, resource, resource.corpus.notices)
    start = find_start(_with(config, {"train": False}), build(config.policy))
    targets = choose_targets(plain(config.probe.targets))
    asked = prompts(targets)
    return StoryPlan(_audit(config, asked, targets, start.weights), asked, how, start)


def is_file(config: DictConfig) -> bool:
    """Whether the stories are from a file."""
    return config.data.name == "stories" and config.data.path is not None


def to_download(config: DictConfig) -> list[str]:
    """What is not at hand of what the settings ask for."""
    nodes = [config.score.scorers.get(name, {}) for name in (config.score.regard, *config.score.extra)]
    if not is_file(config):
        nodes += [config.data, config.model] if config.recipe.post_train else [config.model]
    return [address for node in nodes if "missing" in node for address in build(node.missing)]


def _resource(config: DictConfig) -> Plan:
    """What the generator learns first."""
    if config.data.name == "stories":
        raise MitigateError(
            "data=stories has no triples that a generator could learn first (recipe.post_train=true): name a resource "
            "(data=sample or data=cn100k), or say train=false policy=none, or give stories with data.path=FILE"
        )
    _, where = training_settings(config)
    if count_devices(where["accelerator"], where["devices"]) > 1:
        raise MitigateError(f"recipe=stories trains on one device, not on trainer.devices={where['devices']}")
    return plan_training(_with(config, {"train": True, "model": {"trainable": True}}))


def _with(config: DictConfig, changes: dict[str, Any]) -> DictConfig:
    """The settings with some of them changed: whether the main job's model is trained is said here in other words."""
    return cast(DictConfig, OmegaConf.merge(config, changes))


def _audit(config: DictConfig, asked: pl.DataFrame, targets: pl.DataFrame, known: str) -> AuditPlan:
    """How the sentences are labelled and measured. A sentence has no relation, and so one wording only."""
    scorers = build_scorers(config.score)
    return AuditPlan(
        config=config,
        resource=Held(asked, "statements"),
        targets=targets,
        scorers=scorers,
        labellings=[Labelling(label_columns(scorer.name, "paper")[0], scorer.name, "paper") for scorer in scorers],
        cache=LabelStore(Path(config.paths.cache) / "labels"),
        source=digest_of(as_parquet(asked) + as_parquet(targets) + known.encode()),
    )
