"""Triples as sentences, and the targets that they are about."""

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load.targets import about_targets, check_match, sentences_about_targets
from mitigate.verbalise import verbalise
from mitigate.words.relations import Relation
from mitigate.words.targets import list_of


def sentence(head: str, relation: str, tail: str, masking: str = "token", **columns: str) -> dict:
    given = {"head": head, "relation": relation, "tail": tail, **columns}
    frame = pl.DataFrame({name: [value] for name, value in given.items()})
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
    "two nurses": "two this person",
    "Lawyer": "this person",
}


def test_token_masking_replaces_whole_words_of_every_target() -> None:
    for text, masked in MASKED.items():
        assert sentence(text, "RelatedTo", "thing")["masked"] == f"{masked} is related to thing"


def test_paper_masking_replaces_one_target_as_a_substring_and_another_masking_is_refused() -> None:
    found = sentence("man", "RelatedTo", "human nurse", "paper")
    assert found["masked"] == "this person is related to huthis person nurse"
    assert sentence("dog", "RelatedTo", "big nurse", "paper")["masked"] == "dog is related to big nurse"
    own = pl.DataFrame({"head": ["surfer"], "relation": ["RelatedTo"], "tail": ["windsurfer"]})
    found = verbalise(own, "paper", target_list=list_of(["surfer"]))
    assert found["masked"].item() == "this person is related to windthis person"
    with pytest.raises(MitigateError, match="unknown measure.masking 'word'; allowed: token, paper"):
        sentence("dog", "IsA", "animal", "word")


def test_target_is_the_one_given_or_the_whole_head_then_the_whole_tail() -> None:
    assert sentence("nurse", "IsA", "woman")["target"] == "nurse"
    assert sentence("dog", "RelatedTo", "nurse")["target"] == "nurse"
    assert sentence("kind nurse", "IsA", "person")["target"] is None
    found = sentence("surfer", "IsA", "person", target="surfer", category="hobby")
    assert (found["target"], found["category"]) == ("surfer", "hobby")


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
    found = about_targets(TRIPLES, TARGETS).select("row", "target").rows()
    assert found == [(1, "lawyer"), (2, "nurse"), (2, "lawyer"), (3, "lawyer")]  # the same at both ends: once
    found = about_targets(TRIPLES, TARGETS, "contains")
    others = [(4, "lawyer"), (5, "african american"), (5, "nurse")]
    assert found.filter(pl.col("row") > 3).select("row", "target").rows() == others
    assert about_targets(TRIPLES, TARGETS, "exact").select("row", "target").rows()[-1] == (4, "lawyer")
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
