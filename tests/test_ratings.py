"""People's ratings: CSV of the survey and of platforms, each fault by its line, and labels beside sentences."""

from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.load.crowd import KNOWLEDGE, read_beside, read_crowd
from mitigate.load.ratings import LoadedRatings, read_answers

ITEMS = ["a1", "b2", "c3"]


def saved(folder: Path, text: str, name: str = "answers.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, raters: int = 1, on_bad_line: str = "error") -> LoadedRatings:
    return read_answers([path], ITEMS, raters, on_bad_line)


def test_the_survey_s_own_file(tmp_path: Path) -> None:
    loaded = read(saved(tmp_path, "rater,item,label,quality\nfox,a1,-1,1\nfox,b2,0,0\nowl,a1,1,1\nfox,c3,0,1\n"))
    assert loaded.ratings.rows() == [
        ("a1", "rater 1", -1, True),
        ("b2", "rater 1", 0, False),
        ("a1", "rater 2", 1, True),
        ("c3", "rater 1", 0, True),
    ]
    assert loaded.notices == []


def test_mechanical_turk_s_file_with_words_for_labels_and_rejected_work(tmp_path: Path) -> None:
    text = (
        '"WorkerId","AssignmentStatus","Input.item","Input.statement","Answer.label","Answer.quality"\n'
        '"A1X","Approved","a1","two, and\nmore","Negative","yes"\n'
        '"A2X","Rejected","a1","x","positive","no"\n'
        '"A3X","Approved","a1","x","neutral","no"\n'
    )
    loaded = read(saved(tmp_path, "\ufeff" + text), raters=3)
    assert loaded.ratings.rows() == [("a1", "rater 1", -1, True), ("a1", "rater 2", 0, False)]
    rejected, none, few = loaded.notices
    assert rejected.endswith("1 rejected rating left out")
    assert none == "2 of 3 items have no rating: b2, c3"
    assert few == "1 item has fewer than 3 ratings: a1"


def test_semicolons_and_no_column_of_quality(tmp_path: Path) -> None:
    loaded = read(saved(tmp_path, "Rater;Item;Label\r\nfox;a1;prejudice\r\nfox;b2;0\r\nfox;c3;+1\r\n"))
    assert loaded.ratings["label"].to_list() == [-1, 0, 1]
    assert loaded.ratings["quality"].to_list() == [None] * 3
    assert loaded.notices[1:] == ["3 ratings do not say whether the statement makes sense"]


BAD = """rater,item,label,quality
fox,zz,0,1
fox,a1,4,1
fox,a1,0,maybe
fox,b2,,1
fox,a1,0,1
fox,a1,1,1
"""


def test_each_fault_is_named_by_its_line(tmp_path: Path) -> None:
    path = saved(tmp_path, BAD)
    with pytest.raises(MitigateError) as error:
        read(path)
    for told in (
        f"{path}:2: unknown item 'zz': the survey did not ask about it",
        f"{path}:3: label '4'; allowed: -1, 0, 1, or negative, neutral, positive",
        f"{path}:4: quality 'maybe'; allowed: 1, 0, or yes, no",
        f"{path}:5: no label",
        f"{path}:7: rater fox rated item a1 before, at {path}:6",
    ):
        assert told in str(error.value)
    loaded = read(path, on_bad_line="skip")
    assert loaded.ratings.rows() == [("a1", "rater 1", 0, True)]
    assert loaded.notices[0].startswith("5 bad lines left out: ")


def test_a_rater_may_not_rate_an_item_again_in_another_file(tmp_path: Path) -> None:
    paths = [saved(tmp_path, "rater,item,label\nfox,a1,0\n", f"{name}.csv") for name in ("one", "two")]
    with pytest.raises(MitigateError, match="two.csv:2: rater fox rated item a1 before, at .*one.csv:2"):
        read_answers(paths, ITEMS, 1)


def test_files_that_are_no_answers(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="there is no file .*nowhere.csv"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(
        MitigateError, match=r"has no column rater, label; its first line is item \| vote; its first line must"
    ):
        read(saved(tmp_path, "item,vote\na1,0\n"))
    with pytest.raises(MitigateError, match="answers.csv is empty"):
        read(saved(tmp_path, ""))
    with pytest.raises(MitigateError, match="no ratings in .*answers.csv"):
        read(saved(tmp_path, "rater,item,label\n"))


def beside(folder: Path, sentences: str, bias: str, quality: str | None = None):
    told = saved(folder, quality, "q.txt") if quality is not None else None
    return read_beside(saved(folder, sentences, "s.txt"), saved(folder, bias, "b.txt"), told)


def test_labels_beside_sentences(tmp_path: Path) -> None:
    assert beside(tmp_path, "x\ny\nx\n", "1\n2\n3\n", "1\n0\n1\n").rows() == [
        ("x", None, 1, True),
        ("y", None, 0, False),
        ("x", None, -1, True),
    ]
    assert beside(tmp_path, "x\n", "2").row(0) == ("x", None, 0, None)


def test_labels_beside_sentences_must_fit_them(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="b.txt has 1 label for 2 sentences; it must have one for each"):
        beside(tmp_path, "x\ny\n", "1\n")
    with pytest.raises(MitigateError, match="labels other than 1, 2, 3:\n.*b.txt:2: '0'"):
        beside(tmp_path, "x\ny\n", "1\n0\n")
    with pytest.raises(MitigateError, match="labels other than 1, 0:\n.*q.txt:1: '3'"):
        beside(tmp_path, "x\n", "1\n", "3\n")


def test_crowd_sentences_are_grouped_by_text_wherever_their_lines_are(tmp_path: Path) -> None:
    saved(tmp_path, "x\ny\nx\n", "ConceptNet_sentences.txt")
    saved(tmp_path, "1\n2\n3\n", "ConceptNet_bias_labels.txt")
    saved(tmp_path, "x\n", "GenericsKB_sentences.txt")
    with pytest.raises(MitigateError, match="lacks GenericsKB_bias_labels.txt; data.root must name"):
        read_crowd(tmp_path, KNOWLEDGE)
    saved(tmp_path, "2\n", "GenericsKB_bias_labels.txt")
    assert read_crowd(tmp_path, KNOWLEDGE).rows() == [
        ("ConceptNet", "x", [1, -1]),
        ("ConceptNet", "y", [0]),
        ("GenericsKB", "x", [0]),
    ]
