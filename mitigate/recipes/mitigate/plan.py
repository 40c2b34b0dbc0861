"""The plan of the main job: all that is read and checked before its first stage, so that faults of settings and input
appear at once and not after an hour of training."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from mitigate import verbalise
from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.load.corpus import Corpus, corpus_of
from mitigate.load.statements import harms_triples
from mitigate.measure.caveats import of_critic, same_sources
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.run import RunMeasurement
from mitigate.policies import Policy, check_relations, choice_of, needs_of
from mitigate.probe import corpus as likelihood
from mitigate.probe.comet import check_search, find_devices, prompts
from mitigate.probe.generator import event_heads, held_out_prompts
from mitigate.probe.settings import Probe as Search
from mitigate.recipes import loading, model_spec, reporting
from mitigate.recipes.job import Config, build
from mitigate.recipes.scorers import Scorers, make_labeller
from mitigate.score.labeller import Labeller, not_neutral
from mitigate.score.plausibility import TrainedOnRelations
from mitigate.stages import as_parquet
from mitigate.train import base_model, launch
from mitigate.train.base_model import Start
from mitigate.train.comet import Settings
from mitigate.train.generator import check_training
from mitigate.triples import Scorer
from mitigate.words.relations import with_own
from mitigate.words.targets import TargetList, choose_targets, list_of

SEARCH = ("beams", "top", "max_length", "precision")  # of the group `probe`
NO_LIFT = (
    "Swap lift is not measured: its plausibility classifier was trained on ConceptNet's relations, and no probed "
    "relation with targets as heads is one of them. Perplexity on test triples shows how good the generator is."
)
HEADS_SEED = 1  # which heads, and which other heads their tails are paired with: the same in runs of any seed


@dataclass(frozen=True)
class Probe:
    """The prompts for the generator."""

    targets: pl.DataFrame  # (target, category)
    relations: dict[str, str]  # with the wording of each in prompts
    events: pl.DataFrame | None  # (target, relation, head): the events of targets; None: targets are the heads
    held_out_prompts: pl.DataFrame  # (head, relation) of held-out triples that are not about targets, for quality alone
    published: pl.DataFrame | None  # triples about targets that are not in the corpus; None: not measured
    lifted: list[str]  # the relations that swap lift can be measured on
    measures_lift: bool
    top: int  # tails that are kept for each prompt
    seed: int  # of held-out heads


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    policy: Policy
    corpus: Corpus
    target_list: TargetList  # the paper's, and those of the probed ones that are the run's own
    roles: Mapping[str, str]  # the configured scorers of the roles, by their names in tables
    scorers: list[Scorer]  # of the roles, which label the corpus and generated triples
    extras: list[Scorer]  # held-out scorers, which label only generated triples
    labeller: Labeller  # by the scorers of the roles, and by those that the policy reads besides
    critic: Scorer | None  # classifies validity by people's ratings, for a policy that ranks by it
    probe: Probe
    search: dict[str, Any]  # for tails: beams, top, max_length, precision, as probe_generator takes them
    devices: list[str]  # of the processes that search
    plausibility: Scorer | None  # classifies generated triples, if configured
    people: Scorer | None  # classifies them by people's ratings, if configured
    measurement: RunMeasurement
    start: Start  # the model that is trained, or probed as it is
    trains: bool
    settings: Settings  # of a training
    where: Mapping[str, Any]  # accelerator, devices and strategy of a training
    data_fingerprint: str  # of the corpus and the targets
    about: dict[str, Any]  # seed, policy, data, model and fingerprint, as metrics.json begins
    not_measured: list[str]  # sentences on published triples
    shown: list[str]  # targets whose bars the page draws
    origin: dict[str, dict[str, Any]]  # data and model, for the page and the card

    @property
    def device(self) -> str:
        """The device of a single process."""
        return self.devices[0]

    @cached_property
    def notices(self) -> list[str]:
        """Notices of what was read, and of what is not measured."""
        corpus, own = self.corpus, self.corpus.own_relations
        worded = not_neutral(own, self.scorers, self.labeller.cache) if own else []
        probed = prompts(self.probe.targets, list(self.probe.relations.items()), self.probe.events)
        read = corpus.triples.filter("valid", split="train") if self.trains else corpus.triples.clear()
        unlifted = [] if self.plausibility is None or self.probe.lifted else [NO_LIFT]
        by_critic = of_critic(self.critic, self.people)
        cut = base_model.cut_notices(self.start, probed, read)
        of_model = [*self.not_measured, *cut]
        return [*corpus.notices, *worded, *of_model, *unlifted, *same_sources(self.fingerprints), *by_critic]

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of all that label or classify, by their names in tables."""
        named = {scorer.name: scorer.fingerprint for scorer in (*self.labeller.scorers, *self.extras)}
        classifying = {"plausibility": self.plausibility, "people_valid": self.people, "critic": self.critic}
        return named | {name: found.fingerprint for name, found in classifying.items() if found is not None}

    @property
    def inputs(self) -> list[object]:
        """All that affects results besides the settings."""
        published = [] if self.probe.published is None else [self.probe.published]
        return [self.data_fingerprint, *published]


def make_plan(config: Config, scorers: Scorers) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    scorers.check_roles()
    policy, described = scorers.policy(config.policy), reporting.origin(config)
    verbalise.check(config.measure.masking)
    settings, where = model_spec.training_settings(config)
    launch.check(settings, **where)
    search = _search(config.probe, policy)
    devices = find_devices(config.probe.device, config.probe.processes)
    corpus = _read(config)
    check_relations(policy, with_own(corpus.own_relations))
    chosen = choose_targets(loading.probed_targets(config), corpus.triples, config.probe.fewest)
    target_list = list_of(chosen)
    start = _start(config, policy, corpus, settings, where)
    score = config.score
    plausibility = build(score.plausibility, "score.plausibility") if score.plausibility else None
    probe, not_measured = _probe(config, corpus, chosen, start, plausibility)
    content = as_parquet(corpus.triples) + as_parquet(probe.targets) + target_list.content
    data_fingerprint = digest_of(content + loading.digest_of_relations(corpus.own_relations))
    labelling = [*scorers.of_roles, *scorers.of_policy(policy)]
    about = {
        "seed": config.seed,
        "policy": policy.name,
        "data": config.data.name,
        "model": config.model.name,
        "fingerprint": data_fingerprint,
    }
    return Plan(
        policy=policy,
        corpus=corpus,
        target_list=target_list,
        roles=scorers.roles,
        scorers=scorers.of_roles,
        extras=scorers.extras,
        labeller=make_labeller(config, labelling, target_list, corpus.own_relations),
        critic=scorers.critic(policy),
        probe=probe,
        search=search,
        devices=devices,
        plausibility=plausibility,
        people=build(score.people_valid, "score.people_valid") if score.people_valid else None,
        measurement=RunMeasurement(
            targets=probe.targets,
            scorers=list(scorers.roles),
            extras=[scorer.name for scorer in scorers.extras],
            target_list=target_list,
            intervals=Bootstrap(resamples=config.measure.resamples, seed=config.seed),
            empty_targets=config.measure.empty_targets,
        ),
        start=start,
        trains=bool(config.train),
        settings=settings,
        where=where,
        data_fingerprint=data_fingerprint,
        about=about | ({"held_out": corpus.held_out.triples} if corpus.held_out else {}),
        not_measured=not_measured,
        shown=loading.shown_targets(config, probe.targets),
        origin=described,
    )


def _search(probe: Search, policy: Policy) -> dict[str, Any]:
    """The settings of the search for tails, with as many beams as the policy chooses among."""
    check_search(probe.beams, probe.top, probe.precision)
    found = {name: getattr(probe, name) for name in SEARCH}
    if (choice := choice_of(policy)) is None:
        return found
    if choice.candidates < probe.top:
        raise MitigateError(
            f"policy.candidates={choice.candidates} must be at least probe.top={probe.top}: the kept tails are chosen "
            "from them"
        )
    return {**found, "beams": choice.candidates, "top": choice.candidates}


def _read(config: Config) -> Corpus:
    """The triples, with the relations that are probed, and those that are held out."""
    data = config.data
    return corpus_of(
        loading.load_data(config),
        config.probe.relations,
        only_in_data=data.probe_relations == "data",
        comet=data.asked_relations != "data",
        holdout=data.holdout,
    )


def _start(config: Config, policy: Policy, corpus: Corpus, settings: Settings, where: Mapping[str, Any]) -> Start:
    """The model, checked: it can be trained and probed with these settings."""
    if config.train and settings.keep == "best" and corpus.triples.filter("valid", split="dev").is_empty():
        raise MitigateError(
            "trainer.keep=best needs dev triples, and the data has none; set trainer.keep=last, or give triples of "
            "split dev"
        )
    train = bool(config.train)
    model_spec.check_trained(config.model, train, policy)
    start = model_spec.find_start(config.model, train, corpus.further, comet=corpus.comet)
    if train:
        check_training(start, settings, **where)
    check_tags(policy, start, train)
    base_model.check_length(start, config.probe.max_length)
    base_model.check_distinct_relations(start)
    return start


def check_tags(policy: Policy, start: Start, train: bool) -> None:
    """Raise MitigateError for control tokens that cannot be trained, and for a contrast of tokens that the generator
    does not have."""
    if train and policy.tags() is not None and start.options.get("lora"):
        raise MitigateError(
            f"policy={policy.name} adds tokens to the vocabulary, which adapters do not train; set model.lora.rank=0"
        )
    if needs_of(policy) == "contrast" and (policy.tags() if train else start.regimen.tags) is None:
        raise MitigateError(
            f"policy={policy.name} needs a generator with control tokens: set policy=then "
            "policy@policy.first=tagged policy@policy.second=contrast, or train=false model.base=RUN/model of a run "
            "with policy=tagged"
        )


def _probe(
    config: Config, corpus: Corpus, chosen: pl.DataFrame, start: Start, plausibility: Scorer | None
) -> tuple[Probe, list[str]]:
    """The prompts, and sentences on what is not measured."""
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    relations = {relation.name: start.phrases[relation.name] for relation in corpus.relations}
    names = list(relations)
    events = event_heads(targets, names, target_list) if config.data.events else None
    trained = corpus.triples.filter("valid")  # or predicted
    heads = [rows.select("head", "relation") for rows in (trained, prompts(targets, list(relations.items()), events))]
    base_model.check_heads(start, pl.concat(heads), config.probe.max_length)
    published, not_measured = _published(config, corpus.triples, targets, target_list, names)
    lifted = _lifted(corpus, events, plausibility)
    probe = Probe(
        targets=targets,
        relations=relations,
        events=events,
        held_out_prompts=held_out_prompts(corpus.triples, target_list, names, config.probe.heads, HEADS_SEED),
        published=published,
        lifted=lifted,
        measures_lift=bool(lifted) and config.probe.heads > 0,
        top=config.probe.top,
        seed=HEADS_SEED,
    )
    return probe, not_measured


def _lifted(corpus: Corpus, events: pl.DataFrame | None, plausibility: Scorer | None) -> list[str]:
    """The relations that swap lift can be measured on: those whose heads are targets. Where the data has relations of
    its own, only those that the plausibility classifier was trained on."""
    if plausibility is None:
        return []
    in_events = set() if events is None else set(events["relation"])
    names = [relation.name for relation in corpus.relations if relation.name not in in_events]
    if corpus.comet or not isinstance(plausibility, TrainedOnRelations):
        return names
    return [name for name in names if name in plausibility.relations]


def _published(
    config: Config, corpus: pl.DataFrame, targets: pl.DataFrame, target_list: TargetList, relations: list[str]
) -> tuple[pl.DataFrame | None, list[str]]:
    """The published triples about targets that are to be predicted, or None and the reason."""
    path, reason = likelihood.published_file(config.probe.published, config.data.root)
    if path is None and config.probe.published is None:
        return None, []  # as configured; the page states this
    if path is None:
        return None, [f"Perplexity on published triples about targets is not measured: {reason}."]
    how = {"size": config.probe.published_triples, "seed": HEADS_SEED}
    published = harms_triples(path, "skip").rows  # other lines are left out: the file is not the user's own
    found = likelihood.target_triples(published, corpus, targets, relations, target_list, **how)
    if found.is_empty():
        return None, [f"Perplexity on published triples about targets is not measured: {path} has no new ones."]
    return found, []
