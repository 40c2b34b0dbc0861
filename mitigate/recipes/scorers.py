"""The scorers that the configuration names, each called in tables by its role or by the name it is configured under."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError, one_of
from mitigate.filter import Policy, check_scorers
from mitigate.recipes.job import build, plain
from mitigate.score.workers import OnWorkers
from mitigate.tasks.scorers import identified
from mitigate.triples import ROLES, Scorer

ENGINES = ("local", "ray")  # that label: this process, or the workers of Ray


def build_scorers(score: DictConfig) -> list[Scorer]:
    """Sentiment, regard, and those of score.extra; a role that is null is left out. Raises MitigateError when nothing
    is left."""
    scorers = [build_scorer(score, role) for role in _roles(score)] + build_extras(score)
    if not scorers:
        raise MitigateError("score.sentiment, score.regard and score.extra name no scorer; at least one must label")
    return scorers


def build_extras(score: DictConfig) -> list[Scorer]:
    """The scorers of score.extra, each called in tables as it is there: ngram beside minilm has columns of its own."""
    return _named(score, "score.extra", score.extra)


def build_scorer(score: DictConfig, role: str) -> Scorer:
    """The scorer that score.sentiment or score.regard names. Raises MitigateError for one that is not in the list."""
    return _build(score, f"score.{role}", score[role], role)


def build_policy(config: DictConfig) -> Policy:
    """The policy, the names of its scorers checked before any is loaded. Raises MitigateError for one that is neither a
    role nor configured."""
    policy: Policy = build(config.policy)
    check_scorers(policy, [*_roles(config.score), *config.score.scorers])
    return policy


def build_policy_scorers(score: DictConfig, policy: Policy) -> list[Scorer]:
    """The scorers that a policy reads besides the roles. The triples that it filters must be labelled by them too."""
    return _named(score, "scorer in policy.scorers", [name for name in policy.scorers if name not in ROLES])


def missing_scorers(score: DictConfig, names: Iterable[str] = ()) -> list[str]:
    """Addresses of what must be downloaded for the roles, score.extra and the scorers of these names."""
    named = dict.fromkeys([*(score[role] for role in ROLES), *score.extra, *names])
    nodes = [score.scorers[name] for name in named if name in score.scorers]
    return [address for node in nodes if "missing" in node for address in build(node.missing)]


def _roles(score: DictConfig) -> list[str]:
    """The roles that are not null."""
    return [role for role in ROLES if score[role] is not None]


def _named(score: DictConfig, setting: str, names: Iterable[str]) -> list[Scorer]:
    return [_build(score, setting, name, name) for name in dict.fromkeys(names)]


def _build(score: DictConfig, setting: str, configured: str, name: str) -> Scorer:
    """The scorer configured under that name, called `name` in tables."""
    if configured not in score.scorers:
        raise one_of(setting, configured, score.scorers)
    if score.engine not in ENGINES:
        raise one_of("score.engine", score.engine, ENGINES)
    arguments = plain(score.scorers[configured])
    here = _load(arguments, name)
    if score.engine == "local" or configured not in score.networks:
        return here
    return OnWorkers(here, partial(_load, arguments, name), score.workers, score.address)


def _load(arguments: Mapping[str, Any], name: str) -> Scorer:
    """The scorer of a class and its arguments."""
    given = {key: value for key, value in arguments.items() if key != "missing"}
    return identified(build(OmegaConf.create(dict(arguments))), name, given)


def build_rated_scorers(score: DictConfig) -> list[Scorer]:
    """The scorers that are compared with people's ratings: sentiment, regard, and the paper's keyword baseline."""
    return [*(build_scorer(score, role) for role in ROLES), *_named(score, "score.scorers", ["keyword"])]
