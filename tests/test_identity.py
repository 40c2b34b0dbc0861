"""Identity terms: the lists and their splits, gaps checked by hand, and labels that depend on an identity word."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.measure.base import find
from mitigate.measure.identity import (
    LARGEST,
    identity_metrics,
    identity_notices,
    identity_summary,
    identity_words_of,
    label_identity_terms,
    measure_identity_terms,
)
from mitigate.measure.intervals import Bootstrap
from mitigate.report.table import as_text
from mitigate.score.base import make_scorer
from mitigate.score.labeller import label_statements, with_identity_words
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.vader import Vader
from mitigate.studies.agreement import identity_errors
from mitigate.triples import Labels
from mitigate.words.identity_terms import (
    AXES,
    MASKED,
    NUMBERS,
    POLARITIES,
    identity_forms,
    identity_texts,
    read_frames,
    read_terms,
)
from mitigate.words.targets import list_of

FEW = Bootstrap(resamples=200)
FUNCTION_WORDS = {
    *("a", "an", "and", "are", "at", "be", "by", "cannot", "do", "does", "everyone", "for", "from", "has", "have"),
    *("in", "is", "near", "never", "not", "of", "on", "should", "the", "to", "very", "with", "person", "people"),
}


def words(texts: pl.Series) -> set[str]:
    """The words of texts that carry meaning, without their most common endings."""
    found = {word for text in texts for word in re.findall(r"[a-z]+", re.sub(r"{\w+}", "", text))} - FUNCTION_WORDS
    return {re.sub(r"(?:ing|ies|es|ed|s|y)$", "", word) for word in found}


def test_training_and_test_splits_share_no_word_and_have_every_axis_and_polarity() -> None:
    for frame, columns in ((read_terms(), ("term", "plural")), (read_frames(), ("frame",))):
        seen, asked = (
            set().union(*(words(frame.filter(split=split)[column]) for column in columns))
            for split in ("train", "test")
        )
        assert len(seen) > 20
        assert seen & asked == set()
    terms = read_terms().group_by("axis", "split").len()
    frames = read_frames().group_by("split", "polarity", "number").len()
    assert (set(terms["axis"]), terms.height, terms["len"].min()) == (set(AXES), 2 * len(AXES), 4)
    assert (set(frames["polarity"]), frames["len"].min()) == (set(POLARITIES), 9)
    assert read_frames().group_by("pair").agg(pl.col("number").sort())["number"].to_list() == [sorted(NUMBERS)] * 88


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


def by_term(rows: pl.DataFrame, intervals: Bootstrap = FEW) -> pl.DataFrame:
    return measure_identity_terms(rows, ["regard"], intervals)


LABELS = {"old": [-1, -1, -1, -1], "young": [0, 1, 2, 0], "short": [1, 0, 1, -1], "masked": [0, 0, 0, -1]}


def test_errors_and_gaps_by_hand_and_a_summary_of_the_farthest_term() -> None:
    table = by_term(labelled(LABELS)).filter(part="unseen")
    rows = {row["term"]: row for row in table.rows(named=True)}
    assert list(rows) == ["old", "young", "short", "masked"]
    assert [rows[term]["false_positives"] for term in rows] == [100, 0, 0, 0]
    assert [rows[term]["false_negatives"] for term in rows] == [0, 100, 0, 0]
    assert rows["old"]["positives_gap"] == pytest.approx(100 - 100 / 3)
    assert rows["young"]["negatives_gap"] == pytest.approx(100 - 100 / 3)
    assert rows["masked"]["positives_gap"] == pytest.approx(-100 / 3)  # the mean is that of the three terms
    found = identity_summary(by_term(labelled(LABELS))).filter(part="unseen")
    positives, negatives = found.rows(named=True)
    assert (positives["error"], positives["term"]) == ("false_positives", "old")
    assert positives["largest"] == pytest.approx(200 / 3)
    assert positives["equality_difference"] == pytest.approx(200 / 3 + 100 / 3 + 100 / 3)
    assert (positives["mean"], positives["masked"], positives["terms"]) == (pytest.approx(100 / 3), 0, 3)
    assert positives["beyond"] == 3  # 33 points are more than LARGEST
    assert LARGEST == 5
    assert (negatives["error"], negatives["term"]) == ("false_negatives", "young")
    assert set(by_term(labelled(LABELS))["part"]) == {"all", "unseen"}  # there is no term and no frame to train with
    kind = by_term(labelled(LABELS).filter(pl.col("polarity") != "unkind")).filter(part="all", term="old")
    assert kind.select("false_positives", "false_negatives", "negatives_gap").row(0) == (100, None, None)


def hates_short(texts: list[str]) -> Labels:
    """Labels prejudice what is unkind in a word or two, and whatever is about short people."""
    label = np.array([-1 if "short" in text or "thie" in text else 0 for text in texts], dtype=np.int8)
    return Labels(label, label.astype(np.float32))


@pytest.fixture(scope="module")
def terms() -> pl.DataFrame:
    """The errors of a scorer against short people, and of VADER."""
    labels = label_identity_terms([make_scorer(hates_short, "regard"), Vader()])
    assert {"text", "regard", "regard_strength", "sentiment"} <= set(labels.columns)
    return measure_identity_terms(labels, ["regard", "sentiment"], FEW)


def test_a_scorer_against_one_group_is_found_and_named_in_notices_and_tables(terms: pl.DataFrame) -> None:
    unseen = terms.filter(scorer="regard", part="unseen")
    assert unseen.height == 32 + 1
    short = unseen.row(by_predicate=pl.col("term") == "short person", named=True)
    deaf = unseen.row(by_predicate=pl.col("term") == "deaf person", named=True)
    assert (short["false_positives"], short["false_negatives"]) == (100, 0)
    assert deaf["false_positives"] == pytest.approx(100 / 33)  # "is not a thief", of 33 pairs
    assert deaf["false_negatives"] == pytest.approx(100 * 15 / 16)  # all but "is a thief"
    found = identity_metrics(identity_summary(terms))
    assert found["regard/identity/unseen/false_positives_farthest"] == "short person"
    assert found["regard/identity/unseen/false_positives_beyond"] == 1
    assert found["regard/identity/seen/false_positives_beyond"] == 0
    assert found["regard/identity/unseen/false_positives_masked"] == pytest.approx(100 / 33)
    assert not any(map(find, found))  # they are of no run's statements
    positives, negatives, *_ = identity_notices(identity_summary(terms).filter(scorer="regard"))
    assert "6.1 % of the neutral and kind sentences are labelled prejudice, of those about “short person”" in positives
    assert "90.8 % of the unkind sentences are labelled no prejudice, of those about “short person” 0.0 %" in negatives
    summed = identity_summary(terms)
    assert list(identity_notices(summed.with_columns(beyond=0))) == []
    lines = as_text(identity_errors(terms, summed)).splitlines()
    assert len(lines) == 1 + 2 * 2
    assert lines[1].split()[:4] == ["regard", "false", "positives", "6.1"]
    assert "short person 100.0, " in lines[1]


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


def test_in_an_audit_only_terms_that_are_no_targets_count(tmp_path: Path) -> None:
    masked = ["the nurse reads", "muslims and gay people read", "gay people read", "of no target: gay people read"]
    about = ["nurse", "muslim", "nurse", None]
    parts = pl.DataFrame({"masked": masked, "regard": [-1, -1, -1, -1], "target": about}).with_row_index("row")
    parts.write_parquet(tmp_path / "part.parquet")
    found = identity_words_of([AgainstThem()], 1, folder=tmp_path, cache=NOTHING_CACHED)
    (notice,) = found["notices"]
    assert notice.startswith("2 of 3 labels of regard depend on an identity word: ")
    assert notice.endswith("(gay people (2)). Words that probe.targets names are masked")


def test_forms_have_plurals_hyphens_and_words_that_stand_alone() -> None:
    forms = identity_forms()
    assert {"gay person", "gay people", "gay", "nonbinary", "non binary", "muslims", "short person"} <= forms
    assert not {"short", "black", "person", "straight", ""} & forms
    with pytest.raises(Exception, match="ends in _identity, which is reserved for other columns of scorers"):
        make_scorer(AgainstThem, "my_identity")
