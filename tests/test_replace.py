"""Policies that replace the tails of polarised triples, and their control, on hand-made triples."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import SMALL
from refusals import refuses
from small_models import small_comet
from test_filter import neutral, triples
from test_tasks_generator import Theft, Words

from mitigate.errors import MitigateError
from mitigate.filter import Policy, apply_policy, prompts_lacking_tails
from mitigate.measure.quality import kept_by_target
from mitigate.recipes.stories.plan import check_policy
from mitigate.report.ledger import summary
from mitigate.tasks.generators.base_model import find_start
from mitigate.tasks.generators.probe import PartsInMemory
from mitigate.tasks.label import Labeller, label_statements
from mitigate.tasks.policies.filtered import filter_figures
from mitigate.tasks.policies.rerank import find_generator, generate_tails

LAWYER = [("lie", -0.4), ("steal", -0.6), ("win", 0.5), ("talk", 0.0), ("read", 0.0)]
ROWS = [
    *(("lawyer", "CapableOf", tail, strength) for tail, strength in LAWYER),
    ("lawyer", "Desires", "money", -0.3),  # its only tail
    ("nurse", "CapableOf", "walk", 0.0),
    ("nurse", "CapableOf", "hurt", -0.5),
]


def pairs(ledger: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Head, old and new tail of each replaced triple."""
    added = ledger.filter(pl.col("source_row").is_not_null())
    return sorted(added.select("head", "old_tail", "tail").rows())


def generated(*rows: tuple[str, str, str, float]) -> pl.DataFrame:
    """Labelled tails as a generator finds them, the likeliest first."""
    made = triples(*rows).drop("row", "split")
    return made.with_columns(rank=pl.int_range(1, pl.len() + 1).over("head", "relation"))


def test_a_polarised_triple_is_given_a_neutral_tail_of_its_prompt() -> None:
    """Two neutral tails stand in for three in turns; where there is none, the triple is dropped."""
    ledger = apply_policy(neutral(action="replace"), triples(*ROWS))
    found = pairs(ledger)
    assert [(head, old) for head, old, _ in found] == [
        *(("lawyer", tail) for tail in ("lie", "steal", "win")),
        ("nurse", "hurt"),
    ]
    assert sorted(new for head, _, new in found if head == "lawyer") in (
        ["read", "read", "talk"],
        ["read", "talk", "talk"],
    )
    assert found[3][2] == "walk"
    assert ledger["weight"].to_list() == [0, 0, 0, 1, 1, 0, 1, 0, *[1] * 4]
    assert ledger.filter(tail="money")["reason"].to_list() == ["sentiment -1"]
    assert ledger.filter(old_tail="win").select("reason", "tail_source", "row", "source_row").rows() == [
        ("sentiment +1, replaced", "training", None, 3)
    ]
    assert ledger.filter(tail="win")["reason"].to_list() == ["sentiment +1, replaced"]
    figures = {"filter/kept": 3, "filter/dropped": 5, "filter/added": 4, "filter/weight": 7.0}
    assert filter_figures(ledger) == figures


def test_each_prompt_is_trained_as_often_as_before_and_nothing_polarised_is() -> None:
    labelled = triples(*ROWS)
    ledger = apply_policy(neutral(action="replace"), labelled).filter(pl.col("weight") > 0)
    assert ledger.filter(pl.col("sentiment_neutral") != 0).is_empty()
    weights = dict(ledger.group_by("head", "relation").agg(pl.col("weight").sum()).select("head", "weight").rows())
    assert weights == {"lawyer": 5, "nurse": 2}
    assert ledger["statement"].to_list()[-1] == f"nurse is capable of {ledger['tail'][-1]}"
    assert kept_by_target(apply_policy(neutral(action="replace"), labelled))["kept"].to_list() == [
        2,
        1,
    ]  # what is added does not count


def test_what_is_drawn_is_decided_by_the_seed() -> None:
    labelled = triples(*(("man", "CapableOf", f"tail {n}", -0.5 * (n < 6)) for n in range(12)))
    for action in ("replace", "random_replace"):
        first, again, other = (apply_policy(neutral(action=action, seed=seed), labelled) for seed in (1, 1, 2))
        assert first.equals(again)
        assert pairs(first) != pairs(other)


def test_other_splits_are_not_replaced_and_lend_nothing() -> None:
    test = triples(*ROWS[3:5]).with_columns(split=pl.lit("test"))
    labelled = pl.concat([triples(*ROWS[:3], ROWS[6]), test])
    assert pairs(apply_policy(neutral(action="replace"), labelled)) == []
    bad = triples(*ROWS).with_columns(split=pl.lit("test"))
    ledger = apply_policy(neutral(action="replace", splits="all"), pl.concat([triples(*ROWS), bad]))
    assert ledger.filter(split="test")["weight"].to_list() == [0, 0, 0, 1, 1, 0, 1, 0]
    assert ledger.filter(split="test")["source_row"].is_null().all()
    assert len(pairs(ledger)) == 4


def test_triples_that_are_not_valid_lend_nothing() -> None:
    labelled = triples(*ROWS).with_columns(valid=pl.col("tail") != "walk")
    assert [head for head, _, _ in pairs(apply_policy(neutral(action="replace"), labelled))] == ["lawyer"] * 3


def test_a_dose_and_a_scope_decide_which_are_replaced() -> None:
    assert [old for _, old, _ in pairs(apply_policy(neutral(action="replace", strongest=0.2), triples(*ROWS)))] == [
        "steal"
    ]
    rows = [("knife", "IsA", "weapon", -0.4), ("knife", "IsA", "tool", 0.0), *ROWS]
    assert len(pairs(apply_policy(neutral("people", action="replace"), triples(*rows)))) == 4


def test_a_generator_stands_in_where_no_training_triple_does() -> None:
    """Its likeliest neutral tail, and that of another triple of the prompt the next one."""
    rows = [*ROWS, ("lawyer", "Desires", "fame", 0.4)]
    policy, labelled = neutral(action="replace"), triples(*rows)
    assert prompts_lacking_tails(policy, labelled).rows() == [("lawyer", "Desires")]
    found = [("a fight", -0.4), ("a book", 0.0), ("tea", 0.0), ("rest", 0.0)]
    tails = generated(*(("lawyer", "Desires", tail, strength) for tail, strength in found))
    ledger = apply_policy(policy, labelled, generated=tails)
    added = ledger.filter(tail_source="generator")
    assert sorted(added["tail"]) == ["a book", "tea"]
    assert added["statement"].to_list() == [f"lawyer desires {tail}" for tail in added["tail"]]
    assert set(added["split"]) == {"train"}
    assert ledger.filter(pl.col("weight") > 0).height == len(rows)
    assert ledger.columns == apply_policy(policy, labelled).columns
    none = generated(("lawyer", "Desires", "a fight", -0.4))
    assert apply_policy(policy, labelled, generated=none).equals(apply_policy(policy, labelled))


def many() -> pl.DataFrame:
    """Of two relations 60 triples each, a third of them polarised; every fourth head has one tail alone."""
    rows = [
        (f"man {n % 20}" if n % 4 else f"boy {n}", relation, f"tail {n}", -0.5 * (n % 3 == 0))
        for relation in ("CapableOf", "Desires")
        for n in range(60)
    ]
    return triples(*rows)


def test_the_control_replaces_and_drops_as_many_of_each_relation_at_random() -> None:
    labelled = many()
    policy, control = (apply_policy(neutral(action=action), labelled) for action in ("replace", "random_replace"))
    added, of_control = (ledger.filter(pl.col("source_row").is_not_null()) for ledger in (policy, control))
    for column in ("relation", "tail_source"):
        assert sorted(added[column]) == sorted(of_control[column])
    assert summary(policy, "relation")["dropped"].to_list() == summary(control, "relation")["dropped"].to_list()
    assert set(control["reason"]) == {"kept", "drawn at random", "drawn at random, replaced"}
    assert (of_control["tail"] != of_control["old_tail"]).all()
    assert of_control.filter(pl.col("sentiment_neutral") != 0).height  # without the condition
    drawn = control.filter(weight=0)
    assert set(drawn["sentiment_neutral"]) == {-1, 0}
    assert added.filter(pl.col("sentiment_neutral") != 0).is_empty()


def test_the_control_asks_the_generator_for_what_it_draws_and_uses_as_many_tails() -> None:
    labelled = many()
    policy, control = (neutral(action=action) for action in ("replace", "random_replace"))
    asked = prompts_lacking_tails(control, labelled)
    own = prompts_lacking_tails(policy, labelled)
    assert own.join(asked, on=["head", "relation"], how="anti").is_empty()
    assert asked.height > own.height
    tails = generated(
        *((head, relation, tail, 0.4 * (tail == "win")) for head, relation in asked.rows() for tail in ("win", "rest"))
    )
    ledgers = [apply_policy(of, labelled, generated=tails) for of in (policy, control)]
    sources = [sorted(ledger["tail_source"].drop_nulls()) for ledger in ledgers]
    assert sources[0] == sources[1]
    assert sources[0].count("generator") > 0
    assert set(ledgers[0].filter(tail_source="generator")["tail"]) == {"rest"}
    assert "win" in set(ledgers[1].filter(tail_source="generator")["tail"])
    assert len({ledger.filter(pl.col("weight") > 0).height for ledger in ledgers}) == 1


def test_the_control_stays_in_the_scope() -> None:
    rows = [(head, "CapableOf", f"tail {n}", -0.4 * (n < 2)) for head in ("nurse", "dog") for n in range(6)]
    ledger = apply_policy(neutral("targets", action="random_replace"), triples(*rows))
    assert set(ledger.filter(weight=0)["head"]) == {"nurse"}
    assert len(pairs(ledger)) == 2


@pytest.mark.parametrize("action", ["replace", "random_replace"])
def test_a_policy_that_finds_nothing_replaces_nothing(action: str) -> None:
    labelled = triples(("nurse", "CapableOf", "walk", 0.0), ("nurse", "CapableOf", "talk", 0.0))
    ledger = apply_policy(neutral(action=action), labelled)
    assert ledger["weight"].to_list() == [1, 1]
    assert prompts_lacking_tails(neutral(action=action), labelled).is_empty()


REPLACE = Policy("mine", ["regard"], action="replace", candidates=3, least_score=-2.5)


def stealing(*prompts: tuple[str, str]) -> pl.DataFrame:
    """Labelled training triples, of each head and relation the tail "steal", which is prejudice."""
    rows = pl.DataFrame(prompts, schema=["head", "relation"], orient="row")
    rows = rows.with_row_index("row", offset=1).with_columns(tail=pl.lit("steal"), split=pl.lit("train"))
    return label_statements(rows, [Theft()])


def test_likely_tails_that_are_no_echo_are_generated_and_labelled(tmp_path: Path) -> None:
    """The generator's are steal, work and eat, of 1, 2 and 3 nats a token."""
    labelled = stealing(("nurse", "CapableOf"), ("work", "CapableOf"))
    found = generate_tails(REPLACE, labelled, find_start(Words, tmp_path), Labeller([Theft()]))
    tails = found.select("head", "tail", "rank", "regard", "statement").rows()
    assert tails == [
        ("nurse", "steal", 1, -1, "nurse is capable of steal"),
        ("nurse", "work", 2, 0, "nurse is capable of work"),
        ("work", "steal", 1, -1, "work is capable of steal"),
    ]
    ledger = apply_policy(REPLACE, labelled, generated=found)
    assert ledger.filter(pl.col("weight") > 0).select("head", "tail", "target").rows() == [("nurse", "work", "nurse")]


def test_what_was_generated_is_kept_across_a_kill(tmp_path: Path) -> None:
    searches: list[int] = []

    class Killed(Words):
        def search(self, prompts: Any, **how: int) -> Any:
            searches.append(len(prompts))
            if len(searches) == 2:
                raise KeyboardInterrupt
            return super().search(prompts, **how)

    labelled, parts = stealing(("nurse", "CapableOf"), ("man", "Desires"), ("boy", "CapableOf")), PartsInMemory()
    start = find_start(Killed, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        generate_tails(REPLACE, labelled, start, Labeller([Theft()]), parts=parts)
    found = generate_tails(REPLACE, labelled, start, Labeller([Theft()]), parts=parts)
    assert searches == [2, 1, 1]
    assert found.equals(generate_tails(REPLACE, labelled, find_start(Words, tmp_path), Labeller([Theft()])))


def test_a_generator_is_named_with_such_a_policy_and_is_there(tmp_path: Path) -> None:
    refuses(MitigateError, "is used only by policy.action=replace and random_replace", Policy, "mine", generator="a")
    message = "policy.generator=absent is not a folder of a trained generator"
    refuses(MitigateError, message, find_generator, replace(REPLACE, generator="absent"))
    assert find_generator(REPLACE) is None
    with pytest.raises(MitigateError, match="is asked by recipe=mitigate and recipe=filter alone"):
        check_policy(replace(REPLACE, generator="absent"))


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """Settings of a file of triples, some of which have a polarised tail, and of a small random generator."""
    heads, tails = ("lawyer", "nurse", "tea"), ("tall", "terrible", "wonderful")
    rows = [(head, "HasProperty", tail, "train") for head in heads for tail in tails if (head, tail) != ("tea", "tall")]
    rows += [("lawyer", "IsA", "person", "train"), ("man", "HasProperty", "terrible", "train")]
    rows += [("dog", "IsA", "animal", "test"), ("cat", "HasProperty", "small", "dev")]
    pl.DataFrame(rows, schema=["head", "relation", "tail", "split"], orient="row").write_ndjson(tmp_path / "few.jsonl")
    small_comet(layers=1, heads=2).save(tmp_path / "model")
    names = ("policy.candidates=4", "policy.least_score=-100", f"policy.generator={tmp_path / 'model'}")
    return ["data=triples", f"data.path={tmp_path / 'few.jsonl'}", "policy.scorers=[sentiment]", *names]


def test_a_data_set_of_replaced_triples_is_exported_with_its_datasheet(asked: list[str], job) -> None:
    folder = job("recipe=filter", "policy=replace", *asked).folder
    ledger, kept = pl.read_parquet(folder / "ledger.parquet"), pl.read_csv(folder / "kept.tsv", separator="\t")
    added = ledger.filter(pl.col("tail_source").is_not_null())
    assert kept["tail_source"].drop_nulls().to_list() == added["tail_source"].to_list()
    assert sorted(added.filter(tail_source="training").select("head", "old_tail", "tail").rows()) == [
        (head, tail, "tall") for head in ("lawyer", "nurse") for tail in ("terrible", "wonderful")
    ]
    of_generator = added.filter(tail_source="generator").height
    assert of_generator == 3  # of tea two, of man one
    said = "7 training triples got another tail of the same head and relation: 4 that of another training triple, 3 a"
    assert f"> {said} generated one. 0 without such a tail are dropped." in (folder / "README.md").read_text()
    old = ledger.filter(split="train").select(source_row="row", former="tail", of_old="reason")
    for row in added.join(old, on="source_row").rows(named=True):
        assert (row["old_tail"], row["reason"]) == (row["former"], row["of_old"])


def test_the_main_job_trains_on_what_a_generator_says(asked: list[str], job) -> None:
    """Takes over 3 s: a whole job."""
    done = job("policy=random_replace", *asked, *SMALL, "score.plausibility=null")
    assert done.status == 0, done.complaint
    stages = [stage["stage"] for stage in json.loads((done.folder / "manifest.json").read_text())["stages"]]
    assert stages[:4] == ["score", "generated_tails", "ledger", "train"]
    assert set(pl.read_parquet(done.folder / "ledger.parquet")["tail_source"]) == {"training", "generator", None}
