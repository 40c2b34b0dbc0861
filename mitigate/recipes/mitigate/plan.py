"""What the main job knows, has read and has checked before its first stage, so that faults of settings and input
come at once and not after an hour of training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.label_cache import LabelStore
from mitigate.load.triples_file import Loaded
from mitigate.probe.comet import check_search, find_devices
from mitigate.recipes.job import build, plain, say
from mitigate.recipes.scorers import build_extras, build_policy, build_policy_scorers, build_scorer, missing_scorers
from mitigate.recipes.start import find_start, training_settings
from mitigate.relations import Relation, comet_relations
from mitigate.store import as_parquet, digest_of
from mitigate.targets import choose_targets, targets
from mitigate.tasks.start import Start
from mitigate.train import launch
from mitigate.triples import ROLES, Scorer
from mitigate.verbalise import verbalise


@dataclass(frozen=True)
class Plan:
    """All that is known, read and checked before the first stage."""

    config: DictConfig
    policy: Policy
    corpus: Loaded
    targets: pl.DataFrame  # (target, category)
    relations: list[Relation]
    scorers: list[Scorer]  # sentiment and regard, which label the corpus and what is probed
    policy_scorers: list[Scorer]  # the others that the policy reads: they label what it filters or ranks
    extras: list[Scorer]  # held-out scorers, which label only what is probed
    plausibility: Scorer | None  # classifies what is probed; None: nothing does
    cache: LabelStore
    start: Start  # the model that is trained, or probed as it is
    source: str  # the hash of the corpus and the targets

    @property
    def own_targets(self) -> list[str]:
        """The targets to probe that are not of the paper's 329."""
        return sorted(set(self.targets["target"]) - set(targets()))

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
        }


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    policy = build_policy(config)
    relations = comet_relations(plain(config.probe.relations))
    verbalising.check(config.measure.masking)
    settings, where = training_settings(config)
    launch.check(settings, **where)
    check_search(config.probe.beams, config.probe.top, config.probe.precision)
    find_devices(config.probe.device, config.probe.processes)
    if policy.reranks and policy.candidates < config.probe.top:
        raise MitigateError(
            f"policy.candidates={policy.candidates} must be at least probe.top={config.probe.top}: the tails that are "
            "kept are chosen among them"
        )
    corpus = build(config.data.load)
    chosen = choose_targets(plain(config.probe.targets), corpus.triples, config.probe.fewest)
    start = find_start(config, policy)
    scorers, extras = [build_scorer(config.score, role) for role in ROLES], build_extras(config.score)
    policy_scorers = build_policy_scorers(config.score, policy)
    plausibility = build(config.score.plausibility) if config.score.plausibility else None
    source = digest_of(as_parquet(corpus.triples) + as_parquet(chosen))
    cache = LabelStore(Path(config.paths.cache) / "labels")
    who = (scorers, policy_scorers, extras, plausibility)
    return Plan(config, policy, corpus, chosen, relations, *who, cache, start, source)


def downloads(config: DictConfig) -> list[str]:
    """What is not at hand: data, the model to start from, and the classifier that labels."""
    found = [address for node in (config.data, config.model) if "missing" in node for address in build(node.missing)]
    return found + missing_scorers(config.score, config.policy.scorers)


def say_labels(plan: Plan) -> None:
    """How many of the corpus's texts each scorer has labelled before."""
    statements = verbalise(plan.corpus.triples, plan.config.measure.masking, plan.own_targets)
    texts = pl.concat([statements["masked"], statements["masked_neutral"]]).unique().to_list()
    for scorer in (*plan.scorers, *plan.policy_scorers):
        known, _ = plan.cache.get(scorer.fingerprint, texts)
        say(f"  {scorer.name}: {known.sum():,} of {len(texts):,} distinct texts are labelled already")
