"""The policies of the configuration that drop triples by labels: those that come with the project, and a user's own."""

from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import OmegaConf

from mitigate.filter import Policy
from mitigate.recipes.job import build
from mitigate.recipes.scorers import Scorers
from mitigate.tasks.drop_rules import is_drop_rule

FRAMES = "frames"


def drop_policies(scorers: Scorers) -> list[Policy]:
    """All policies that the configuration has whose action is to drop, `none` first, their scorers as they are called
    in tables."""
    found = [policy for name in _names() if is_drop_rule(policy := scorers.in_tables(_policy(name)))]
    if scorers.score.frames.run is None:  # then the scorer `frames` cannot label
        found = [policy for policy in found if FRAMES not in policy.scorers]
    return sorted(found, key=lambda policy: (len(policy.scorers), policy.name))


def _names() -> list[str]:
    return GlobalHydra.instance().config_loader().get_group_options("policy")


def _policy(name: str) -> Policy:
    loader = GlobalHydra.instance().config_loader()
    config = loader.load_configuration("config", [f"policy={name}"], RunMode.RUN)
    OmegaConf.set_struct(config, False)
    policy: Policy = build(config.policy)
    return policy
