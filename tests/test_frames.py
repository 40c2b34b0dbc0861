"""Social Bias Frames: constrained values, figures by hand; and the corpus in its published and partial forms, its posts
with one split each."""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.sbic import CHOICES, normalise, read_annotations
from mitigate.measure.intervals import Bootstrap
from mitigate.report.page import OPEN
from mitigate.studies.frames import (
    beside_baselines,
    classification,
    constrained,
    fold_numbers,
    gather,
    text_scores,
    truth_of,
    verdict,
)

INTERVALS = Bootstrap(resamples=500, seed=1)


@pytest.mark.parametrize(
    ("offensive", "targeted", "ingroup", "expected"),
    [
        ((-0.2, -1.7), (-2.3, -0.1), (np.nan, np.nan), (0, np.nan, np.nan)),  # -0.2 against -1.7 - 0.1
        ((-1.0, -0.5), (-0.9, -0.6), (-0.1, -2.0), (0, np.nan, np.nan)),  # -1.0 against -0.5 - 0.6 - 0.1
        ((-1.0, -0.5), (-0.9, -0.2), (-0.1, -2.0), (1, 1, 0)),  # against -0.5 - 0.2 - 0.1
        ((-0.7, -0.5), (-0.1, -2.0), (np.nan, np.nan), (1, 0, np.nan)),  # -0.7 against -0.5 - 0.1
        ((np.nan, np.nan), (-1.0, -0.5), (np.nan, np.nan), (np.nan, 1, np.nan)),  # offensiveness was not learnt
        ((-0.5, -1.0), (np.nan, np.nan), (np.nan, np.nan), (0, np.nan, np.nan)),  # no group was asked for
    ],
)
def test_constrained_values_are_the_most_probable_consistent_ones(offensive, targeted, ingroup, expected) -> None:
    log_probs = np.array([[(-0.3, -1.4), offensive, (-1.4, -0.3), targeted, ingroup]])
    values = np.where(np.isnan(log_probs[:, :, 1]), np.nan, log_probs.argmax(2))
    found = constrained(values, log_probs)[0]
    np.testing.assert_array_equal(found, [0, expected[0], 1, *expected[1:]])


def test_f1_is_that_of_the_positive_class_with_intervals_of_a_resampling_of_posts() -> None:
    """Two right of three predicted and four positive: precision 2/3, recall 1/2, F1 4/7."""
    truth = np.array([True] * 4 + [False] * 6)
    predicted = np.array([True, True, False, False, True] + [False] * 5)
    found = classification(truth, predicted, INTERVALS)
    assert (found["precision"], found["recall"]) == (pytest.approx(200 / 3), pytest.approx(50))
    assert found["f1"] == pytest.approx(400 / 7)
    found = classification(np.array([True, False]), np.array([False, False]), INTERVALS)
    assert (found["precision"], found["recall"], found["f1"]) == (None, 0, 0)
    chance = np.random.default_rng(5)
    truth, predicted = chance.random(400) < 0.4, chance.random(400) < 0.5
    found = classification(truth, predicted, Bootstrap(resamples=2000, seed=2))
    drawn = chance.integers(400, size=(2000, 400))
    both, either = (truth & predicted)[drawn].sum(1), truth[drawn].sum(1) + predicted[drawn].sum(1)
    low, high = np.percentile(200 * both / either, [2.5, 97.5])
    assert (found["f1_low"], found["f1_high"]) == (pytest.approx(low, abs=0.8), pytest.approx(high, abs=0.8))


def test_texts_are_compared_with_all_references() -> None:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rouge_score")
    generated = ["women are late", "women", "", "a b"]
    scores = text_scores(generated, [["men are late", "Women are late"], ["women"], ["x"], ["c d"]])
    assert scores[:2].tolist() == [pytest.approx([100, 100])] * 2  # of one word, words alone
    assert scores[2].tolist() == [0, 0]
    assert scores[3, 1] == 0


@pytest.mark.parametrize(
    ("offensive", "implied", "state", "hedge"),
    [
        (60.0, 40.0, "Beats the best baseline in 1 of 2", "Above it: offensive (F1). Intervals"),
        (80.0, 20.0, "Beats the best baseline in 1 of 2", "Above it: implied statement (BLEU-2). Below it: offensive"),
        (80.0, 40.0, "Below the best baseline in 1 of 2", "Below it: offensive (F1)."),
        (68.5, 39.0, f"{OPEN}: level with the best baseline", "The intervals overlap. Train longer"),
    ],
)
def test_the_model_beats_a_baseline_where_intervals_are_apart(offensive, implied, state: str, hedge: str) -> None:
    """The model's F1 is 70 and its BLEU-2 is 40; intervals reach one point to either side. Neither the variant with
    constraints nor one without folds is a baseline, or the model."""

    def rows(variable: str, figure: str, values: dict[str, float]) -> pl.DataFrame:
        named = [{"variable": variable, "system": system, figure: value} for system, value in values.items()]
        bounded = {f"{figure}_low": pl.col(figure) - 1, f"{figure}_high": pl.col(figure) + 1}
        return pl.DataFrame(named).with_columns(**bounded)

    classified = rows("offensive", "f1", {"model": 70.0, "model, constrained": 90.0, "tf-idf": offensive})
    said = {"model, given a group": 99.0, "model, five folds, given a group": 40.0, "commonest": implied}
    found, reason = verdict(beside_baselines(classified, rows("implied", "bleu2", said)))
    assert found == state
    assert hedge in reason
    assert len(found.split()) <= 8


COLUMNS = ["whoTarget", "intentYN", "sexYN", "offensiveYN", "speakerMinorityYN", "WorkerId", "HITId", "post"]
COLUMNS += ["targetMinority", "targetCategory", "targetStereotype", "dataSource"]


def row(post: str, worker: str, **values: object) -> dict[str, object]:
    return {**dict.fromkeys(COLUMNS, ""), "post": post, "WorkerId": worker, **values}


def harmful(worker: str, statement: str = "are late", **values: object) -> dict[str, object]:
    texts = {"targetMinority": "women", "targetStereotype": statement}
    given = {"whoTarget": 1.0, "intentYN": 0.66, "sexYN": 0.0, "offensiveYN": 0.5, "speakerMinorityYN": 0.0}
    return row("They hire ANYONE!", worker, **{**given, **texts, **values})


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    harmless = {"offensiveYN": 0.0, "intentYN": 0.33, "sexYN": 0.0}
    rows = [harmful("a"), harmful("a", "are weak"), harmful("b")]
    rows += [row("They hire ANYONE!", "c", **harmless), row("a nice day", "a", **harmless)]
    write_rows(tmp_path / "SBIC.v2.trn.csv", rows)
    write_rows(tmp_path / "SBIC.v2.tst.csv", [row("A nice day.", "b", **harmless), row("good bread", "b", **harmless)])
    return tmp_path


def test_published_posts_are_averaged_over_annotators(tmp_path: Path, published: Path) -> None:
    """Two of three say that it is offensive (maybe counts as yes), and so that it targets a group."""
    posts = gather(read_annotations(published))
    found = posts.filter(key="they hire anyone").row(0, named=True)
    assert [found[name] for name in CHOICES] == [False, True, True, True, False]
    assert (found["groups"], found["implied"]) == (["women"], ["are late", "are weak"])
    assert (found["implied_groups"], found["split"]) == (["women", "women"], "train")
    assert fold_numbers(posts) == []
    rows = [harmful("a"), *(row("They hire ANYONE!", worker, offensiveYN=0.0) for worker in "bc")]
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "train").mkdir()
    write_rows(tmp_path / "alone" / "train" / "0000.csv", rows)  # the folder says the split
    annotations = read_annotations(tmp_path / "alone")
    assert annotations["targeted"].to_list() == [1.0, None, None]
    assert gather(annotations)["offensive"].to_list() == [False]  # one of three


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    (tmp_path / "offensive_train.csv").write_text("1,they are late\n0,a nice day\n0,good bread\n", encoding="utf-8")
    (tmp_path / "offensive_test.csv").write_text("1,they lie\n1,you lie\n0,Good bread!\n", encoding="utf-8")
    (tmp_path / "groups_trn.csv").write_text("post,target_minority,label\nthey cook,black,2\n", encoding="utf-8")
    statements = '"[""women lie""]","[""women""]"'
    posts = f",post,targetStereotype,targetMinority\n0,they lie,{statements}\n"
    (tmp_path / "frames_test_posts.csv").write_text(posts)
    return tmp_path


def test_partial_files_leave_open_what_they_do_not_say(partial: Path) -> None:
    posts = gather(read_annotations(partial))
    rows = {found["key"]: found for found in posts.rows(named=True)}
    assert (rows["they cook"]["groups"], rows["they cook"]["targeted"]) == (["black folks"], True)
    assert (rows["they cook"]["offensive"], rows["they are late"]["targeted"]) == (None, None)
    assert (rows["they lie"]["implied"], rows["good bread"]["split"]) == (["women lie"], "test")
    assert rows["you lie"]["targeted"] is False  # offensive, of the original test posts, without an implied statement
    assert posts.select(pl.col("lewd", "intent", "ingroup").is_null().all()).row(0) == (True, True, True)


def test_posts_are_normalised_and_have_one_split_over_all_files(published: Path) -> None:
    assert normalise("RT: &amp; They\u2019re  LATE!!") == normalise("rt they re late")
    posts = gather(read_annotations(published))
    assert dict(posts.select("key", "split").rows()) == {
        "they hire anyone": "train",
        "a nice day": "test",  # it stands in both
        "good bread": "test",
    }
    day = posts.filter(key="a nice day").row(0, named=True)
    assert (day["offensive"], day["targeted"]) == (False, None)
    assert truth_of(posts, "targeted").to_list() == [False, False, True]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("offensive_test.csv", "2,a\n", "offensive_test.csv:1: found '2', expected `label,post` with label 0 or 1"),
        ("groups_trn.csv", "post,label\na,1\n", "groups_trn.csv has no column target_minority; its columns"),
        (
            "frames_test_posts.csv",
            "post,targetStereotype,targetMinority\na,x,[]\n",
            "frames_test_posts.csv:2: not JSON .Expecting",
        ),
        ("notes.csv", "a,b\n1,2\n", "has no file of the corpus; allowed: SBIC.v2.trn.csv, "),
        ("SBIC.v2.dev.csv", f"{','.join(COLUMNS)}\n1,0,0,7,,w,h,a,,,,\n", "dev.csv:2: offensiveYN is '7'; it must"),
        ("offensive_train.csv", b"\xed\x00\xff", "offensive_train.csv:1: n.*UTF-8"),
        ("offensive_train.csv", b"0,a\n1,b\xff\n", "offensive_train.csv:2: not UTF-8"),
    ],
)
def test_faults_are_named_by_file_and_row(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refuses(MitigateError, message, read_annotations, tmp_path)
