"""Labels that depend on an identity word."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.load.identity import identity_forms
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.vader import Vader
from mitigate.target_list import list_of
from mitigate.tasks.identity_words import identity_word_notices, identity_words_of, with_identity_words
from mitigate.tasks.label import label_statements
from mitigate.tasks.scorers import make_scorer
from mitigate.triples import Labels


class AgainstThem:
    """Labels prejudice whatever names gay or non-binary people, and what is about a thief."""

    name = "regard"
    fingerprint = "against them".ljust(64, "0")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Labels:
        self.asked += texts
        words = ("gay", "binary", "nurse", "thief")
        label = np.array([-1 if any(word in text.lower() for word in words) else 0 for text in texts], dtype=np.int8)
        return Labels(label, label.astype(np.float32))


TEXTS = {
    "A gay person is a thief": None,  # prejudice also where it is masked
    "A gay person is my neighbour": "gay person",
    "Gay people and nonbinary people live here": "gay people, nonbinary people",
    "the non-binary neighbours": "non-binary",
    "the deaf neighbours": None,
    "a black car": None,  # no identity word without "person"
    "this person is kind": None,
}


def test_the_words_without_which_the_label_is_another() -> None:
    scorer = AgainstThem()
    table = label_statements(pl.DataFrame({"statement": list(TEXTS)}), [scorer], explain=True)
    assert dict(table.select("statement", "regard_identity").rows()) == TEXTS


def test_only_texts_with_such_a_word_are_labelled_again() -> None:
    scorer = AgainstThem()
    labelled = pl.DataFrame({"masked": list(TEXTS), "regard": scorer(list(TEXTS)).label})
    scorer.asked.clear()
    with_identity_words(labelled, [scorer])
    assert sorted(scorer.asked) == [
        "this person and this person live here",
        "this person is a thief",
        "this person is my neighbour",
        "this person neighbours",
    ]


def test_targets_that_the_masking_has_left_are_identity_words_too() -> None:
    labelled = pl.DataFrame({"masked": ["the nurse reads", "an elf reads"], "regard": [-1, 0]})
    found = with_identity_words(labelled, [AgainstThem()], list_of(["elf"]))
    assert found["regard_identity"].to_list() == ["nurse", None]


def test_in_an_audit_only_terms_that_are_no_targets_count(tmp_path: Path) -> None:
    masked = ["the nurse reads", "muslims and gay people read", "gay people read", "of no target: gay people read"]
    about = ["nurse", "muslim", "nurse", None]
    parts = pl.DataFrame({"masked": masked, "regard": [-1, -1, -1, -1], "target": about}).with_row_index("row")
    parts.write_parquet(tmp_path / "part.parquet")
    found = identity_words_of([AgainstThem()], 1, folder=tmp_path, cache=NOTHING_CACHED)
    (notice,) = found["notices"]
    assert notice.startswith("2 of 3 labels of regard depend on an identity word: ")
    assert notice.endswith("(gay people (2)). Words that probe.targets names are masked")


def test_triples_and_tables_without_rows() -> None:
    triples = pl.DataFrame({"head": ["gay person"], "relation": ["IsA"], "tail": ["neighbour"]})
    assert label_statements(triples, [AgainstThem()], explain=True)["regard_identity"].to_list() == ["gay person"]
    assert "regard_identity" not in label_statements(triples, [AgainstThem()]).columns
    assert label_statements(triples.clear(), [Vader()], explain=True)["sentiment_identity"].to_list() == []


def test_a_notice_counts_labels_and_names_the_words_that_are_most_frequent() -> None:
    words = ["gay person"] * 3 + ["elf", "non-binary", "blind person", None]
    (notice,) = identity_word_notices(pl.DataFrame({"regard_identity": words, "sentiment_identity": [None] * 7}))
    assert notice.startswith("6 of 7 labels of regard depend on an identity word: with the word masked, the text has")
    assert "(gay person (3), blind person (1), elf (1), ...)" in notice


def test_forms_have_plurals_hyphens_and_words_that_stand_alone() -> None:
    forms = identity_forms()
    assert {"gay person", "gay people", "gay", "nonbinary", "non binary", "muslims", "short person"} <= forms
    assert not {"short", "black", "person", "straight", ""} & forms


def test_a_scorers_name_is_no_such_column() -> None:
    with pytest.raises(Exception, match="ends in _identity, as columns beside a scorer's labels do"):
        make_scorer(AgainstThem, "my_identity")
