"""Which targets a triple is about."""

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.match import about_targets, check, sentences_about_targets
from mitigate.target_list import list_of
from mitigate.targets import choose_targets

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


def test_exact_is_a_whole_end_and_both_ends_make_two_rows() -> None:
    found = about_targets(TRIPLES, TARGETS)
    assert found.select("row", "target", "category").rows() == [
        (1, "lawyer", "profession"),
        (2, "nurse", "profession"),
        (2, "lawyer", "profession"),
        (3, "lawyer", "profession"),  # the same at both ends: once
    ]


def test_contains_finds_whole_words_and_the_longer_of_two() -> None:
    found = about_targets(TRIPLES, TARGETS, "contains")
    assert found.filter(pl.col("row") > 3).select("row", "target").rows() == [
        (5, "african american"),
        (5, "nurse"),
    ]
    assert found.filter(pl.col("row") <= 3).equals(about_targets(TRIPLES, TARGETS).select(found.columns))


SENTENCES = pl.DataFrame(
    {
        "row": [1, 2, 3, 4],
        "term": ["Lawyer", "court", None, None],
        "statement": [
            "A lawyer helps a nurse.",
            "Courts have a nurse.",
            "The nurse and the Lawyer sat.",
            "Nurses care.",
        ],
    }
)


def test_a_sentence_is_about_its_term_or_about_what_stands_in_it() -> None:
    """Where a source does not say what a sentence is about, only what stands in it can be found."""
    exact = sentences_about_targets(SENTENCES, TARGETS)
    assert exact.select("row", "target").rows() == [(1, "lawyer"), (3, "nurse"), (3, "lawyer")]
    inside = sentences_about_targets(SENTENCES, TARGETS, "contains")
    assert inside.select("row", "target").rows() == [
        (1, "lawyer"),
        (1, "nurse"),
        (2, "nurse"),
        (3, "nurse"),
        (3, "lawyer"),
    ]


def test_another_match_is_refused() -> None:
    with pytest.raises(MitigateError, match="unknown measure.match 'inside'; allowed: exact, contains"):
        check("inside")


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


def test_own_targets_within_phrases_are_found_in_all_their_forms() -> None:
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
    text = pl.DataFrame({"text": ["a person of color blind man", "a color blind man"]})
    found = text.select(list_of(words).found_in(pl.col("text"), words))["text"].to_list()
    assert found == [["person of color"], ["color blind man"]]
