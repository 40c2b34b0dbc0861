"""Scorers that the configuration names, and how they label. In tables and metrics, a scorer that measures its role is
called by the role, any other by the name it is configured under (triples.called)."""

from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from omegaconf import DictConfig

from mitigate.errors import MitigateError, one_of
from mitigate.measure.base import check_scorer_name
from mitigate.policies import Policy, needs_of, renamed
from mitigate.recipes.config import build, imported
from mitigate.recipes.settings import Score
from mitigate.score.base import check_name, identified
from mitigate.score.workers import OnWorkers
from mitigate.settings import NOT_ARGUMENTS
from mitigate.triples import ROLES, Scorer, called, role_scorers

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
                    "and its name not a role; with `measures: regard` beside it its figures count as those of regard"
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
