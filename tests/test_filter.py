from typing import Any

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.policies import Balance, Downweight, Drop, Filter, Policy, Rerank, Swap, Then, apply_policy
from mitigate.verbalise import verbalise
from mitigate.words.targets import PAPER, TargetList, list_of, targets

LABELS = [(0, 0, 0, 0), (1, 0, 0, 0), (0, -1, 0, -1), (-1, 1, -1, 0), (0, 2, 0, 2), (1, 1, 1, 1)]
"""sentiment, regard, sentiment_neutral, regard_neutral of five training triples and one test triple"""
BOTH = ["sentiment", "regard"]
COLUMNS = ["head", "relation", "tail", "sentiment_neutral_strength"]
Row = tuple[str, str, str, float]


@pytest.fixture
def labelled() -> pl.DataFrame:
    frame = pl.DataFrame(LABELS, schema=[*BOTH, *(f"{name}_neutral" for name in BOTH)], orient="row").cast(pl.Int8)
    return frame.with_columns(split=pl.Series(["train"] * 5 + ["test"]), row=pl.int_range(1, 7))


def neutral(scope: str = "all", kind: type[Filter] = Drop, **values: Any) -> Filter:
    """A policy that goes by the neutral labels of sentiment and regard."""
    return kind("mine", BOTH, "neutral", scope, **values)


def triples(*rows: Row, target_list: TargetList = PAPER) -> pl.DataFrame:
    """Labelled training triples, each (head, relation, tail, strength of its sentiment), regard neutral."""
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row").with_row_index("row", offset=1)
    strength = pl.col(COLUMNS[-1]).cast(pl.Float32)
    labels = {"sentiment_neutral": strength.sign().cast(pl.Int8), "regard_neutral": pl.lit(0, pl.Int8)}
    labels["regard_neutral_strength"] = pl.lit(0.9, pl.Float32)  # of a neutral label: it must count for nothing
    return verbalise(frame.with_columns(strength, split=pl.lit("train"), **labels), target_list=target_list)


REASONS = [
    (Policy("none"), ["kept"] * 6),
    (Drop("sentiment", ["sentiment"]), ["kept", "sentiment +1", "kept", "sentiment -1", "kept", "kept"]),
    (Drop("both", BOTH), both := ["kept", "sentiment +1", "regard -1", "sentiment -1, regard +1", "kept", "kept"]),
    (Drop("both", BOTH, template="neutral"), ["kept", "kept", "regard -1", "sentiment -1", "kept", "kept"]),
    (Drop("both", BOTH, splits="all"), [*both[:-1], "sentiment +1, regard +1"]),
]


@pytest.mark.parametrize(("policy", "reasons"), REASONS)
def test_reasons_and_weights(labelled: pl.DataFrame, policy: Policy, reasons: list[str]) -> None:
    ledger = apply_policy(policy, labelled)
    assert ledger["reason"].to_list() == reasons
    assert ledger["weight"].to_list() == [float(reason == "kept") for reason in reasons]
    assert ledger["row"].to_list() == labelled["row"].to_list()


def test_a_policy_that_drops_everything_is_an_error(labelled: pl.DataFrame) -> None:
    policy = Drop("sentiment", ["sentiment"])
    with pytest.raises(MitigateError, match=r"policy 'sentiment' drops every training triple: sentiment \+1 1, sentim"):
        apply_policy(policy, labelled[[1, 3]])
    with pytest.raises(MitigateError, match="there is no training triple"):
        apply_policy(policy, labelled.filter(split="test"))


STATEMENTS = [
    ("lawyer", "CapableOf", "lie", -0.4),  # a target
    ("someone", "CapableOf", "steal", -0.5),  # a person
    ("knife", "IsA", "weapon", -0.3),
    ("ask some Nurses", "Causes", "help", 0.4),  # a target's plural among other words
    ("hospital", "UsedFor", "sick children", -0.2),  # a plural that is not regular
    ("lawyerly", "HasProperty", "bad", -0.6),  # no target's word
    ("mother", "CapableOf", "cook", 0.0),
]


OWN = list_of(["deaf person", "trans woman", "lawyer"])
SCOPES = [("all", [0, 0, 0, 0, 0, 0, 1]), ("targets", [0, 1, 1, 0, 1, 1, 1])]
SCOPES += [("person_heads", [0, 0, 1, 0, 1, 1, 1])]  # sick children are in a tail


@pytest.mark.parametrize(("scope", "kept"), SCOPES)
def test_scope_also_of_own_targets_in_all_their_forms(scope: str, kept: list[int]) -> None:
    ledger = apply_policy(neutral(scope), triples(*STATEMENTS))
    assert ledger["weight"].to_list() == kept
    for found, weight, reason in ledger.select("sentiment_neutral", "weight", "reason").rows():
        assert reason == (f"sentiment {found:+d}" + ", outside the scope" * int(weight) if found else "kept")
    heads = ("deaf person", "school for Deaf people", "a trans woman", "trans women", "lawyers")
    rows = [*((head, "CapableOf", "fail", -0.4) for head in heads), ("dog", "IsA", "animal", 0.0)]
    ledger = apply_policy(neutral(scope), triples(*rows, target_list=OWN), OWN)
    assert ledger["reason"].to_list() == ["sentiment -1"] * len(heads) + ["kept"]
    assert ledger["weight"].to_list() == [0] * len(heads) + [1]


def test_downweight_by_the_strongest_label_that_is_polarised() -> None:
    rows = triples(("lawyer", "CapableOf", "lie", -0.4), ("dog", "IsA", "pet", 0.25), ("dog", "HasA", "tail", 0.0))
    ledger = apply_policy(neutral(kind=Downweight), rows)
    assert ledger["weight"].to_list() == pytest.approx([0.6, 0.75, 1.0])
    assert ledger["reason"].to_list() == ["sentiment -1", "sentiment +1", "kept"]
    ledger = apply_policy(neutral(kind=Downweight), rows.head(1).with_columns(regard_neutral=pl.lit(-1, pl.Int8)))
    assert ledger["weight"].to_list() == pytest.approx([0.1])  # regard's strength is 0.9


SWAPPED = ["CapableOf", "HasProperty"]
SPOKEN_OF = [
    (target, "IsA", "noun", 0.0)
    for target in ("nurse", "doctor", "farmer", "actor", "baker", "boy", "girl", "mother", "him", "italy", "bible")
]


def swap(*rows: Row, copies: int = 8, seed: int = 1, target_list: TargetList = PAPER) -> pl.DataFrame:
    policy = neutral(kind=Swap, copies=copies, relations=SWAPPED, seed=seed)
    return apply_policy(policy, triples(*rows, target_list=target_list), target_list)


def test_a_pair_shares_a_statement_and_a_target_at_both_ends_is_swapped_at_both() -> None:
    ledger = swap(("girl", "CapableOf", "lie", -0.4), ("boy", "IsA", "child", 0.0))
    assert ledger.select("row", "source_row", "target", "head", "statement", "weight", "reason").rows() == [
        (1, None, "girl", "girl", "girl is capable of lie", 0.5, "sentiment -1, swapped"),
        (2, None, "boy", "boy", "boy is a child", 1.0, "kept"),
        (None, 1, "boy", "boy", "boy is capable of lie", 0.5, "sentiment -1, swapped"),
    ]
    lie = "this person is capable of lie"
    assert ledger["masked"].to_list() == [lie, "this person is a child", lie]
    ledger = swap(("woman", "CapableOf", "woman", -0.4), ("man", "CapableOf", "man", 0.0))
    added = ledger.filter(pl.col("source_row").is_not_null())
    assert added.select("head", "tail", "statement").rows() == [("man", "man", "man is capable of man")]


NOT_SWAPPED: list[Row] = [
    ("girl", "AtLocation", "jail", -0.4),  # a relation whose truth depends on the target
    ("father", "CapableOf", "hit his son", -0.4),  # others beside the target
    *((who, "CapableOf", "lie", -0.4) for who in ("church", "her", "dog")),  # a target without a group, and none
    ("a girl", "CapableOf", "lie", -0.4),  # not a target's word alone
    ("husband", "CapableOf", "lie", -0.4),  # no triple is about wives
]


def test_rows_that_are_not_swapped() -> None:
    for row in NOT_SWAPPED:
        ledger = swap(row, *SPOKEN_OF)
        assert ledger["weight"].to_list() == [1.0] * (1 + len(SPOKEN_OF)), row
        assert ledger["reason"].to_list()[0].endswith(", not swapped")


def test_swaps_stay_in_the_category_and_conserve_weight() -> None:
    ledger = swap(*((target, "CapableOf", "lie", -0.4) for target in targets()))
    source = pl.coalesce("source_row", pl.col("row").cast(pl.UInt32))
    found = ledger.group_by(source).agg(pl.col("weight").sum(), pl.col("category").n_unique())
    assert (found.height, found["category"].max()) == (329, 1)
    assert found["weight"].to_list() == pytest.approx([1.0] * 329)


def balanced(*rows: Row, target_list: TargetList = PAPER) -> pl.DataFrame:
    return apply_policy(neutral(kind=Balance), triples(*rows, target_list=target_list), target_list)


def test_balance_gives_targets_of_a_category_the_same_shares() -> None:
    """Of profession's 8 statements 2 are prejudice, 1 is favouritism: shares 1/4, 5/8, 1/8."""
    strengths = {"lawyer": (-0.4, -0.9, 0, 0), "nurse": (0.4, 0, 0, 0), "girl": (-0.4,), "dog": (-0.4,)}
    rows = [(who, "CapableOf", f"a{n}", size) for who, sizes in strengths.items() for n, size in enumerate(sizes)]
    ledger = balanced(*rows)  # the girl is alone in her category
    # 4 x 1/4 / 2 for each of lawyer's prejudices, 4 x 5/8 / 2 for each neutral; nurse 4 x 1/8 / 1 and 4 x 5/8 / 3
    assert ledger["weight"].to_list() == pytest.approx([0.5] * 2 + [1.25] * 2 + [0.5] + [2.5 / 3] * 3 + [1, 1])
    assert ledger["reason"].to_list() == ["balanced"] * 9 + ["kept"]


NAMES = "must be a list of names such as [a,b], not empty"
FAULTS: list[tuple[type[Policy], dict[str, Any], str]] = [
    (Drop, {"scope": "targts"}, "unknown policy.scope 'targts' (did you mean targets?); allowed: all, person_heads, "),
    (Drop, {"scorers": []}, f"policy.scorers=[] {NAMES}"),
    (Drop, {"copies": 4}, "unknown setting 'policy.copies'; allowed: policy.name, policy.scorers, policy.template"),
    (Swap, {"copies": 1, "relations": []}, "2 settings are wrong:\n  policy.copies=1 must be a whole number from 2 to"),
    (Rerank, {"keep": 30}, "policy.keep=30 must be at most policy.candidates=20; set policy.keep=null"),
    (Then, {"first": Drop("a"), "second": Drop("b")}, "policy@policy.first=a policy@policy.second=b: the first must f"),
]


@pytest.mark.parametrize(("kind", "values", "message"), FAULTS)
def test_faults_of_a_policy_are_sentences_of_its_settings(kind: type[Policy], values: dict, message: str) -> None:
    with pytest.raises(MitigateError) as error:
        kind(**{"name": "mine"} | values)
    assert str(error.value).startswith(message)


def test_controls_draw_as_many_of_each_relation_with_the_same_weights() -> None:
    labelled = triples(*STATEMENTS, *SPOKEN_OF, *((who, "CapableOf", "walk", 0.0) for who in ("nurse", "baker", "boy")))
    for kind in (Downweight, Balance):
        plain, drawn = (apply_policy(neutral("person_heads", kind, control=on), labelled) for on in (False, True))
        weights = [table.group_by("relation").agg(pl.col("weight").sort()).sort("relation") for table in (plain, drawn)]
        assert weights[0].equals(weights[1])
        assert not plain["weight"].equals(drawn["weight"])
        assert drawn.filter(pl.col("weight") != 1)["reason"].unique().to_list() == ["drawn at random"]
    controls = [neutral(kind=Swap, control=True, seed=seed) for seed in range(9)]
    copied = {apply_policy(control, labelled)["source_row"].drop_nulls()[0] for control in controls}
    assert len(copied) > 1  # of those that it could copy one is polarised, and one is drawn
