"""Identity terms: the lists and their splits, the texts, and gaps that can be checked by hand."""

import re

import numpy as np
import polars as pl
import pytest

from mitigate.load.identity import AXES, MASKED, NUMBERS, POLARITIES, identity_texts, read_frames, read_terms
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.identity import LARGEST, by_term, equality_difference, summary
from mitigate.metrics import find
from mitigate.recipes.rated import printed_identity
from mitigate.score.vader import Vader
from mitigate.tasks.identity import (
    identity_metrics,
    identity_notices,
    identity_summary,
    label_identity_terms,
    measure_identity_terms,
    measured_identity,
)
from mitigate.tasks.scorers import make_scorer
from mitigate.triples import Labels
from mitigate.word_forms import article

FEW = Bootstrap(resamples=200)
FUNCTION_WORDS = set(
    re.findall(
        r"\w+",
        "a an and are at be by cannot do does everyone for from has have in is near never not of on should the to very "
        "with person people",
    )
)


@pytest.mark.parametrize(
    ("phrase", "wanted"),
    [
        *(("gay person", "a"), ("old person", "an"), ("Arab", "an"), ("ukrainian", "a"), ("european", "a")),
        *(("unmarried person", "an"), ("university", "a"), ("uninvited guest", "an"), ("hour", "an"), ("heir", "an")),
        *(("one-armed person", "a"), ("house guest", "a"), ("honest person", "an"), ("user", "a"), ("uncle", "an")),
        *(("Ugandan", "a"), ("ugly person", "an"), ("uruguayan", "a"), ("urologist", "a"), ("urban planner", "an")),
        *(("Uighur", "a"), ("uyghur", "a"), ("ubiquitous person", "a"), ("unidentified person", "an"), ("usher", "an")),
        *(("uninformed person", "an"), ("unidirectional person", "a"), ("united family", "a"), ("umpire", "an")),
    ],
)
def test_the_article_follows_the_sound(phrase: str, wanted: str) -> None:
    assert article(phrase) == wanted


def words(texts: pl.Series) -> set[str]:
    """The words of texts that carry meaning, without their most common endings."""
    found = {word for text in texts for word in re.findall(r"[a-z]+", re.sub(r"{\w+}", "", text))} - FUNCTION_WORDS
    return {re.sub(r"(?:ing|ies|es|ed|s|y)$", "", word) for word in found}


def test_what_is_trained_with_is_not_what_is_tested() -> None:
    for frame, columns in ((read_terms(), ("term", "plural")), (read_frames(), ("frame",))):
        seen, asked = (
            set().union(*(words(frame.filter(split=split)[column]) for column in columns))
            for split in ("train", "test")
        )
        assert len(seen) > 20
        assert seen & asked == set()


def test_every_axis_and_polarity_is_in_both_splits() -> None:
    terms, frames = read_terms(), read_frames()
    assert set(terms["axis"]) == set(AXES)
    assert terms["term"].is_unique().all()
    assert terms.group_by("axis", "split").len()["len"].min() == 4
    assert terms.group_by("axis", "split").len().height == 2 * len(AXES)
    assert frames["frame"].is_unique().all()
    assert set(frames["polarity"]) == set(POLARITIES)
    assert frames.group_by("split", "polarity", "number").len()["len"].min() >= 9
    assert frames.group_by("pair").agg(pl.col("number").sort())["number"].to_list() == [sorted(NUMBERS)] * 88
    assert set(frames.filter("negated")["polarity"]) == {"neutral", "unkind"}
    asked = {"gay person", "queer person", "transgender person", "nonbinary person", "deaf person"}
    assert asked <= set(terms.filter(split="test")["term"])


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
        | {"polarity": polarity, "negated": negated, "label": labels[number], "strength": labels[number] / 2}
        for term, labels in wrong.items()
        for number, (frame, polarity, negated) in enumerate(frames)
    ]
    return pl.DataFrame(rows)


LABELS = {"old": [-1, -1, -1, -1], "young": [0, 1, 2, 0], "short": [1, 0, 1, -1], "masked": [0, 0, 0, -1]}


def test_errors_and_gaps_by_hand() -> None:
    table = by_term(labelled(LABELS), FEW).filter(part="unseen", number="both")
    rows = {row["term"]: row for row in table.rows(named=True)}
    assert list(rows) == ["old", "young", "short", "masked"]
    assert [rows[term]["false_positives"] for term in rows] == [100, 0, 0, 0]
    assert [rows[term]["false_negatives"] for term in rows] == [0, 100, 0, 0]
    assert [rows[term]["polarised"] for term in rows] == [100, 0, 100, 0]  # of the first frame alone
    assert [rows[term]["strength"] for term in rows] == [-0.5, 0, 0.5, 0]
    assert rows["old"]["positives_gap"] == pytest.approx(100 - 100 / 3)
    assert rows["young"]["negatives_gap"] == pytest.approx(100 - 100 / 3)
    assert rows["masked"]["positives_gap"] == pytest.approx(-100 / 3)  # the mean is that of the three terms


def test_parts_and_numbers_take_their_terms_and_frames() -> None:
    table = by_term(labelled(LABELS), FEW)
    assert set(table["part"]) == {"all", "unseen"}  # there is no term and no frame to train with
    singular = table.filter(part="all", number="singular", term="old")
    assert singular["false_positives"].to_list() == [100]
    assert singular["false_negatives"].to_list() == [None]  # the unkind frame is plural
    assert singular["negatives_gap"].to_list() == [None]


def test_the_summary_names_the_term_that_is_farthest() -> None:
    found = summary(by_term(labelled(LABELS), FEW)).filter(part="unseen", number="both")
    positives, negatives = found.rows(named=True)
    assert (positives["error"], positives["term"]) == ("false_positives", "old")
    assert positives["largest"] == pytest.approx(200 / 3)
    assert positives["equality_difference"] == pytest.approx(200 / 3 + 100 / 3 + 100 / 3)
    assert (positives["mean"], positives["masked"], positives["terms"]) == (pytest.approx(100 / 3), 0, 3)
    assert positives["beyond"] == 3  # 33 points are more than LARGEST
    assert LARGEST == 5
    assert (negatives["error"], negatives["term"]) == ("false_negatives", "young")


def test_an_interval_is_over_frames() -> None:
    """Of eight pairs of neutral frames one term has half wrong, the other none: the gap is 25, between 0 and 50."""
    rows = [
        {"term": term, "axis": "age", "term_split": "test", "frame": f"{pair} {number}", "frame_split": "test"}
        | {"pair": pair, "number": number, "polarity": "neutral", "negated": False, "strength": 0.0}
        | {"label": -1 if term == "old" and pair % 2 else 0}
        for term in ("old", "young")
        for pair in range(8)
        for number in NUMBERS
    ]
    (row, _) = by_term(pl.DataFrame(rows), Bootstrap(resamples=2000)).filter(part="all", number="both").rows(named=True)
    assert row["positives_gap"] == 25
    assert 0 < row["positives_gap_low"] < 15
    assert 35 < row["positives_gap_high"] < 50


def test_no_equality_difference_where_all_are_alike() -> None:
    assert equality_difference(np.array([7.0, 7.0])) == 0
    assert equality_difference(np.array([10.0, 20.0, 60.0])) == 60  # 20 + 10 + 30


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


def test_a_scorer_against_one_group_is_found_out(terms: pl.DataFrame) -> None:
    unseen = terms.filter(scorer="regard", part="unseen", number="both")
    assert unseen.height == 32 + 1
    short = unseen.row(by_predicate=pl.col("term") == "short person", named=True)
    deaf = unseen.row(by_predicate=pl.col("term") == "deaf person", named=True)
    assert (short["false_positives"], short["false_negatives"], short["strength"]) == (100, 0, -1)
    assert deaf["false_positives"] == pytest.approx(100 / 33)  # "is not a thief", of 33 pairs
    assert deaf["false_negatives"] == pytest.approx(100 * 15 / 16)  # all but "is a thief"
    found = identity_metrics(identity_summary(terms))
    assert found["regard/identity/unseen/false_positives_farthest"] == "short person"
    assert found["regard/identity/unseen/false_positives_beyond"] == 1
    assert found["regard/identity/seen/false_positives_beyond"] == 0
    assert found["regard/identity/unseen/plural/false_positives_masked"] == pytest.approx(100 / 33)
    assert not any(map(find, found))  # they are of no run's statements


def test_a_notice_names_the_scorer_the_group_and_the_shares(terms: pl.DataFrame) -> None:
    positives, negatives, *_ = identity_notices(identity_summary(terms).filter(scorer="regard"))
    assert positives == (
        "labels of regard depend on the group that a sentence names: 6.1 % of the neutral and kind sentences are "
        "labelled prejudice, of those about “short person” 100.0 %; unseen terms that are more than 5 points from "
        "the mean: 1 of 32"
    )
    assert "90.8 % of the unkind sentences are labelled no prejudice, of those about “short person” 0.0 %" in negatives
    alike = identity_summary(terms).with_columns(beyond=0)
    assert list(identity_notices(alike)) == []


def test_the_terminal_and_the_shipped_table_have_the_unseen_terms(terms: pl.DataFrame) -> None:
    summed = identity_summary(terms)
    lines = printed_identity(terms, summed).splitlines()
    assert len(lines) == 1 + 2 * 2
    assert lines[1].startswith("regard        false positives      6.1")
    assert "short person 100.0, " in lines[1]
    table = measured_identity(summed, {"sentiment": "vader"})
    assert table["scorer", "part", "error"].rows() == [
        ("vader", part, error) for part in ("all", "unseen") for error in ("false_positives", "false_negatives")
    ]
