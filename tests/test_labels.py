from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.cache import LabelStore
from mitigate.score import labels as labelling
from mitigate.score.labels import label_column, with_labels
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
    assert sorted(map(len, scorer.asked)) == [1, 2]  # of (1, 2), (5, 6) and (7) the last two had come


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
