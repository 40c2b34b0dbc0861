"""The scorers that the configuration names. In tables and metrics one that measures its role is called by the role, any
other by the name it is configured under (decisions.called)."""

from collections.abc import Iterable, Mapping
from copy import copy
from functools import partial
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mitigate.decisions import called, role_scorers
from mitigate.errors import MitigateError, one_of
from mitigate.filter import Policy, check_scorers
from mitigate.metrics import harm_key, parse
from mitigate.recipes.building import NOT_ARGUMENTS, build, watch_modules
from mitigate.recipes.job import plain
from mitigate.score.own import OwnScorer
from mitigate.score.workers import OnWorkers
from mitigate.tasks.scorers import check_name, identified
from mitigate.triples import ROLES, Scorer

ENGINES = ("local", "ray")  # that label: this process, or the workers of Ray


def build_scorers(score: DictConfig) -> list[Scorer]:
    """Those of both roles, and those of score.extra; a role that is null is left out. Raises MitigateError when nothing
    is left."""
    scorers = build_role_scorers(score) + build_extras(score)
    if not scorers:
        raise MitigateError("score.sentiment, score.regard and score.extra name no scorer; at least one must label")
    return scorers


def build_role_scorers(score: DictConfig) -> list[Scorer]:
    """The scorers that score.sentiment and score.regard name, but for a role that is null. Raises MitigateError for one
    that is not in the list."""
    return [
        _build(score, _setting_of(score, configured), configured, name) for name, configured in of_roles(score).items()
    ]


def check_roles(score: DictConfig) -> None:
    """Raises MitigateError where both roles are null, for recipes whose figures are those of the roles."""
    if not of_roles(score):
        raise MitigateError(
            "score.sentiment and score.regard are both null, and this recipe measures by them; name a scorer of one at "
            "least, such as score.sentiment=vader"
        )


def build_extras(score: DictConfig) -> list[Scorer]:
    """The scorers of score.extra, each called in tables as it is there: ngram beside minilm has columns of its own. One
    that labels already, under that name, does not label twice."""
    roles = of_roles(score)
    return _named(score, "score.extra", [name for name in score.extra if roles.get(name) != name])


def build_policy(config: DictConfig) -> Policy:
    """The policy, its scorers as they are called in tables; their names are checked before any is loaded. Raises
    MitigateError for one that is neither a role nor configured, for a class that is no policy, and for a policy that
    acts and has the name of the one that does not."""
    if "_target_" not in config.policy:
        raise MitigateError("the policy names no class: begin its file with `defaults: [none, _self_]`")
    policy = build(config.policy)
    if not isinstance(policy, Policy):
        raise MitigateError(
            f"policy._target_={config.policy._target_} makes a {type(policy).__name__}, which is no policy; derive the "
            "class from mitigate.Policy"
        )
    if policy.name == "none" and (policy.scorers or policy.own_action):
        raise MitigateError(
            "policy.name=none is the name of the baseline, which keeps every triple, and this policy acts; give it a "
            "name of its own: policy.name=NAME"
        )
    return with_names(policy, config.score)


def with_names(policy: Policy, score: DictConfig) -> Policy:
    """A policy with its scorers as they are called in tables. Raises MitigateError as build_policy."""
    roles = called(_checked(score))
    check_scorers(policy, [*roles, *score.scorers])
    named = copy(policy)
    object.__setattr__(named, "scorers", list(dict.fromkeys(roles.get(name, name) for name in policy.scorers)))
    return named


def build_policy_scorers(score: DictConfig, policy: Policy) -> list[Scorer]:
    """The scorers that a policy reads besides the roles'. The triples that it filters must be labelled by them too."""
    return _named(score, "scorer in policy.scorers", [name for name in policy.scorers if name not in of_roles(score)])


def build_critic(score: DictConfig, policy: Policy) -> Scorer | None:
    """What finds what people would call valid, for a policy that needs it. Raises MitigateError where none is
    configured."""
    if not policy.reads_validity:
        return None
    if not score.critic:
        raise MitigateError(
            f"policy={policy.name} needs to know what people would call valid, and score.critic is null; leave it out "
            "for the shipped classifier, or say score.critic.folder=RUN/people_valid"
        )
    critic: Scorer = build(score.critic)
    return critic


def missing(config: DictConfig, groups: Iterable[str]) -> list[str]:
    """Addresses of what is not at hand: what these groups name, such as data and model, and the classifiers that
    label."""
    nodes = [config[group] for group in groups]
    found = [address for node in nodes if "missing" in node for address in build(node.missing)]
    return found + missing_scorers(config.score, config.policy.get("scorers", ()))


def missing_scorers(score: DictConfig, names: Iterable[str] = ()) -> list[str]:
    """Addresses of what must be downloaded for the roles, score.extra and the scorers of these names."""
    _checked(score)  # raises where scorers are configured wrongly
    named = dict.fromkeys([*(score[role] for role in ROLES), *score.extra, *names])
    nodes = [score.scorers[name] for name in named if name in score.scorers]
    return [address for node in nodes if "missing" in node for address in build(node.missing)]


def check_optimised(config: DictConfig) -> None:
    """Raises MitigateError where a search is for a figure that the jobs do not have: unknown, or of a scorer that does
    not label."""
    scorer = parse(config.optimized_metric).metric.scorer
    known = [*of_roles(config.score), *config.score.extra]
    if scorer and scorer not in known:
        others = harm_key(known[0], "mean", template="neutral") if known else "quality/perplexity/all"
        raise MitigateError(
            f"optimized_metric={config.optimized_metric} is a figure of {scorer}, and these jobs are labelled by "
            f"{' and '.join(known) or 'no scorer'}; name one that they have, such as optimized_metric={others}"
        )


def of_roles(score: DictConfig, roles: Iterable[str] = ROLES) -> dict[str, str]:
    """The scorers of the roles, whose figures stand first: what each is called, and the configured one
    (decisions.role_scorers)."""
    return role_scorers(_checked(score, roles))


def _checked(score: DictConfig, roles: Iterable[str] = ROLES) -> dict[str, Any]:
    """What decisions.called needs. Raises MitigateError where a scorer measures no role, or has a role's name."""
    for name, node in score.scorers.items():
        if not OmegaConf.is_dict(node) or "_target_" not in node:
            raise MitigateError(
                f"score.scorers.{name} must be a class and its arguments, such as {{_target_: MODULE.CLASS}}"
            )
        if name in ROLES:
            raise MitigateError(
                f"score.scorers.{name}: a scorer cannot be called {name!r}, which is a role. Give it another name. "
                f"`measures: {name}` beside its _target_ says that its figures are those of {name}"
            )
        if node.get("measures") not in (None, *ROLES):
            raise one_of(f"score.scorers.{name}.measures", node.measures, ROLES)
    return {role: score[role] for role in roles} | {"scorers": plain(score.scorers)}


def _setting_of(score: DictConfig, configured: str) -> str:
    return next(f"score.{role}" for role in ROLES if score[role] == configured)


def _named(score: DictConfig, setting: str, names: Iterable[str]) -> list[Scorer]:
    return [_build(score, setting, name, name) for name in dict.fromkeys(names)]


def _build(score: DictConfig, setting: str, configured: str, name: str) -> Scorer:
    """The scorer configured under that name, called `name` in tables."""
    if configured not in score.scorers:
        raise one_of(setting, configured, score.scorers)
    if score.engine not in ENGINES:
        raise one_of("score.engine", score.engine, ENGINES)
    check_name(configured)
    arguments = plain(score.scorers[configured])
    here = _load(arguments, configured, name)
    is_followed = isinstance(here, OwnScorer) and (here.own_sources or here.fault)  # workers' files are not seen here
    if score.engine == "local" or configured not in score.networks or is_followed:
        return here
    return OnWorkers(here, partial(_load, arguments, configured, name), score.workers, score.address)


def _load(arguments: Mapping[str, Any], configured: str, name: str) -> Scorer:
    """The scorer of a class and its arguments."""
    given = {key: value for key, value in arguments.items() if key not in NOT_ARGUMENTS}
    made = build(OmegaConf.create(given), f"score.scorers.{configured}")
    return identified(made, name, given, watch_modules(given))


def build_rated_scorers(score: DictConfig, held_out: Iterable[str] = ("keyword",)) -> list[Scorer]:
    """The scorers that are compared with people's ratings: those of the roles, and by name those that no policy filters
    by, such as the paper's keyword baseline."""
    roles = of_roles(score)
    further = [name for name in held_out if roles.get(name) != name]
    return [*build_role_scorers(score), *build_named(score, further)]


def build_named(score: DictConfig, names: Iterable[str]) -> list[Scorer]:
    """The scorers configured under these names, each called so in tables."""
    return _named(score, "score.scorers", names)
