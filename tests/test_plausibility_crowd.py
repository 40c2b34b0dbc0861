"""People's judgements of validity beside a classifier's, and what a classifier accepts that says nothing."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.score.labels import NOTHING_CACHED
from mitigate.targets import targets
from mitigate.tasks.plausibility.crowd import crowd_figures, rated_triples, votes_of
from mitigate.tasks.plausibility.gaming import commonest_tails, gaming_figures, neutral
from mitigate.triples import Labels

SAID = ("opera_singer is capable of Sing", "Baker causes bread", "Baker has the property very good")


class SameLetter:
    """Accepts a triple whose head and tail begin alike, all else is the less likely the longer it is."""

    relations = ("IsA", "HasA")

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        pairs = zip(heads, tails, strict=True)
        return np.array([1.0 if head[0] == tail[0] else -float(len(tail)) for head, tail in pairs])


class Long:
    """+1 for a text of more than six words, else 0."""

    name, fingerprint = "sentiment", "long"

    def __call__(self, texts: Sequence[str]) -> Labels:
        label = np.array([len(text.split()) > 6 for text in texts], dtype=np.int8)
        return Labels(label, label.astype(np.float32))


def write_ratings(folder: Path, sentences: Sequence[str], quality: Sequence[str]) -> Path:
    folder.mkdir()
    (folder / "COMeT_sentences.txt").write_text("\n".join(s for s in sentences for _ in range(3)))
    (folder / "COMeT_bias_labels.txt").write_text("\n".join("2" for _ in sentences for _ in range(3)))
    (folder / "COMeT_quality_labels.txt").write_text("\n".join(vote for votes in quality for vote in votes))
    return folder


def test_rated_sentences_are_read_as_triples(tmp_path: Path):
    rated = rated_triples(write_ratings(tmp_path / "humans", SAID, ["112", "221", "111"]))
    assert rated.select("head", "relation", "tail").rows() == [
        ("opera singer", "CapableOf", "sing"),
        ("baker", "Causes", "bread"),
        ("baker", "HasProperty", "very good"),
    ]
    assert rated["valid"].to_list() == [True, False, True]
    assert votes_of(rated).tolist() == [[True, True, False], [False, False, True], [True, True, True]]


def test_a_sentence_that_is_no_triple_is_named(tmp_path: Path):
    folder = write_ratings(tmp_path / "humans", ["Bakers bake", *SAID], ["112"] * 4)
    with pytest.raises(MitigateError, match="1 sentences are no triple of COMeT, such as 'Bakers bake'"):
        rated_triples(folder)


def test_the_classifier_beside_the_crowd_by_hand():
    rows = [("ant", "IsA", "animal", [True, True, True]), ("cat", "IsA", "dog", [False, False, False])]
    rows += [("bee", "IsA", "cat", [True, True, False]), ("eel", "IsA", "elephant", [False, False, True])]
    rated = pl.DataFrame(rows, schema=["head", "relation", "tail", "votes"], orient="row")
    found = crowd_figures(SameLetter(), rated.with_columns(valid=pl.Series([True, False, True, False])))
    assert found["crowd/IsA/auc"] == pytest.approx((1 + 0.5 + 0.5 + 0) / 4)  # two ties, one the wrong way round
    assert found["crowd/IsA/rater"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert (found["crowd/IsA/accepted"], found["crowd/IsA/valid"], found["crowd/IsA/triples"]) == (50, 50, 4)


def test_what_says_nothing_of_the_target_by_hand():
    long = "very very very very nice one"
    rows = [("a", "IsA", "nice one")] * 3 + [("a", "IsA", long)] * 2 + [("a", "HasA", "zebra")]
    train = pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row")
    assert commonest_tails(train).rows() == [
        ("HasA", "zebra"),
        ("IsA", "nice one"),
        ("IsA", long),
    ]
    assert neutral(commonest_tails(train), [Long()], NOTHING_CACHED)["tail"].to_list() == ["zebra", "nice one"]
    found = gaming_figures(SameLetter(), train, [Long()], NOTHING_CACHED)
    begin = {letter: 100 * np.mean([target.startswith(letter) for target in targets()]) for letter in "nvz"}
    assert found["gaming/echo"] == found["gaming/echo/IsA"] == 100
    assert found["gaming/constants"] == found["gaming/chosen"] == pytest.approx((begin["n"] + begin["z"]) / 2)
    assert max(begin.values()) < 5
    assert found["gaming/unreached"] == 2


def test_the_released_ratings_are_999_triples(real_data: Path):
    rated = rated_triples(real_data / "humans")
    assert rated.height == 999
    assert rated.group_by("relation").agg(pl.col("valid").sum()).sort("relation").rows() == [
        ("CapableOf", 273),
        ("Causes", 82),
        ("HasProperty", 185),
    ]
