"""The policies that come with the project, and the experiment that compares them, as configured."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.recipes.job import build
from mitigate.recipes.mitigate.plan import make_plan

CONF = Path(__file__).parents[1] / "conf"
POLICIES = sorted(path.stem for path in (CONF / "policy").glob("*.yaml"))


def composed(*overrides: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base=None):
        return compose("config", list(overrides))


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_a_small_file_that_says_what_it_does(name: str) -> None:
    lines = (CONF / "policy" / f"{name}.yaml").read_text().splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) < 20
    policy = build(composed(f"policy={name}", "filter.splits=all", "seed=3").policy)
    assert (policy.name, policy.splits, policy.seed) == (name, "all", 3)


def test_what_each_policy_does() -> None:
    both = {"scorers": ["sentiment", "regard"]}
    neutral = {**both, "template": "neutral"}
    expected = {
        "none": {},
        "frames": {"scorers": ["frames"]},
        "sentiment": {"scorers": ["sentiment"]},
        "regard": {"scorers": ["regard"]},
        "both": both,
        "both_neutral": neutral,
        "both_people": {**neutral, "scope": "people"},
        "both_targets": {**neutral, "scope": "targets"},
        "downweight": {**neutral, "action": "downweight"},
        "swap": {**neutral, "scope": "targets", "action": "swap"},
        "balance": {**neutral, "scope": "targets", "action": "keep", "balance": True},
        "rerank": {**neutral, "action": "rerank"},
        "random_both": {**both, "action": "random"},
        "random_both_neutral": {**neutral, "action": "random"},
        "experts": {**neutral, "action": "experts"},
        "erase": {**neutral, "action": "erase"},
    }
    shipped = {name: build(composed(f"policy={name}").policy) for name in POLICIES}
    same = {"swapped_relations": shipped["none"].swapped_relations}
    assert shipped == {name: Policy(name, **values, **same) for name, values in expected.items()}


def test_any_setting_of_a_policy_can_be_told_on_the_command_line() -> None:
    told = ["policy.scope=people", "policy.action=swap", "policy.balance=true", "policy.template=neutral"]
    policy = build(composed("policy=both", *told).policy)
    assert (policy.scope, policy.action, policy.balance, policy.template) == ("people", "swap", True, "neutral")


def test_the_experiment_trains_every_policy_for_as_many_steps() -> None:
    config = composed("experiment=policies", "policy=both")
    kept_least = 50_000  # of 100,000 triples; fewer epochs than max_epochs would end training before max_steps
    assert config.trainer.max_steps * config.trainer.batch_size > kept_least
    assert config.trainer.max_epochs * kept_least / config.trainer.batch_size > config.trainer.max_steps
    assert config.data.name == "cn100k"
    assert list(config.score.extra) == ["ngram", "keyword"]
    assert not {config.score.sentiment, config.score.regard} & set(config.score.extra)


def test_who_names_no_policy_gets_the_recommended_one_and_in_the_papers_setting_the_papers() -> None:
    assert composed().policy.name == "both_neutral"
    assert composed("experiment=paper").policy.name == "both"
    assert composed("experiment=paper", "policy=none").policy.name == "none"


def test_candidates_to_rerank_are_no_fewer_than_what_is_kept() -> None:
    with pytest.raises(MitigateError) as error:
        make_plan(composed("policy=rerank", "policy.candidates=5"))
    assert str(error.value) == (
        "policy.candidates=5 must be at least probe.top=10: the tails that are kept are chosen among them"
    )
