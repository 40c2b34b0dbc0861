"""Scorers that the configuration names, and how they label. In tables and metrics, a scorer that measures its role is
called by the role, any other by the name it is configured under (triples.called)."""

from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError, one_of
from mitigate.measure.base import check_scorer_name, find, key_of
from mitigate.policies import Drop, Policy, needs_of, renamed
from mitigate.recipes.config import Config
from mitigate.recipes.instantiate import build, named
from mitigate.score.base import check_name, identified
from mitigate.score.settings import Score
from mitigate.score.workers import OnWorkers
from mitigate.settings import NOT_ARGUMENTS
from mitigate.triples import ROLES, Scorer, called, role_scorers

NETWORKS = ("minilm", "bert", "crowd2", "crowd_lm", "frames")  # scorers slow enough to use workers


class Scorers:
    """The scorers of the group `score`. Raises MitigateError where one measures no role, or has a role's name.

    roles: {name in tables: configured name} of the roles' scorers, whose figures stand first
    (triples.role_scorers), e.g. {'regard': 'minilm'}; names: {role: name in tables}, without a role that is
    null. Each scorer is built when it is first needed; a name that is not in the list then raises MitigateError."""

    def __init__(self, score: Score) -> None:
        self.score = score
        _check(score)
        self.nodes: dict[str, Any] = score.scorers
        named = {role: getattr(score, role) for role in ROLES} | {"scorers": self.nodes}
        self.names, self.roles = called(named), role_scorers(named)

    @cached_property
    def of_roles(self) -> list[Scorer]:
        """The scorers that score.sentiment and score.regard name, but for a role that is null."""
        settings = {str(getattr(self.score, role)): f"score.{role}" for role in reversed(ROLES)}
        names = self.roles.items()
        return [_build(self.score, settings[configured], configured, name) for name, configured in names]

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
        critic: Scorer = build(self.score.critic, "score.critic")
        return critic

    def rated(self, held_out: Iterable[str] = ("keyword",)) -> list[Scorer]:
        """The scorers that are compared with people's ratings: those of the roles, and held-out ones by name, such as
        the paper's keyword baseline."""
        return [*self.of_roles, *self.named([name for name in held_out if self.roles.get(name) != name])]

    def named(self, names: Iterable[str], setting: str = "score.scorers") -> list[Scorer]:
        """The scorers configured under these names, which are their names in tables too. setting: where they are
        named."""
        return [_build(self.score, setting, name, name) for name in dict.fromkeys(names)]

    def check_roles(self) -> None:
        """Raise MitigateError where both roles are null, for recipes whose figures are those of the roles."""
        if not self.roles:
            raise MitigateError(
                "score.sentiment and score.regard are both null, and this recipe measures by them; set at least one, "
                "such as score.sentiment=vader"
            )

    def policy(self, node: DictConfig) -> Policy:
        """The policy, with the names that its scorers have in tables; they are checked before any is loaded. Raises
        MitigateError for a scorer that is neither a role nor configured, for a class that is not a policy, and for a
        policy that acts under the name of the baseline."""
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
        return self.in_tables(policy)

    def absent_roles(self, policy: Policy) -> list[str]:
        """The roles that a policy reads and whose scorer is null."""
        return [role for role in policy.reads if role in ROLES and role not in self.names]

    def in_tables(self, policy: Policy) -> Policy:
        """A policy with the names that its scorers have in tables. Raises MitigateError as `policy`."""
        if absent := self.absent_roles(policy):
            raise MitigateError(
                f"policy={policy.name} reads the labels of {' and '.join(absent)}, and score.{absent[0]} is null; "
                f"leave score.{absent[0]} out, or choose a policy without it"
            )
        known = [*self.names, *self.score.scorers]
        if unknown := [name for name in policy.reads if name not in known]:
            raise one_of("scorer in policy.scorers", unknown[0], known)
        return renamed(policy, self.names)


def check_optimised(config: Config) -> None:
    """Raise MitigateError where a search is for a figure that the jobs do not have: unknown, or of a scorer that does
    not label."""
    figure = find(config.optimized_metric)
    scorer = figure.scorer if figure else ""
    labelling = [*Scorers(config.score).roles, *config.score.extra]
    if scorer and scorer not in labelling:
        others = key_of("neutral_mean", labelling[0], "neutral") if labelling else key_of("perplexity")
        raise MitigateError(
            f"optimized_metric={config.optimized_metric} is a figure of {scorer}, and these jobs are labelled by "
            f"{' and '.join(labelling) or 'no scorer'}; set one of their figures, such as optimized_metric={others}"
        )


def _check(score: Score) -> None:
    """Raise MitigateError where a scorer measures no role, or has a role's name."""
    for name, node in score.scorers.items():
        if not isinstance(node, dict) or "_target_" not in node:
            raise MitigateError(
                f"score.scorers.{name} must be a class and its arguments, such as {{_target_: MODULE.CLASS}}"
            )
        if name in ROLES:
            raise MitigateError(
                f"score.scorers.{name}: invalid scorer name {name!r}: it is a role. Choose another name; with "
                f"`measures: {name}` beside its _target_ its figures count as those of {name}"
            )
        if node.get("measures") not in (None, *ROLES):
            raise one_of(f"score.scorers.{name}.measures", node["measures"], ROLES)


def _build(score: Score, setting: str, configured: str, name: str) -> Scorer:
    """The scorer configured under that name; `name` is its name in tables."""
    if configured not in score.scorers:
        raise one_of(setting, configured, score.scorers)
    check_name(configured)
    check_scorer_name(configured)
    arguments = score.scorers[configured]
    here = _load(arguments, configured, name)
    if score.engine == "local" or configured not in NETWORKS:
        return here
    return OnWorkers(here, partial(_load, arguments, configured, name), score.workers)


def _load(arguments: Mapping[str, Any], configured: str, name: str) -> Scorer:
    """The scorer of a class and its arguments."""
    given = {key: value for key, value in arguments.items() if key not in NOT_ARGUMENTS}
    made = build(given, f"score.scorers.{configured}")
    return identified(made, name, given, named(given, f"score.scorers.{configured}"))


def drop_policies(scorers: Scorers) -> list[Policy]:
    """All configured policies whose action is to drop and whose scorers label, `none` first, with the names that these
    have in tables."""
    loader, found = GlobalHydra.instance().config_loader(), []
    config = loader.load_configuration("config", [], RunMode.RUN)
    OmegaConf.set_struct(config, False)
    for name in loader.get_group_options("policy"):
        # The group's file alone: composing the whole configuration for each policy took five seconds.
        config.policy = loader.load_configuration(f"policy/{name}", [], RunMode.RUN).policy
        policy = build(config.policy)
        if type(policy) in (Policy, Drop) and not scorers.absent_roles(policy):
            found.append(scorers.in_tables(policy))
    return sorted(found, key=lambda policy: (len(policy.reads), policy.name))
