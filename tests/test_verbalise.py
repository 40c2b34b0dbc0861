"""Triples as sentences, and the targets that they are about."""

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load.targets import about_targets, check_match, sentences_about_targets
from mitigate.verbalise import verbalise
from mitigate.words.relations import Relation
from mitigate.words.targets import choose_targets, list_of


def sentence(head: str, relation: str, tail: str, masking: str = "token", **columns: str) -> dict:
    frame = pl.DataFrame(
        {"head": [head], "relation": [relation], "tail": [tail], **{k: [v] for k, v in columns.items()}}
    )
    return verbalise(frame, masking).row(0, named=True)  # type: ignore[arg-type]


def test_phrases_and_neutral_phrases_also_of_ones_own_relations() -> None:
    found = sentence("lawyer", "CapableOf", "win case")
    assert found["statement"] == "lawyer is capable of win case"
    assert found["masked"] == "this person is capable of win case"
    assert found["masked_neutral"] == "this person is able to win case"
    assert (found["target"], found["category"]) == ("lawyer", "profession")
    frame = pl.DataFrame({"head": ["nurse", "cat"], "relation": ["Mentors", "IsA"], "tail": ["a student", "animal"]})
    found = verbalise(frame, own_relations=[Relation("Mentors", "is a good mentor of", "is a mentor of")])
    assert found["masked"].to_list() == ["this person is a good mentor of a student", "cat is a animal"]
    assert found["masked_neutral"][0] == "this person is a mentor of a student"


MASKED = {
    "african american": "this person",  # longest first: not "african this person"
    "human": "human",  # "man" inside a word stays
    "the sheet": "the sheet",  # "he", "she"
    **{"lawyer's office": "this person's office", "nurse and doctor": "this person and this person"},
    **{"two nurses": "two this person", "secretaries": "this person", "policemen": "this person"},
    "Lawyer": "this person",
}


@pytest.mark.parametrize(("text", "masked"), MASKED.items())
def test_token_masking_replaces_whole_words_of_every_target(text: str, masked: str) -> None:
    assert sentence(text, "RelatedTo", "thing")["masked"] == f"{masked} is related to thing"


def test_paper_masking_replaces_one_target_as_a_substring_and_another_masking_is_refused() -> None:
    found = sentence("man", "RelatedTo", "human nurse", "paper")
    assert found["masked"] == "this person is related to huthis person nurse"
    assert sentence("dog", "RelatedTo", "big nurse", "paper")["masked"] == "dog is related to big nurse"
    with pytest.raises(MitigateError, match="unknown measure.masking 'word'; allowed: token, paper"):
        sentence("dog", "IsA", "animal", "word")


def test_target_is_the_one_given_or_the_whole_head_then_the_whole_tail() -> None:
    assert sentence("nurse", "IsA", "woman")["target"] == "nurse"
    assert sentence("dog", "RelatedTo", "nurse")["target"] == "nurse"
    assert sentence("kind nurse", "IsA", "person")["target"] is None
    found = sentence("surfer", "IsA", "person", target="surfer", category="hobby")
    assert (found["target"], found["category"]) == ("surfer", "hobby")
    assert sentence("dog", "IsA", "")["statement"] == "dog is a"


def test_own_targets_are_masked_in_all_their_forms_and_are_targets_of_their_triples() -> None:
    frame = pl.DataFrame(
        {"head": ["surfer", "nurse"], "relation": ["IsA"] * 2, "tail": ["friend of surfers", "surfer"]}
    )
    assert verbalise(frame, target_list=list_of(["surfer"]))["masked"].to_list() == [
        "this person is a friend of this person",
        "this person is a this person",
    ]
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
    frame = pl.DataFrame(
        {"head": ["deaf people", "nurse"], "relation": ["RelatedTo"] * 2, "tail": ["nurses", "deaf people"]}
    )
    said = verbalise(frame, "paper", list_of(["deaf person"]))
    assert said["masked"].to_list() == ["this person is related to nurses", "this person is related to deaf people"]


TARGETS = pl.DataFrame(
    {"target": ["lawyer", "nurse", "african", "african american"], "category": ["profession"] * 2 + ["origin"] * 2}
)
TRIPLES = pl.DataFrame(
    {
        "row": [1, 2, 3, 4, 5],
        "head": ["Lawyer", "nurse", "lawyer", "court", "african american family"],
        "tail": ["thief", "lawyer", "lawyer", "lawyers", "nurse's home"],
    }
)


def test_exact_finds_whole_ends_contains_whole_words_and_others_are_refused() -> None:
    found = about_targets(TRIPLES, TARGETS)
    assert found.select("row", "target", "category").rows() == [
        (1, "lawyer", "profession"),
        (2, "nurse", "profession"),
        (2, "lawyer", "profession"),
        (3, "lawyer", "profession"),  # the same at both ends: once
    ]
    found = about_targets(TRIPLES, TARGETS, "contains")
    others = [(4, "lawyer"), (5, "african american"), (5, "nurse")]
    assert found.filter(pl.col("row") > 3).select("row", "target").rows() == others
    assert about_targets(TRIPLES, TARGETS, "exact").select("row", "target").rows()[-1] == (4, "lawyer")
    assert found.filter(pl.col("row") <= 3).equals(about_targets(TRIPLES, TARGETS).select(found.columns))
    with pytest.raises(MitigateError, match="unknown measure.match 'inside'; allowed: exact, contains"):
        check_match("inside")


SENTENCES = pl.DataFrame({"row": [1, 2, 3, 4], "term": ["Lawyer", "court", None, None]}).with_columns(
    statement=pl.Series(
        ["A lawyer helps a nurse.", "Courts have a nurse.", "The nurse and the Lawyer sat.", "Nurses care."]
    )
)


def test_a_sentence_is_about_its_term_or_about_what_stands_in_it() -> None:
    """Where a source does not say what a sentence is about, only what stands in it can be found."""
    exact = sentences_about_targets(SENTENCES, TARGETS)
    assert exact.select("row", "target").rows() == [(1, "lawyer"), (3, "nurse"), (3, "lawyer")]
    inside = sentences_about_targets(SENTENCES, TARGETS, "contains")
    found = [(1, "lawyer"), (1, "nurse"), (2, "nurse"), (3, "nurse"), (3, "lawyer"), (4, "nurse")]
    assert inside.select("row", "target").rows() == found


OWN = choose_targets(["deaf person", "non-binary person", "lawyer", "african"])


def test_own_targets_are_found_in_all_their_forms_and_the_papers_as_they_are() -> None:
    heads = ["Deaf people", "the deaf person", "nonbinary_person", "lawyers", "deaf dog", "deaf persons"]
    triples = pl.DataFrame({"row": range(1, 7), "head": heads, "tail": ["a deaf person", *["x"] * 5]})
    assert about_targets(triples, OWN).select("row", "target").rows() == [
        (1, "deaf person"),
        (2, "deaf person"),
        (3, "non-binary person"),
        (6, "deaf person"),
    ]
    heads = ["school of deaf people", "non-binary people's flag", "african-american nonbinary person", "deaf dog"]
    triples = pl.DataFrame({"row": range(1, 5), "head": heads, "tail": ["x"] * 4})
    found = [(1, "deaf person"), (2, "non-binary person"), (3, "african"), (3, "non-binary person")]
    assert about_targets(triples, OWN, "contains").select("row", "target").rows() == found
    sentences = pl.DataFrame(
        {"row": [1, 2], "term": ["Deaf people", None], "statement": ["x", "They are Deaf people."]}
    )
    assert sentences_about_targets(sentences, OWN)["target"].to_list() == ["deaf person", "deaf person"]


def test_of_two_that_overlap_the_one_that_begins_first_is_found() -> None:
    words = ["person of color", "color blind man", "color blind"]
    texts = pl.Series(["a person of color blind man", "a color blind man"])
    assert list_of(words).found_in(texts, words).rows() == [(0, "person of color"), (1, "color blind man")]
