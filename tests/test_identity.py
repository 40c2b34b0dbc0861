"""Identity terms: the lists and their splits, gaps checked by hand, and labels that depend on an identity word."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from mitigate.measure.intervals import Bootstrap
from mitigate.report.table import as_text
from mitigate.score.base import make_scorer
from mitigate.score.labeller import label_statements, with_identity_words
from mitigate.score.lexicon import Vader
from mitigate.studies import agreement
from mitigate.studies.agreement import identity_errors, label_identity_terms, term_texts
from mitigate.triples import Labels
from mitigate.words.identity_terms import MASKED, NUMBERS, identity_texts
from mitigate.words.targets import list_of

FEW = Bootstrap(resamples=200)


def test_texts_have_articles_and_plurals_and_are_alike_once_masked() -> None:
    texts = identity_texts("this person")
    assert texts.height == (61 + 1) * 176
    of = {term: set(rows["text"]) for (term,), rows in texts.group_by("term")}
    assert {"an asexual person is a teacher", "asexual people are teachers"} <= of["asexual person"]
    assert {"this person is a teacher", "this person are teachers"} <= of[MASKED]
    assert not texts["text"].str.contains("[{}]").any()


def labelled(wrong: dict[str, list[int]]) -> pl.DataFrame:
    """Four frames: neutral, kind, a denial, and unkind; the labels of each term in them. Two frames are plural."""
    frames = [("n", "neutral", False), ("k", "kind", False), ("d", "neutral", True), ("u", "unkind", False)]
    rows = [
        {"term": term, "axis": None if term == "masked" else "age", "term_split": None if term == "masked" else "test"}
        | {"frame": frame, "frame_split": "test", "pair": number // 2, "number": NUMBERS[number % 2]}
        | {"polarity": polarity, "negated": negated, "label": labels[number]}
        for term, labels in wrong.items()
        for number, (frame, polarity, negated) in enumerate(frames)
    ]
    return pl.DataFrame(rows).rename({"label": "regard"})


LABELS = {"old": [-1, -1, -1, -1], "young": [0, 1, 2, 0], "short": [1, 0, 1, -1], "masked": [0, 0, 0, -1]}


def test_errors_and_the_farthest_term_by_hand() -> None:
    """False positives 100, 0 and 0 %, false negatives 0, 100 and 0 %."""
    positives, negatives = identity_errors(labelled(LABELS), ["regard"], FEW).to_dicts()
    assert (positives["error"], positives["term"], positives["largest"]) == ("false_positives", "old", 100)
    assert (positives["mean"], positives["masked"]) == (pytest.approx(100 / 3), 0)  # the mean is that of three terms
    assert positives["equality_difference"] == pytest.approx(200 / 3 + 100 / 3 + 100 / 3)
    assert (negatives["error"], negatives["term"]) == ("false_negatives", "young")
    assert negatives["mean"] == pytest.approx(100 / 3)
    assert negatives["mean_low"] is None  # a single pair of frames


def hates_short(texts: list[str]) -> Labels:
    """Labels prejudice what is unkind in a word or two, and whatever is about short people."""
    label = np.array([-1 if "short" in text or "thie" in text else 0 for text in texts], dtype=np.int8)
    return Labels(label, label.astype(np.float32))


def test_a_scorer_against_one_group_is_found() -> None:
    labels = label_identity_terms([make_scorer(hates_short, "regard"), Vader()])
    assert {"text", "regard", "regard_strength", "sentiment"} <= set(labels.columns)
    assert labels.drop_nulls("term_split")["term"].n_unique() == 32
    assert term_texts(3, seed=1).drop_nulls("term_split")["term"].n_unique() == 3
    found = identity_errors(labels, ["regard", "sentiment"], FEW)
    positives, negatives, *_ = found.to_dicts()
    assert (positives["term"], positives["largest"]) == ("short person", 100)
    assert positives["masked"] == pytest.approx(100 / 33)  # "is not a thief", of 33 pairs
    assert positives["mean"] == pytest.approx((100 + 31 * 100 / 33) / 32)
    assert positives["mean_low"] < positives["mean"] < positives["mean_high"]
    assert (negatives["term"], negatives["largest"]) == ("short person", 0)
    assert negatives["masked"] == pytest.approx(100 * 15 / 16)  # all but "is a thief"
    lines = as_text(agreement.identity(found)).splitlines()
    assert len(lines) == 1 + 2 * 2
    assert lines[1].split()[:4] == ["regard", "false", "positives", "6.1"]


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


def test_the_words_without_which_the_label_is_another_are_found_by_few_texts() -> None:
    scorer = AgainstThem()
    table = label_statements(pl.DataFrame({"statement": list(TEXTS)}), [scorer], explain=True)
    assert dict(table.select("statement", "regard_identity").rows()) == TEXTS
    scorer = AgainstThem()
    labelled = pl.DataFrame({"masked": list(TEXTS), "regard": scorer(list(TEXTS)).label})
    scorer.asked.clear()
    with_identity_words(labelled, [scorer])
    asked = ["and this person live here", "is a thief", "is my neighbour", "neighbours"]
    assert sorted(scorer.asked) == [f"this person {rest}" for rest in asked]
    labelled = pl.DataFrame({"masked": ["the nurse reads", "an elf reads"], "regard": [-1, 0]})
    found = with_identity_words(labelled, [AgainstThem()], list_of(["elf"]))
    assert found["regard_identity"].to_list() == ["nurse", None]
    scorer.reads = "statement"  # type: ignore[attr-defined]  # masked: "the deaf this person"
    table = label_statements(pl.DataFrame({"statement": ["the deaf nurse", "the deaf man"]}), [scorer], explain=True)
    assert table["regard_identity"].to_list() == ["deaf, nurse", None]
