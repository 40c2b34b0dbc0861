"""The shipped policies and the experiment that compares them; ranking neutral tails first."""

from pathlib import Path

import polars as pl
import pytest
from command import composed

from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.probe.rerank import neutral_first
from mitigate.recipes.job import build
from mitigate.recipes.mitigate.plan import make_plan
from mitigate.triples import PROBED

CONF = Path(__file__).parents[1] / "conf"
POLICIES = sorted(path.stem for path in (CONF / "policy").glob("*.yaml"))


def test_each_policy_is_a_small_file_with_a_comment_and_does_what_its_name_says() -> None:
    for name in POLICIES:
        lines = (CONF / "policy" / f"{name}.yaml").read_text().splitlines()
        assert lines[0].startswith("# "), name
        assert len(lines) < 20, name
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
    shipped = {name: build(composed(f"policy={name}", "filter.splits=all", "seed=3").policy) for name in POLICIES}
    same = {"swapped_relations": shipped["none"].swapped_relations, "splits": "all", "seed": 3}
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


def candidates(*rows: tuple[str, str, str, int, int]) -> pl.DataFrame:
    """Each (target, relation, tail, rank, label)."""
    frame = pl.DataFrame(rows, schema=["target", "relation", "tail", "rank", "regard"], orient="row")
    score = -pl.col("rank").cast(pl.Float32)
    frame = frame.with_columns(category=pl.lit("profession"), head="target", log_prob=score, score=score)
    return frame.cast({"rank": PROBED["rank"], "regard": pl.Int8})


def test_neutral_tails_come_first_and_the_best_of_the_others_fill_up() -> None:
    nurse = [("lie", 1, -1), ("work", 2, 0), ("steal", 3, -1), ("eat", 4, 2)]
    lawyer = [("lie", 1, -1), ("win", 2, 1), ("steal", 3, -1), ("eat", 4, 0)]
    rows = [(who, "CapableOf", *tail) for who, tails in (("nurse", nurse), ("lawyer", lawyer)) for tail in tails]
    found = neutral_first(candidates(*rows), pl.col("regard").is_in([-1, 1]), top=3)
    assert found.select("target", "tail", "rank", "beam_rank").rows() == [
        ("nurse", "work", 1, 2),
        ("nurse", "eat", 2, 4),
        ("nurse", "lie", 3, 1),
        ("lawyer", "eat", 1, 4),
        ("lawyer", "lie", 2, 1),
        ("lawyer", "win", 3, 2),
    ]
    assert dict(found.drop("beam_rank").schema) == PROBED
    assert found["score"].to_list() == [-2, -4, -1, -4, -1, -2]


def test_neutral_candidates_stay_and_hundreds_are_ranked() -> None:
    given = candidates(*(("nurse", "IsA", tail, rank, 0) for rank, tail in enumerate("abc", start=1)))
    found = neutral_first(given, pl.col("regard").is_in([-1, 1]), top=2)
    assert found["tail"].to_list() == ["a", "b"]
    assert found["rank"].to_list() == found["beam_rank"].to_list() == [1, 2]
    given = candidates(*(("nurse", "IsA", f"tail {rank}", rank, rank % 2) for rank in range(1, 301)))
    found = neutral_first(given, pl.col("regard") == 1, top=300)
    assert found["rank"].to_list() == list(range(1, 301))
    assert found["beam_rank"].to_list() == [*range(2, 301, 2), *range(1, 301, 2)]
