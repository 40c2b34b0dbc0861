"""What the main job knows, has read and has checked before its first stage, so that faults of settings and input
come at once and not after an hour of training."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError
from mitigate.filter import Policy, check_relations
from mitigate.label_cache import LabelStore
from mitigate.metrics import HELD_OUT
from mitigate.probe.comet import check_search, find_devices
from mitigate.probe.grid import prompts
from mitigate.recipes.job import build, plain, say
from mitigate.recipes.loading import known_by_relations, load_data
from mitigate.recipes.reporting import origin
from mitigate.recipes.scorers import (
    build_critic,
    build_extras,
    build_policy,
    build_policy_scorers,
    build_role_scorers,
    check_roles,
)
from mitigate.recipes.start import find_start, training_settings
from mitigate.relations import with_own
from mitigate.score.labels import known_labels, text_for
from mitigate.score.plausibility import TrainedOnRelations
from mitigate.store import as_parquet, digest_of
from mitigate.target_list import TargetList, list_of
from mitigate.targets import choose_targets
from mitigate.tasks.about import published_file, read_published, target_triples
from mitigate.tasks.caveats import of_critic, same_sources
from mitigate.tasks.corpus import Corpus, corpus_of
from mitigate.tasks.heads import event_heads, held_out_prompts
from mitigate.tasks.replacing import find_generator
from mitigate.tasks.start import Start, check_heads, check_length, check_told_apart, cut_notices, origin_notices
from mitigate.tasks.steer import check_steered
from mitigate.tasks.template import not_neutral
from mitigate.tasks.train import check_training
from mitigate.tasks.tune import check_tuned
from mitigate.train import launch
from mitigate.triples import TEMPLATES, Scorer
from mitigate.verbalise import verbalise

NO_LIFT = (
    "Swap lift is not measured: it rests on a plausibility classifier that was trained on ConceptNet's relations, and "
    "none that is probed here is one of these with targets as heads. Perplexity on test triples says how good the "
    "generator is."
)


@dataclass(frozen=True)
class Plan:
    """All that is known, read and checked before the first stage."""

    config: DictConfig
    policy: Policy
    corpus: Corpus
    targets: pl.DataFrame  # (target, category)
    target_list: TargetList  # the paper's, and those of these that are the run's own
    events: (
        pl.DataFrame | None
    )  # (target, relation, head): what targets are asked about in events; None: they are heads
    heads: pl.DataFrame  # (head, relation): of held-out triples, not targets, probed to measure quality alone
    published: pl.DataFrame | None  # triples about targets that are not in the corpus; None: not measured
    scorers: list[Scorer]  # of sentiment and regard, which label the corpus and what is probed
    policy_scorers: list[Scorer]  # the others that the policy reads: they label what it filters or ranks
    extras: list[Scorer]  # held-out scorers, which label only what is probed
    plausibility: Scorer | None  # classifies what is probed; None: nothing does
    people: Scorer | None  # the same by people's ratings
    critic: Scorer | None  # the same for a policy that ranks or filters by it
    cache: LabelStore
    start: Start  # the model that is trained, or probed as it is
    tail_generator: Start | None  # of a policy that replaces tails
    source: str  # the hash of the corpus and the targets
    not_measured: list[str]  # sentences: where weights come from, what is not measured, what of a text is not read
    origin: dict[str, dict[str, Any]]  # what the page and the card say of data and model

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of all that label or classify, by what each is called in tables."""
        named = {scorer.name: scorer.fingerprint for scorer in (*self.scorers, *self.policy_scorers, *self.extras)}
        classifying = {"plausibility": self.plausibility, "people_valid": self.people, "critic": self.critic}
        return named | {name: found.fingerprint for name, found in classifying.items() if found is not None}

    @property
    def leaves_model(self) -> bool:
        """Whether the run trains a generator, and has it in model/."""
        return bool(self.config.train) or self.policy.tunes

    @property
    def worded(self) -> dict[str, Any]:
        """How triples become masked statements, as label_statements takes it."""
        return {
            "masking": self.config.measure.masking,
            "target_list": self.target_list,
            "own_relations": self.corpus.own_relations,
        }

    @property
    def inputs(self) -> list[object]:
        """What decides, besides the settings, what the run finds."""
        tails = [self.tail_generator.fingerprint] if self.tail_generator else []
        return [self.source, *([] if self.published is None else [self.published]), *tails]

    @property
    def notices(self) -> list[str]:
        """What is to be said of what was read."""
        unlifted = [] if self.plausibility is None or self.lifted else [NO_LIFT]
        by_critic = of_critic(self.critic, self.people)
        return [*self.corpus.notices, *self.not_measured, *unlifted, *same_sources(self.fingerprints), *by_critic]

    @property
    def lifted(self) -> list[str]:
        """The relations that swap lift is measured on: those whose heads are targets, and that the plausibility
        classifier knows at all where the data has relations of its own."""
        in_events = set() if self.events is None else set(self.events["relation"])
        known = self.plausibility.relations if isinstance(self.plausibility, TrainedOnRelations) else None
        names = [relation.name for relation in self.corpus.relations if relation.name not in in_events]
        return names if self.corpus.comet or known is None else [name for name in names if name in known]

    @property
    def about(self) -> dict[str, Any]:
        """What the run is, as metrics.json begins."""
        config = self.config
        return {
            "seed": config.seed,
            "policy": self.policy.name,
            "data": config.data.name,
            "model": config.model.name,
            "fingerprint": self.source,
            **({HELD_OUT: self.corpus.held_out.triples} if self.corpus.held_out else {}),
        }


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    check_roles(config.score)
    policy, described = build_policy(config), origin(config)
    verbalising.check(config.measure.masking)
    settings, where = training_settings(config)
    launch.check(settings, **where)
    check_search(config.probe.beams, config.probe.top, config.probe.precision)
    find_devices(config.probe.device, config.probe.processes)
    if (policy.reranks or policy.distils) and policy.candidates < config.probe.top:
        raise MitigateError(
            f"policy.candidates={policy.candidates} must be at least probe.top={config.probe.top}: the tails that are "
            "kept are chosen among them"
        )
    corpus = _read(config)
    check_relations(policy, with_own(corpus.own_relations))
    if config.train and settings.keep == "best" and corpus.triples.filter("valid", split="dev").is_empty():
        raise MitigateError(
            "trainer.keep=best chooses weights by dev triples, and the data has none; say trainer.keep=last, or give "
            "triples of split dev"
        )
    chosen = choose_targets(plain(config.probe.targets), corpus.triples, config.probe.fewest)
    start = find_start(config, policy, corpus.further, comet=corpus.comet)
    if config.train or policy.tunes:
        check_training(start, settings, **where)
    check_tuned(policy, start, bool(config.train))
    check_length(start, config.probe.max_length)
    check_told_apart(start)
    check_steered(policy, start, bool(config.train), config.probe.beams)
    scorers, extras = build_role_scorers(config.score), build_extras(config.score)
    policy_scorers = build_policy_scorers(config.score, policy)
    plausibility, people = (
        build(config.score[name]) if config.score[name] else None for name in ("plausibility", "people_valid")
    )
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    known = as_parquet(corpus.triples) + as_parquet(targets) + target_list.content
    source = digest_of(known + known_by_relations(corpus.own_relations))
    cache = LabelStore(Path(config.paths.cache) / "labels")
    if corpus.own_relations:
        worded = not_neutral(corpus.own_relations, scorers, cache)
        corpus = replace(corpus, notices=[*corpus.notices, *worded])
    who = (scorers, policy_scorers, extras, plausibility, people)
    critic = build_critic(config.score, policy)
    names = [relation.name for relation in corpus.relations]
    events = event_heads(targets, names, target_list) if config.data.get("events") else None
    heads = held_out_prompts(corpus.triples, target_list, names, config.probe.heads, config.probe.heads_seed)
    published, not_measured = _published(config, corpus.triples, targets, target_list, names)
    probed = prompts(targets, [(name, "") for name in names], events)
    check_heads(start, _asked(corpus, probed), config.probe.max_length)
    read = corpus.triples.filter("valid", split="train") if config.train else corpus.triples.clear()
    not_measured = [*origin_notices(start), *not_measured, *cut_notices(start, probed, read)]
    asked = (targets, target_list, events, heads, published)
    tail_generator = find_generator(policy, corpus.further, comet=corpus.comet)
    further = (start, tail_generator, source, not_measured, described)
    return Plan(config, policy, corpus, *asked, *who, critic, cache, *further)


def _read(config: DictConfig) -> Corpus:
    data, relations = config.data, plain(config.probe.relations)
    return corpus_of(
        load_data(config),
        relations,
        only_in_data=data.get("probe_relations") == "data",
        comet=data.get("asked_relations") != "data",
        holdout=data.get("holdout"),
        seed=data.get("holdout_seed", 1),
    )


def _asked(corpus: Corpus, probed: pl.DataFrame) -> pl.DataFrame:
    """(head, relation) of all that is trained, predicted and probed."""
    return pl.concat([rows.select("head", "relation") for rows in (corpus.triples.filter("valid"), probed)])


def _published(
    config: DictConfig, corpus: pl.DataFrame, targets: pl.DataFrame, target_list: TargetList, relations: list[str]
) -> tuple[pl.DataFrame | None, list[str]]:
    """The published triples about targets that are to be predicted, or None and a sentence that says why."""
    path, reason = published_file(config.probe.published, config.data.root)
    if path is None and config.probe.published is None:
        return None, []  # as it was asked for; the page says so
    if path is None:
        return None, [f"Perplexity on published triples about targets is not measured: {reason}."]
    how = {"size": config.probe.published_triples, "seed": config.probe.heads_seed}
    found = target_triples(read_published(path), corpus, targets, relations, target_list, **how)
    if found.is_empty():
        return None, [f"Perplexity on published triples about targets is not measured: {path} has none that are new."]
    return found, []


def say_labels(plan: Plan) -> None:
    """How many of the corpus's texts each scorer has labelled before."""
    statements = verbalise(plan.corpus.triples, **plan.worded)
    for scorer in (*plan.scorers, *plan.policy_scorers):
        texts = pl.concat([text_for(scorer, statements, template) for template in TEMPLATES]).unique().to_list()
        known, _ = known_labels(texts, scorer, plan.cache)
        say(f"  {scorer.name}: {known.sum():,} of {len(texts):,} distinct texts are labelled already")
