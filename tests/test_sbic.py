"""The Social Bias Inference Corpus in its published and partial forms, and its posts with one split each."""

import csv
from pathlib import Path

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.sbic import normalise, read_annotations
from mitigate.tasks.frames.forms import fold_numbers, fold_posts, needs_folds
from mitigate.tasks.frames.posts import categories, check, gather, read_posts, sources, statistics
from mitigate.tasks.frames.predictions import truth_of
from mitigate.words.frames import CHOICES

COLUMNS = [
    *("whoTarget", "intentYN", "sexYN", "sexReason", "offensiveYN", "annotatorGender", "annotatorMinority"),
    *("sexPhrase", "speakerMinorityYN", "WorkerId", "HITId", "annotatorPolitics", "annotatorRace", "annotatorAge"),
    *("post", "targetMinority", "targetCategory", "targetStereotype", "dataSource"),
]


def row(post: str, worker: str, **values: object) -> dict[str, object]:
    return {**dict.fromkeys(COLUMNS, ""), "post": post, "WorkerId": worker, "HITId": "h", **values}


def harmful(worker: str, statement: str = "are late", **values: object) -> dict[str, object]:
    texts = {"targetMinority": "women", "targetCategory": "gender", "targetStereotype": statement}
    given = {"whoTarget": 1.0, "intentYN": 0.66, "sexYN": 0.0, "offensiveYN": 0.5, "speakerMinorityYN": 0.0}
    return row("They hire ANYONE!", worker, dataSource="t/jokes", **{**given, **texts, **values})


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    harmless = {"offensiveYN": 0.0, "intentYN": 0.33, "sexYN": 0.0, "dataSource": "t/news"}
    rows = [harmful("a"), harmful("a", "are weak"), harmful("b")]
    rows += [row("They hire ANYONE!", "c", **harmless), row("a nice day", "a", **harmless)]
    write_rows(tmp_path / "SBIC.v2.trn.csv", rows)
    write_rows(tmp_path / "SBIC.v2.tst.csv", [row("A nice day.", "b", **harmless), row("good bread", "b", **harmless)])
    return tmp_path


def test_published_posts_and_the_statistics_of_tables_2_and_3(published: Path) -> None:
    """Two of three say that it is offensive (maybe counts as yes), and so that it targets a group."""
    _, posts = read_posts(published)
    found = posts.filter(key="they hire anyone").row(0, named=True)
    assert [found[name] for name in CHOICES] == [False, True, True, True, False]
    assert (found["groups"], found["implied"]) == (["women"], ["are late", "are weak"])
    assert (found["implied_groups"], found["split"]) == (["women", "women"], "train")
    assert fold_numbers(read_posts(published)[1]) == []
    annotations, posts = read_posts(published)
    found = statistics(annotations, posts)
    assert (found["tuples"], found["posts"], found["groups"], found["implications"]) == (7, 3, 1, 2)
    assert found["post_group_implication"] == 2
    assert found["positive/offensive"] == pytest.approx(100 * 2 / 6)  # annotators, not rows
    assert sources(posts).select("source", "posts").rows() == [("t/news", 2), ("t/jokes", 1)]
    assert categories(annotations).rows() == [("t/jokes", "gender", 3, 100.0)]


def test_published_files_are_averaged_and_aggregated_ones_read_where_they_lack(tmp_path: Path, published: Path) -> None:
    rows = [harmful("a"), *(row("They hire ANYONE!", worker, offensiveYN=0.0) for worker in "bc")]
    (tmp_path / "alone").mkdir()
    write_rows(tmp_path / "alone" / "SBIC.v2.trn.csv", rows)
    annotations = read_annotations(tmp_path / "alone")
    assert annotations["targeted"].to_list() == [1.0, None, None]
    assert gather(annotations)["offensive"].to_list() == [False]  # one of three
    lists = {"targetMinority": '["women", "black women"]', "targetStereotype": '["Women are late.", "are proud"]'}
    given = {"post": "they all do", "offensiveYN": 0.67, "intentYN": 0.33, "sexYN": 0.0, "targetCategory": "[]"} | lists
    for part in ("trn", "dev"):
        write_rows(published / f"SBIC.v2.agg.{part}.csv", [given])
    annotations, posts = read_posts(published)
    assert "SBIC.v2.agg.trn.csv" not in annotations["file"].to_list()
    found = posts.filter(key="they all do").row(0, named=True)
    assert found["split"] == "dev"
    assert (found["offensive"], found["intent"], found["targeted"]) == (True, False, True)
    assert (found["implied"], found["implied_groups"]) == (["women are late", "are proud"], ["women", "women"])


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    (tmp_path / "offensive_train.csv").write_text("1,they are late\n0,a nice day\n0,good bread\n", encoding="utf-8")
    (tmp_path / "offensive_test.csv").write_text("1,they lie\n1,you lie\n0,Good bread!\n", encoding="utf-8")
    (tmp_path / "groups_trn.csv").write_text("post,target_minority,label\nthey cook,black,2\n", encoding="utf-8")
    statements = '"[""women lie""]","[""women""]"'
    (tmp_path / "frames_test_posts.csv").write_text(
        f",post,targetStereotype,targetMinority\n0,they lie,{statements}\n", encoding="utf-8"
    )
    return tmp_path


def test_partial_files_leave_open_what_they_do_not_say(partial: Path) -> None:
    _, posts = read_posts(partial)
    rows = {found["key"]: found for found in posts.rows(named=True)}
    assert (rows["they cook"]["groups"], rows["they cook"]["targeted"]) == (["black folks"], True)
    assert (rows["they cook"]["offensive"], rows["they are late"]["targeted"]) == (None, None)
    assert (rows["they lie"]["implied"], rows["good bread"]["split"]) == (["women lie"], "test")
    assert rows["you lie"]["targeted"] is False  # offensive, of the original test posts, without an implied statement
    assert posts.select(pl.col("lewd", "intent", "ingroup").is_null().all()).row(0) == (True, True, True)


def test_folds_are_of_test_posts_alone(partial: Path) -> None:
    _, posts = read_posts(partial)
    assert needs_folds(posts)
    assert fold_numbers(posts) == [0, 1, 2, 3, 4]
    assert posts.filter(pl.col("fold").is_not_null())["split"].unique().to_list() == ["test"]
    mine = posts.filter(key="they lie")["fold"][0]
    for fold in range(5):
        assert ("they lie" in fold_posts(posts, fold)["key"]) == (fold != mine)
    (partial / "offensive_train.csv").unlink()
    refuses(MitigateError, "no train post has a value of `offensive`", check, read_posts(partial)[1])


def test_posts_are_normalised_and_have_one_split_over_all_files(published: Path) -> None:
    assert normalise("RT: &amp; They\u2019re  LATE!!") == normalise("rt they re late")
    _, posts = read_posts(published)
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
        ("offensive_test.csv", "2,a\n", r"offensive_test.csv:1: found '2', expected `label,post` with label 0 or 1"),
        (
            "groups_trn.csv",
            "post,label\na,1\n",
            r"groups_trn.csv has no column target_minority; it is CSV with the columns post, label",
        ),
        (
            "frames_test_posts.csv",
            "post,targetStereotype,targetMinority\na,x,[]\n",
            r"frames_test_posts.csv:2: targetStereotype 'x' is not a list of texts such as \[\"a\", \"b\"\]",
        ),
    ],
)
def test_faults_are_named_by_file_and_row(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    refuses(MitigateError, message, read_annotations, tmp_path)


def test_values_out_of_range_and_folders_without_the_corpus_are_named(tmp_path: Path) -> None:
    refuses(MitigateError, r"has no file of the corpus; allowed: SBIC.v2.trn.csv, ", read_annotations, tmp_path)
    write_rows(tmp_path / "SBIC.v2.dev.csv", [row("a", "b", offensiveYN="7")])
    with pytest.raises(
        MitigateError, match="dev.csv:2: offensiveYN is '7'; it must be a number from 0 to 1, or one of yes"
    ):
        read_annotations(tmp_path)
