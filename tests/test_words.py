"""The words that drove a label, with a classifier whose strength is a formula."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.label_cache import LabelStore
from mitigate.score import words
from mitigate.score.keyword import Keyword
from mitigate.score.labels import label_column
from mitigate.score.vader import Vader
from mitigate.score.words import driving_words, occluded
from mitigate.triples import Labels

WORTH = {"thief": -0.6, "liar": -0.3, "kind": 0.5, "this": -0.05, "bit": -0.01}


class Sums:
    """A classifier that adds up what its words are worth to it, and does not tell."""

    name = "regard"
    fingerprint = "sums".ljust(64, "0")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Labels:
        self.asked += texts
        strength = np.array([sum(WORTH.get(word, 0) for word in text.split()) for text in texts], dtype=np.float32)
        return Labels((np.sign(strength) * (abs(strength) > 0.25)).astype(np.int8), strength)


def drove(texts: list[str], scorer, tmp_path: Path, **options) -> list[str | None]:
    column, cache = pl.Series(texts), LabelStore(tmp_path)
    return driving_words(column, label_column(column, scorer, cache), scorer, cache, **options).to_list()


def test_without_its_words_a_text_of_a_classifier_loses_strength(tmp_path: Path) -> None:
    texts = ["this thief a liar bit", "kind", "this person", "kind", "kind thief liar"]
    assert drove(texts, Sums(), tmp_path, passed_over=["this", "person"]) == [
        "thief -0.6, liar -0.3",
        "kind +0.5",
        None,  # neutral
        "kind +0.5",
        "thief -0.6, liar -0.3",  # what pulls the other way did not drive it
    ]


def test_only_the_surest_texts_are_looked_into(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(words, "MOST", 1)
    scorer = Sums()
    assert drove(["kind", "thief"], scorer, tmp_path) == [None, "thief -0.6"]
    assert sorted(scorer.asked) == ["", "kind", "thief"]


def test_nothing_polar_needs_nothing(tmp_path: Path) -> None:
    assert drove(["house", "home"], Sums(), tmp_path) == [None, None]
    assert drove([], Sums(), tmp_path) == []


def test_a_scorer_that_counts_words_says_which(tmp_path: Path) -> None:
    assert drove(["this person is not capable of KILL!", "a house"], Vader(), tmp_path) == [
        "capable +1.6, kill -3.7",
        None,
    ]
    assert drove(["a kind, kind thief"], Keyword(lexicon={"kind": 1, "thief": -1}), tmp_path) == [
        "kind +1, kind +1, thief -1"
    ]


def test_occlusion_leaves_out_each_word_of_each_distinct_text(tmp_path: Path) -> None:
    table = occluded(pl.Series(["a liar", "kind thief", "a liar"]), Sums(), LabelStore(tmp_path))
    assert table.select("masked", "place", "word", "label", "label_without").rows() == [
        ("a liar", 1, "a", -1, -1),
        ("a liar", 2, "liar", -1, 0),
        ("kind thief", 1, "kind", 0, -1),  # also of a neutral text
        ("kind thief", 2, "thief", 0, 1),
    ]
    assert table["strength"].to_list() == pytest.approx([-0.3, -0.3, -0.1, -0.1])
    assert table["strength_without"].to_list() == pytest.approx([-0.3, 0, -0.6, 0.5])
    assert occluded(pl.Series([], dtype=pl.String), Sums(), LabelStore(tmp_path)).columns == table.columns
