"""The plan of recipe=stories: all that is read and checked before its first stage."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.files import digest_of
from mitigate.load import prompts as prompt_files
from mitigate.load.corpus import relations_in_training, triples_of
from mitigate.load.stream import Loaded, Streamed
from mitigate.load.targets import targets_of_statements, those_about
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.statements import Measurement, labellings
from mitigate.policies import Policy, check_relations, choice_of
from mitigate.probe.chat_stories import Wording
from mitigate.probe.comet import find_devices
from mitigate.recipes import loading, model_spec, reporting
from mitigate.recipes.job import Config, build
from mitigate.recipes.scorers import Scorers, make_labeller
from mitigate.score.labeller import Labeller
from mitigate.stages import as_parquet
from mitigate.tasks.stories.generation import Sampling, check_tells, prompts_of_file
from mitigate.train import launch
from mitigate.train.base_model import Start
from mitigate.train.comet import Settings
from mitigate.train.settings import Api
from mitigate.train.stories import check as check_training
from mitigate.words.prompts import OWN, prompts
from mitigate.words.relations import with_own
from mitigate.words.targets import LISTED, PAPER, choose_targets, list_of
from models.chat_api import Endpoint

SAMPLING = ("temperature", "top_k", "max_tokens", "fewest", "most")
CONTINUE = "Continue this text with three to five sentences: {prompt}"  # the project's templates begin a text


@dataclass(frozen=True)
class Resource:
    """The training of the generator before it is probed."""

    corpus: Loaded | Streamed
    policy: Policy
    labeller: Labeller  # that labels it
    settings: Settings  # of the training on it
    accelerator: str
    described: dict[str, dict[str, Any]]  # data and model, for the card


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    prompts: pl.DataFrame  # the prompts (columns PROMPTS); of a file, with their stories
    measurement: Measurement  # a sentence has no relation, and so one template only
    sampling: Sampling
    labeller: Labeller  # of the sentences
    generator: str  # the generator of the stories, in a few words
    about: dict[str, Any]  # data, model, policy and fingerprint, as metrics.json begins
    source: str  # the hash of prompts, targets, and of the generator
    shown: list[str]  # targets whose bars the page draws
    device: str = "cpu"
    start: Start | None = None  # the model that generates; None: the stories are from a file or an endpoint
    endpoint: Endpoint | None = None  # that generates in its place
    wording: Wording = field(default_factory=Wording)  # of requests to it
    resource: Resource | None = None  # None: the model is probed as it is
    notices: list[str] = field(default_factory=list)  # of the file, or of the resource

    @property
    def demonstration(self) -> bool:
        """Return whether the generator is trained on a demonstration corpus."""
        return self.resource is not None and self.resource.described["data"]["demonstration"]

    @property
    def shares_templates(self) -> bool:
        """Return whether prompts of a user's file differ in their target alone."""
        own = self.prompts.filter(pl.col("kind") == OWN).drop_nulls("template")
        return bool((own.group_by("template").agg(pl.col("target").n_unique())["target"] > 1).any())

    @property
    def is_generated(self) -> bool:
        """Return whether the stories are generated here."""
        return self.start is not None or self.endpoint is not None


def make_plan(config: Config) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    scorers = Scorers(config.score)
    sampling = sampling_of(config)
    if is_file(config):
        named = loading.probed_targets(config)
        if config.recipe.prompts is not None:
            raise MitigateError(
                f"the stories of data.path={config.data.path} have prompts of their own; leave recipe.prompts out"
            )
        own = PAPER if named in LISTED else list_of(named)  # targets that prompts of the file may name
        loaded: Loaded = build(config.data.load, "data.load", _partial_=True)(target_list=own)
        chosen = targets_of_statements(named, loaded.rows)
        stories, notices = those_about(loaded.rows, chosen)
        notices = [*loaded.notices, *notices]
        return _plan(config, scorers, sampling, stories, chosen, reporting.title_of(config.data), notices=notices)
    if is_endpoint(config):
        return _with_endpoint(config, scorers, sampling)
    device = find_devices(config.probe.device, 1)[0]
    if config.recipe.post_train:
        return _with_training(config, scorers, sampling, device)
    policy = scorers.policy(config.policy)
    check_policy(policy)
    model_spec.check_trained(config.model, False, policy)
    start = model_spec.find_start(config.model, False)
    check_tells(start)
    rows, chosen, notices = _prompts(config)
    more: dict[str, Any] = {"device": device, "start": start, "notices": notices}
    generator = _name_of(config.model.base)
    return _plan(config, scorers, sampling, rows, chosen, generator, start.weights, **more)


def sampling_of(config: Config) -> Sampling:
    """The settings of generation, with the text that a prompt is given in."""
    given, recipe = config.recipe.instruction, config.recipe
    begins = getattr(config.model, "prompt", None) == "chat" and recipe.prompts is None and not recipe.post_train
    instruction = given or (CONTINUE if begins and not is_file(config) else "{prompt}")
    return Sampling(seed=config.seed, instruction=instruction, **{name: getattr(recipe, name) for name in SAMPLING})


def _prompts(config: Config, train: pl.DataFrame | None = None) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The prompts of the project's templates or of the user's file, the targets that they are about, and notices.
    train: triples whose targets are those of probe.targets=data."""
    wanted, recipe = loading.probed_targets(config), config.recipe
    choose = partial(choose_targets, wanted, train, config.probe.fewest)
    if recipe.prompts is None:
        if recipe.most_prompts is not None:
            raise MitigateError(
                f"recipe.most_prompts={recipe.most_prompts} draws from a file of prompts; give one: recipe.prompts=FILE"
            )
        chosen = choose()
        return prompts(chosen, list_of(chosen)), chosen, []
    loaded = prompt_files.load(recipe.prompts)
    how = {"most": recipe.most_prompts, "seed": config.seed}
    rows, chosen, notices = prompts_of_file(loaded.rows, wanted, choose, **how)
    return rows, chosen, [*loaded.notices, *notices]


def is_file(config: Config) -> bool:
    """Return whether the stories are from a file."""
    return config.data.name == "stories" and config.data.path is not None


def is_endpoint(config: Config) -> bool:
    """Return whether the model is one behind an endpoint."""
    return isinstance(config.model, Api)


def _with_endpoint(config: Config, scorers: Scorers, sampling: Sampling) -> Plan:
    """The plan for a model behind an endpoint, which is not asked yet."""
    policy, model = scorers.policy(config.policy), config.model
    model_spec.check_trained(model, bool(config.recipe.post_train), policy)
    check_policy(policy)
    if model.prompt not in (allowed := ("chat", "text")):
        raise one_of("model.prompt", str(model.prompt), allowed)
    if model.system is not None and model.prompt != "chat":
        raise MitigateError(f"model.system needs model.prompt=chat, not {model.prompt}")
    endpoint: Endpoint = build(model.endpoint, "model.endpoint")
    rows, chosen, notices = _prompts(config)
    more: dict[str, Any] = {"endpoint": endpoint, "wording": Wording(model.prompt, model.system), "notices": notices}
    return _plan(config, scorers, sampling, rows, chosen, f"{model.name} at {endpoint.host}", endpoint.url, **more)


def _with_training(config: Config, scorers: Scorers, sampling: Sampling, device: str) -> Plan:
    """The plan for a generator that is trained on a resource first."""
    if config.data.name == "stories":
        raise MitigateError(
            "data=stories has no triples that a generator could learn first (recipe.post_train=true): name a resource "
            "(data=sample or data=cn100k), or set train=false policy=none, or give stories with data.path=FILE"
        )
    if getattr(config.model, "prompt", None) == "chat":
        raise MitigateError(
            "a generator that learns texts first (recipe.post_train=true) continues texts and answers no chat; leave "
            "model.prompt=chat out, or set recipe.post_train=false"
        )
    described, policy = reporting.origin(config), scorers.policy(config.policy)
    check_policy(policy)
    settings, where = model_spec.training_settings(config)
    if launch.count_devices(where["accelerator"], where["devices"]) > 1:
        raise MitigateError(f"recipe=stories trains on one device, not on trainer.devices={where['devices']}")
    if where["strategy"] == "fsdp":
        raise MitigateError("recipe=stories trains on one device as it is; leave trainer.strategy=fsdp out")
    launch.check(settings, **where)
    check_training(settings)
    corpus = triples_of(loading.load_data(config))
    relations_in_training(corpus.rows)  # raises where there is none
    check_relations(policy, with_own(corpus.own_relations))
    prompted, chosen, of_prompts = _prompts(config, corpus.rows)
    start = model_spec.find_start(config.model, True)
    check_tells(start)
    labelling = [*scorers.of_roles, *scorers.of_policy(policy)]
    labeller = make_labeller(config, labelling, list_of(chosen), corpus.own_relations)
    resource = Resource(corpus, policy, labeller, settings, where["accelerator"], described)
    content = as_parquet(corpus.rows) + as_parquet(chosen.select("target", "category"))
    digest = start.weights + digest_of(content + loading.digest_of_relations(corpus.own_relations))
    notices = [*corpus.notices, *of_prompts]
    more: dict[str, Any] = {"device": device, "start": start, "resource": resource, "notices": notices}
    generator = f"{_name_of(config.model.base)} after {config.data.name}, policy {config.policy.name}"
    return _plan(config, scorers, sampling, prompted, chosen, generator, digest, **more)


def check_policy(policy: Policy) -> None:
    """Raise MitigateError for a policy that acts on the search for tails, which stories do not have."""
    if choice_of(policy):
        raise MitigateError(
            f"policy={policy.name} acts on the search for tails, and stories are sampled: their figures would be "
            "called the policy's. Set policy=none, or one that filters"
        )
    if policy.tags() is not None:
        raise MitigateError(
            f"policy={policy.name} puts control tokens before heads, and stories have none; set policy=none, or one "
            "that filters"
        )


def _plan(
    config: Config,
    scorers: Scorers,
    sampling: Sampling,
    rows: pl.DataFrame,
    chosen: pl.DataFrame,
    generator: str,
    digest: str = "",
    **more: Any,
) -> Plan:
    """The plan of prompts. generator: its name for the page; digest: the hash of its weights and training."""
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    source = digest_of(as_parquet(rows) + as_parquet(targets) + digest.encode() + target_list.content)
    labelling, intervals = scorers.labelling, Bootstrap(resamples=config.measure.resamples, seed=config.seed)
    return Plan(
        prompts=rows,
        measurement=Measurement(
            targets, labellings(labelling, ["paper"]), target_list, intervals, config.measure.empty_targets
        ),
        sampling=sampling,
        labeller=make_labeller(config, labelling, target_list),
        generator=generator,
        about={
            "data": config.data.name,
            "fingerprint": source,
            "model": generator,
            "policy": config.policy.name if "resource" in more else None,
        },
        source=source,
        shown=loading.shown_targets(config, targets),
        **more,
    )


def _name_of(base: str) -> str:
    """The name of a model; for a folder its last two parts."""
    return "/".join(Path(base).parts[-2:]) if Path(base).is_dir() else base
