import sqlite3
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.score.labels import label_column, with_labels
from mitigate.store import LabelStore
from mitigate.triples import Labels


class Counting:
    """A scorer whose answer is a formula, sign(length - 5), and that remembers what it was asked."""

    name = "sentiment"

    def __init__(self, fingerprint: str = "f" * 64) -> None:
        self.fingerprint = fingerprint
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Labels:
        self.asked += texts
        length = np.array([len(text) for text in texts])
        return Labels(np.sign(length - 5).astype(np.int8), (length / 10).astype(np.float32))


def test_each_distinct_text_is_scored_once_and_order_is_kept(tmp_path: Path) -> None:
    scorer, cache = Counting(), LabelStore(tmp_path)
    texts = pl.Series(["aaaaaaa", "b", "aaaaaaa", "ccccc", "b"])
    found = label_column(texts, scorer, cache)
    assert found.label.tolist() == [1, -1, 1, 0, -1]
    assert found.strength.tolist() == pytest.approx([0.7, 0.1, 0.7, 0.5, 0.1])
    assert sorted(scorer.asked) == ["aaaaaaa", "b", "ccccc"]


def test_a_second_run_asks_only_for_what_is_new(tmp_path: Path) -> None:
    label_column(pl.Series(["aaaaaaa", "b"]), Counting(), LabelStore(tmp_path))
    again = Counting()
    assert label_column(pl.Series(["b", "new", "aaaaaaa"]), again, LabelStore(tmp_path)).label.tolist() == [-1, -1, 1]
    assert again.asked == ["new"]


def test_another_fingerprint_starts_afresh(tmp_path: Path) -> None:
    label_column(pl.Series(["b"]), Counting(), LabelStore(tmp_path))
    other = Counting("e" * 64)
    label_column(pl.Series(["b"]), other, LabelStore(tmp_path))
    assert other.asked == ["b"]


def test_both_templates(tmp_path: Path) -> None:
    frame = pl.DataFrame({"masked": ["aaaaaaa", "b"], "masked_neutral": ["aaa", "b"]})
    scorer = Counting()
    found = with_labels(frame, scorer, LabelStore(tmp_path))
    assert found["sentiment"].to_list() == [1, -1]
    assert found["sentiment_neutral"].to_list() == [-1, -1]
    assert found["sentiment_neutral_strength"].to_list() == pytest.approx([0.3, 0.1])
    assert sorted(scorer.asked) == ["aaa", "aaaaaaa", "b"]


def test_the_cache_can_be_read_with_plain_sqlite(tmp_path: Path) -> None:
    label_column(pl.Series(["it's a \u2028 text"]), Counting(), LabelStore(tmp_path))
    (file,) = tmp_path.glob("*.sqlite")
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT text, label FROM labels").fetchall() == [("it's a \u2028 text", 1)]
    database.close()


def _fill(folder: Path, start: int) -> int:
    texts = [f"text {number}" for number in range(start, start + 3000)]
    store = LabelStore(folder)
    for at in range(0, len(texts), 100):
        part = texts[at : at + 100]
        store.put("f" * 64, part, Labels(np.zeros(len(part), np.int8), np.zeros(len(part), np.float32)))
    return len(texts)


def test_two_processes_may_write_at_once(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_fill, [tmp_path, tmp_path], [0, 1500]))
    known, _ = LabelStore(tmp_path).get("f" * 64, [f"text {number}" for number in range(4600)])
    assert known.sum() == 4500
