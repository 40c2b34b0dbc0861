"""Labels of a column: what is asked once and kept; scorers that count words, and the words that drove a label."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from mitigate.errors import MitigateError
from mitigate.score import labels as labelling
from mitigate.score.labeller import driving_words
from mitigate.score.labels import LabelStore, label_column, with_labels
from mitigate.score.lexicon import Keyword, Vader, label_of, read_dic
from mitigate.score.people import Crowd2, PeopleValid
from mitigate.score.plausibility import Plausibility
from mitigate.score.regard import MiniLMRegard
from mitigate.triples import Labels, Scorer


class Counting:
    """A scorer whose answer is a formula, sign(length - 5), and that remembers what it was asked."""

    name = "sentiment"

    def __init__(self, fingerprint: str = "f" * 64) -> None:
        self.fingerprint = fingerprint
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Labels:
        self.asked += texts
        length = np.array([len(text) for text in texts])
        return Labels(np.sign(length - 5).astype(np.int8), np.minimum(length / 10, 1).astype(np.float32))


def test_each_distinct_text_is_scored_once_and_order_is_kept(tmp_path: Path) -> None:
    scorer, cache = Counting(), LabelStore(tmp_path)
    texts = pl.Series(["aaaaaaa", "b", "aaaaaaa", "ccccc", "b"])
    found = label_column(texts, scorer, cache)
    assert found.label.tolist() == [1, -1, 1, 0, -1]
    assert found.strength.tolist() == pytest.approx([0.7, 0.1, 0.7, 0.5, 0.1])
    assert sorted(scorer.asked) == ["aaaaaaa", "b", "ccccc"]


class Backwards(Counting):
    """Says its last piece first, and breaks down after so many."""

    def __init__(self, pieces: int) -> None:
        super().__init__()
        self.pieces = pieces

    def each(self, pieces: Sequence[list[str]]) -> Iterator[tuple[int, Labels]]:
        for number in list(reversed(range(len(pieces))))[: self.pieces]:
            yield number, self(pieces[number])
        if len(pieces) > self.pieces:
            raise RuntimeError("a worker is lost")


def test_pieces_may_come_in_any_order_and_those_that_came_are_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(labelling, "PIECE", 2)
    texts = pl.Series(["a" * length for length in (7, 1, 6, 2, 5)])
    with pytest.raises(RuntimeError, match="a worker is lost"):
        label_column(texts, Backwards(2), LabelStore(tmp_path))
    scorer = Backwards(9)
    assert label_column(texts, scorer, LabelStore(tmp_path)).label.tolist() == [1, -1, 1, -1, 0]
    assert sorted(map(len, scorer.asked)) == [6, 7]  # of (7, 6), (5, 2) and (1) the last two had come


def test_the_time_of_many_texts_is_told_beforehand(monkeypatch, caplog) -> None:
    """A clock that advances by a minute with each look: 64 texts a minute."""
    clock = iter(range(0, 60_000, 60))
    monkeypatch.setattr(labelling, "monotonic", lambda: next(clock))
    monkeypatch.setattr(labelling, "MANY", 100)
    label_column(pl.Series([f"text {number}" for number in range(128)]), Counting(), labelling.NOTHING_CACHED)
    assert "sentiment labels 128 texts, which takes about 2 minutes." in caplog.text


def test_both_templates(tmp_path: Path) -> None:
    frame = pl.DataFrame({"masked": ["aaaaaaa", "b"], "masked_neutral": ["aaa", "b"]})
    scorer = Counting()
    found = with_labels(frame, scorer, LabelStore(tmp_path))
    assert found["sentiment"].to_list() == [1, -1]
    assert found["sentiment_neutral"].to_list() == [-1, -1]
    assert found["sentiment_neutral_strength"].to_list() == pytest.approx([0.3, 0.1])
    assert sorted(scorer.asked) == ["aaa", "aaaaaaa", "b"]


@pytest.mark.parametrize("made", [MiniLMRegard, Crowd2, PeopleValid, Plausibility])
def test_a_text_has_the_same_label_whatever_texts_are_read_with_it(made: Callable[[], Scorer]) -> None:
    """Else a label would depend on which of the others a cache has: a killed run would not end as another."""
    ends = ("kind", "rude to men of the town", "x")
    phrases = [f"{one}{two}" for one in ("", "not ", "very ", "an old ") for two in ends]
    texts = [f"a nurse\tIsA\t{phrase}" for phrase in phrases] + [f"{phrase}\tIsA\tdishonest" for phrase in phrases]
    scorer = made()
    found = scorer(texts)
    for part in ([0], [5, 20], range(3, 20)):
        again = scorer([texts[number] for number in part])
        assert again.label.tolist() == found.label[list(part)].tolist()
        assert again.strength == pytest.approx(found.strength[list(part)], abs=1e-5)


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
    texts = ["this thief a liar bit", "kind", "this person", "kind", "kind thief liar", "kind" + 40 * " a"]
    assert drove(texts, Sums(), tmp_path, passed_over=["this", "person"]) == [
        "thief -0.6, liar -0.3",
        "kind +0.5",
        None,  # neutral
        "kind +0.5",
        "thief -0.6, liar -0.3",  # what pulls the other way did not drive it
        None,  # too long
    ]
