import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.relations import Relation
from mitigate.target_list import list_of
from mitigate.verbalise import verbalise


def sentence(head: str, relation: str, tail: str, masking: str = "token", **columns: str) -> dict:
    frame = pl.DataFrame(
        {"head": [head], "relation": [relation], "tail": [tail], **{k: [v] for k, v in columns.items()}}
    )
    return verbalise(frame, masking).row(0, named=True)  # type: ignore[arg-type]


def test_phrase_and_neutral_phrase() -> None:
    found = sentence("lawyer", "CapableOf", "win case")
    assert found["statement"] == "lawyer is capable of win case"
    assert found["masked"] == "this person is capable of win case"
    assert found["masked_neutral"] == "this person is able to win case"
    assert (found["target"], found["category"]) == ("lawyer", "profession")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("african american", "this person"),  # longest first: not "african this person"
        ("lawyer's office", "this person's office"),
        ("two nurses", "two this person"),
        ("secretaries", "this person"),
        ("policemen", "this person"),
        ("human", "human"),  # "man" inside a word stays
        ("the sheet", "the sheet"),  # "he", "she"
        ("Lawyer", "this person"),
        ("nurse and doctor", "this person and this person"),
    ],
)
def test_token_masking_replaces_whole_words_of_every_target(text: str, masked: str) -> None:
    assert sentence(text, "RelatedTo", "thing")["masked"] == f"{masked} is related to thing"


def test_paper_masking_replaces_the_one_target_as_a_substring() -> None:
    found = sentence("man", "RelatedTo", "human nurse", "paper")
    assert found["masked"] == "this person is related to huthis person nurse"
    assert sentence("dog", "RelatedTo", "big nurse", "paper")["masked"] == "dog is related to big nurse"


def test_target_is_the_whole_head_then_the_whole_tail() -> None:
    assert sentence("nurse", "IsA", "woman")["target"] == "nurse"
    assert sentence("dog", "RelatedTo", "nurse")["target"] == "nurse"
    assert sentence("kind nurse", "IsA", "person")["target"] is None


def test_a_given_target_is_kept() -> None:
    found = sentence("surfer", "IsA", "person", target="surfer", category="hobby")
    assert (found["target"], found["category"]) == ("surfer", "hobby")


def test_an_empty_tail_leaves_no_blank() -> None:
    assert sentence("dog", "IsA", "")["statement"] == "dog is a"


def test_unknown_masking() -> None:
    with pytest.raises(MitigateError, match="unknown measure.masking 'word'; allowed: token, paper"):
        sentence("dog", "IsA", "animal", "word")


def test_targets_of_ones_own_are_masked_too() -> None:
    frame = pl.DataFrame(
        {"head": ["surfer", "nurse"], "relation": ["IsA"] * 2, "tail": ["friend of surfers", "surfer"]}
    )
    assert verbalise(frame, target_list=list_of(["surfer"]))["masked"].to_list() == [
        "this person is a friend of this person",
        "this person is a this person",
    ]


def test_relations_of_ones_own_have_their_two_phrases() -> None:
    frame = pl.DataFrame({"head": ["nurse", "cat"], "relation": ["Mentors", "IsA"], "tail": ["a student", "animal"]})
    found = verbalise(frame, own_relations=[Relation("Mentors", "is a good mentor of", "is a mentor of")])
    assert found["masked"].to_list() == ["this person is a good mentor of a student", "cat is a animal"]
    assert found["masked_neutral"][0] == "this person is a mentor of a student"


def test_an_own_target_is_masked_in_all_its_forms_and_is_the_target_of_its_triples() -> None:
    heads = ["deaf person", "a Deaf person", "deaf people", "non-binary person", "nonbinary people", "person"]
    frame = pl.DataFrame({"head": heads, "relation": ["CapableOf"] * 6, "tail": ["fail"] * 6})
    said = verbalise(frame, target_list=list_of(["deaf person", "non-binary person"]))
    assert said["masked"].to_list() == [
        "this person is capable of fail",
        "a this person is capable of fail",
        *["this person is capable of fail"] * 3,
        "person is capable of fail",
    ]
    assert said["target"].to_list() == ["deaf person"] * 3 + ["non-binary person"] * 2 + [None]
    assert said["category"].to_list() == ["own"] * 5 + [None]


def test_paper_masking_replaces_the_forms_of_the_own_target_alone() -> None:
    frame = pl.DataFrame(
        {"head": ["deaf people", "nurse"], "relation": ["RelatedTo"] * 2, "tail": ["nurses", "deaf people"]}
    )
    said = verbalise(frame, "paper", list_of(["deaf person"]))
    assert said["masked"].to_list() == ["this person is related to nurses", "this person is related to deaf people"]
