"""Triples as sentences, the targets that texts are about: plurals, words with another meaning, and groups that are not
on the list."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load import corpus
from mitigate.load.stream import Counts, Loaded
from mitigate.load.targets import about_targets, check_match, sentences_about_targets
from mitigate.studies.audit import UNLISTED, Resource, Search, notice_of_unlisted, unlisted
from mitigate.verbalise import verbalise
from mitigate.words.relations import Relation
from mitigate.words.targets import ambiguity_notice, ambiguous, choose_targets, list_of, targets, without_other_senses


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


ALL = choose_targets("all")
HOMOGRAPHS = {
    "They eat turkey at christmas and it is awful.": [],
    "The minister of state is a white lie factory, says nobody.": [],
    "He put polish on the ugly shoes.": ["he"],
    "Her china is cheap and broken.": ["her"],
    "A chef from Turkey burned the dinner.": ["chef", "turkey"],
    "they eat turkey": ["turkey"],  # nothing tells the two apart: counted as ambiguous
    "A bad omen, and two policemen of Oman.": ["policeman", "oman"],
    "The African-Americans and WOMEN": ["african americans", "woman"],
    "Nurses, secretaries and lawyers.": ["nurse", "secretary", "lawyer"],
}


def found_in(text: str, match: str = "contains") -> list[str]:
    frame = pl.DataFrame({"term": [None], "statement": [text]}, {"term": pl.String, "statement": pl.String})
    return sentences_about_targets(frame, ALL, match)["target"].to_list()


def test_plurals_are_found_and_words_for_something_else_are_not_except_by_the_papers_matching() -> None:
    for text, expected in HOMOGRAPHS.items():
        assert found_in(text) == expected
    assert found_in("Her china and the nurses, a guard dog", "paper") == ["her", "china", "guard"]
    texts = pl.Series(["They polish shoes."])
    assert (without_other_senses(texts).item(), texts.item()) == ("They - shoes.", "They polish shoes.")


SENSES = [
    ("turkey/n/wn/animal", None),
    ("turkey/n/wn/location", "turkey"),
    ("china/n/wn/artifact", None),
    ("china/n", "china"),
    ("nurse/n/wn/person", "nurse"),
]


@pytest.mark.parametrize(("uri", "target"), SENSES)
def test_the_sense_in_conceptnets_uri_is_used(uri: str, target: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'/a/x\t/r/IsA\t/c/en/{uri}\t/c/en/x\t{{"weight": 1.0}}\n')
    ((_, _, chunk),) = corpus.dump(str(path)).chunks()
    for match in ("exact", "contains"):
        found = about_targets(chunk.rows, ALL, match)
        assert found["target"].to_list() == [target] * (target is not None)


def test_each_ambiguous_target_is_listed_and_their_share_is_named() -> None:
    assert set(ambiguous()) <= set(targets())
    statements = pl.DataFrame({"target": ["china", "cook", "turkey", "nurse"], "statements": [3, 1, 0, 6]})
    (said,) = ambiguity_notice(statements)
    assert "40.0 % of statements are about a word that can mean something else: china 3 (porcelain), cook 1 (" in said
    assert ambiguity_notice(statements.filter(target="nurse")) == []


def test_frequent_groups_that_are_not_on_the_list_are_counted_and_named(tmp_path: Path) -> None:
    lines = ["Immigrants are late.", "An immigrant sat.", "black people sing", "Old people and nurses walk", "a cat"]
    rows = pl.DataFrame({"row": range(1, 6), "term": None, "statement": lines}).cast({"term": pl.String})
    resource = Resource(Loaded(rows, kind="sentences"))
    counts = unlisted(resource, rows, Search(ALL, "contains"))
    expected = {"immigrant": 2, "black person": 1, "old person": 1}
    assert counts == Counts({(UNLISTED, word): count for word, count in expected.items()})
    (said,) = notice_of_unlisted(counts)
    assert said.startswith("Groups that are not among the targets, with their rows: immigrant 2, ")
    assert "recipe.targets=[all,immigrant," in said
