"""The shipped policies and the experiment that compares them; ranking neutral tails first."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl
from command import composed

from mitigate.policies import (
    Balance,
    Choice,
    Contrast,
    Critic,
    Downweight,
    Drop,
    Policy,
    Rerank,
    Scored,
    Swap,
    Tag,
    Validity,
    choice_of,
    renamed,
)
from mitigate.policies.base import reorder
from mitigate.policies.choose import draw_as_many
from mitigate.recipes.config import build
from mitigate.triples import PROBED

CONF = Path(__file__).parents[1] / "conf"
SHIPPED: dict[str, tuple[type[Policy], dict[str, Any]]] = {
    "none": (Policy, {}),
    "sentiment": (Drop, {"scorers": ["sentiment"]}),
    "regard": (Drop, {"scorers": ["regard"]}),
    "both": (Drop, {}),
    "both_neutral": (Drop, {"template": "neutral"}),
    "both_person_heads": (Drop, {"template": "neutral", "scope": "person_heads"}),
    "both_targets": (Drop, {"template": "neutral", "scope": "targets"}),
    "downweight": (Downweight, {}),
    "balance": (Balance, {}),
    "swap": (Swap, {}),
    "tagged": (Tag, {}),
    "rerank": (Rerank, {}),
    "critic": (Critic, {}),
    "validity": (Validity, {}),
    "contrast": (Contrast, {}),
}
"""The class of each policy, and the settings that differ from the class's defaults."""


def test_each_policy_is_a_small_file_with_all_settings_of_its_class_and_their_defaults() -> None:
    assert {*SHIPPED, "then"} == {path.stem for path in (CONF / "policy").glob("*.yaml")}
    for name, (kind, values) in SHIPPED.items():
        lines = (CONF / "policy" / f"{name}.yaml").read_text().splitlines()
        assert lines[0].startswith("# "), name
        assert len(lines) < 15, name
        node = composed(f"policy={name}").policy
        assert {*node} == {"_target_", *(field.name for field in fields(kind))}, name
        assert build(node) == kind(name, **values), name
    swept = build(composed("policy=swap", "filter.splits=all", "seed=3", "policy.control=true").policy)
    assert swept == Swap("swap", splits="all", seed=3, control=True)


def test_a_policy_of_two_policies_filters_as_one_and_chooses_as_the_other() -> None:
    both = build(composed("policy=then").policy)
    assert (both.name, both.filters, both.reads) == ("both_person_heads_rerank", True, ["sentiment", "regard"])
    assert both.first == build(composed("policy=both_person_heads").policy)
    assert choice_of(both) == both.second == build(composed("policy=rerank").policy)
    chosen = ("policy@policy.first=tagged", "policy@policy.second=contrast", "policy.second.candidates=9")
    other = build(composed("policy=then", *chosen, "policy.control=true").policy)
    assert (other.name, other.tags(), other.first.control, other.second.candidates) == ("tagged_contrast", "", True, 9)
    assert other.second.control
    assert renamed(both, {"regard": "mine"}).reads == ["sentiment", "mine"]
    assert [build(composed(f"policy={name}").policy).filters for name in ("none", "rerank", "tagged")] == [0, 0, 1]


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
    found = reorder(candidates(*rows), [pl.col("regard").is_in([-1, 1])], top=3)
    first, second = ([("work", 1, 2), ("eat", 2, 4), ("lie", 3, 1)], [("eat", 1, 4), ("lie", 2, 1), ("win", 3, 2)])
    assert found.select("tail", "rank", "beam_rank").rows() == first + second
    assert found["target"].to_list() == ["nurse"] * 3 + ["lawyer"] * 3
    assert dict(found.drop("beam_rank").schema) == PROBED
    assert found["score"].to_list() == [-2, -4, -1, -4, -1, -2]


def moved(seed: int, heads: str = "abcdefgh") -> dict[str, set[int]]:
    """Of each head the ranks among the best three of eight candidates that are moved out of them. The second, the third
    and the fifth are polarised."""
    rows = [(head, "CapableOf", f"tail {rank}", rank, int(rank in (2, 3, 5))) for head in heads for rank in range(1, 9)]
    given = candidates(*rows)
    drawn = draw_as_many(given, pl.col("regard") == 1, 3, seed)
    assert given.filter(drawn).group_by("head").agg((pl.col("rank") <= 3).sum())["rank"].to_list() == [2] * len(heads)
    assert drawn.sum() == 3 * len(heads)
    found = reorder(given.with_columns(drawn=drawn), [pl.col("drawn")], 3)
    stay = {head: set(rows["beam_rank"]) for (head,), rows in found.group_by("head")}
    return {head: {1, 2, 3} - stay[head] for head in heads}


def test_the_control_of_rerank_moves_as_many_tails_of_each_prompt_by_its_seed() -> None:
    """Rerank moves two of the best three out and none of the other five that it passes over in."""
    found = moved(1)
    assert {len(ranks) for ranks in found.values()} == {2}
    assert len({frozenset(ranks) for ranks in found.values()}) > 1  # not the same ranks of each prompt
    assert moved(1) == found != moved(2)
    assert moved(1, heads="hca") == {head: found[head] for head in "hca"}  # whatever else is asked


TAILS = [("lie", 1, -1, 0.9), ("help", 2, 0, 0.2), ("sue", 3, 1, 0.7), ("write", 4, 0, 0.6), ("walk", 5, 0, 0.4)]


def valued() -> pl.DataFrame:
    """TAILS of a head, with what people would call valid of one relation and not of the other."""
    rows = [("nurse", name, *tail[:3]) for name in ("CapableOf", "AtLocation") for tail in TAILS]
    values = pl.Series([tail[3] for tail in TAILS] + [None] * len(TAILS), dtype=pl.Float32)
    return candidates(*rows).with_columns(people_validity=values)


def ranked(kind: type[Choice], top: int = 3, **more: Any) -> dict[str, list[str]]:
    """The tails of each relation."""
    read = {"scorers": ["regard"], "template": "paper"} if issubclass(kind, Scored) else {}
    found = kind("mine", **read, **more).choose(valued(), top)
    return {name: rows["tail"].to_list() for (name,), rows in found.group_by("relation", maintain_order=True)}


def test_a_critic_ranks_neutral_tails_by_validity_where_people_rated_and_validity_all() -> None:
    assert ranked(Critic, 5) == {
        "CapableOf": ["write", "walk", "help", "lie", "sue"],  # the polarised ones by likelihood
        "AtLocation": ["help", "write", "walk", "lie", "sue"],
    }
    assert ranked(Rerank)["CapableOf"] == ranked(Rerank)["AtLocation"] == ["help", "write", "walk"]
    assert ranked(Validity) == {"CapableOf": ["lie", "sue", "write"], "AtLocation": ["lie", "help", "sue"]}
