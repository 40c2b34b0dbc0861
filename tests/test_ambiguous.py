"""Which texts are about a target: plurals, words with another meaning, and groups that are not on the list."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.load import conceptnet
from mitigate.load.stream import Counts, Loaded
from mitigate.load.targets import about_targets, sentences_about_targets
from mitigate.studies.audit import UNLISTED, Resource, Search, notice_of_unlisted, unlisted
from mitigate.words.ambiguous import ambiguous, notice, share
from mitigate.words.targets import choose_targets, targets

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
    ((_, _, chunk),) = conceptnet.dump(str(path)).chunks()
    for match in ("exact", "contains"):
        found = about_targets(chunk.rows, ALL, match)
        assert found["target"].to_list() == [target] * (target is not None)


def test_each_ambiguous_target_is_listed_and_their_share_is_named() -> None:
    assert set(ambiguous()) <= set(targets())
    statements = pl.DataFrame({"target": ["china", "cook", "turkey", "nurse"], "statements": [3, 1, 0, 6]})
    percentage, found = share(statements)
    assert (percentage, found.rows()) == (40.0, [("china", 3, "porcelain"), ("cook", 1, "to prepare food")])
    (said,) = notice(statements)
    assert "40.0 % of statements are about a word that can mean something else: china 3 (porcelain), cook 1 (" in said
    assert notice(statements.filter(target="nurse")) == []


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
