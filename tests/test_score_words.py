"""Scorers that count words, and the words that drove a label."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from mitigate.cache import LabelStore
from mitigate.errors import MitigateError
from mitigate.score.keyword import Keyword, read_dic
from mitigate.score.labeller import driving_words
from mitigate.score.labels import label_column
from mitigate.score.vader import Vader, label_of
from mitigate.triples import Labels


def test_strength_is_vaders_compound_with_a_threshold_for_each_pole() -> None:
    assert label_of(np.array([0.05, 0.0499, 0.0, -0.0499, -0.05])).tolist() == [1, 0, 0, 0, -1]
    texts = ["plain words only", "a happy day", "not happy at all", "a very :) day", "joy \U0001f600", "naïve café"]
    texts += ["bad-tempered, mean!", "the shit", "LOVE"]
    alone = SentimentIntensityAnalyzer()
    expected = [alone.polarity_scores(text.lower())["compound"] for text in texts]
    assert Vader()(texts).strength.tolist() == pytest.approx(expected, abs=1e-6)


def test_labels() -> None:
    expected = {"is located at office": 0, "has the property kind": 1, "has the property greedy": -1}
    expected["is capable of read"] = 1  # the paper's phrase alone
    expected |= {"is able to read": 0, "is not able to kill": 1}  # a negation before a bad word
    found = Vader()([f"this person {text}" for text in expected]).label.tolist()
    assert dict(zip(expected, found, strict=True)) == expected


DIC = "%\n1\tfunct\n31\tposemo\n32\tnegemo\n%\nthe\t1\nhapp*\t31\nhappen*\t1\nkill\t1\t32\n"
DIC += "poor thing\t32\nwow\t31\t32\n"


def test_labels_and_fingerprints_follow_the_lexicon() -> None:
    scorer = Keyword(lexicon={"kind": 1, "brave": 1, "thief": -1})
    labels = scorer(["Kind, brave thief", "a thief", "a kind thief", "kindness", ""])
    assert labels.label.tolist() == [1, -1, 2, 0, 0]
    assert labels.strength.tolist() == pytest.approx([1 / 3, -1, 0, 0, 0])
    scorer = Keyword(lexicon={"poor_girl": -1, "girl": 1, "kill*": -1, "killer": 1})
    found = [("poor girl", -1), ("girl", 1), ("killed", -1), ("killers", -1), ("killer", 1)]
    assert scorer.words("The poor girl, a girl killed killers; killer") == found
    assert Keyword(lexicon={"a": 1}).fingerprint != Keyword(lexicon={"a": -1}).fingerprint


def test_a_liwc_dictionary(tmp_path: Path) -> None:
    dic = tmp_path / "my.dic"
    dic.write_text(DIC)
    assert read_dic(dic) == {"happ*": 1, "kill": -1, "poor thing": -1}  # "wow" is both, the others neither
    assert Keyword(dic)(["happily killing", "the poor thing"]).label.tolist() == [1, -1]
    with pytest.raises(MitigateError, match="no.dic is not a LIWC dictionary.*No such file"):
        read_dic(tmp_path / "no.dic")


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
