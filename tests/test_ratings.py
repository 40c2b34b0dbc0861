"""People's ratings: CSV of the survey and of platforms, each fault by its line, labels beside sentences, and what drop
rules would drop of rated statements."""

from pathlib import Path

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load.ratings import KNOWLEDGE, describe_rated, read_answers, read_beside, read_crowd
from mitigate.words.targets import target_of

ITEMS = ["a1", "b2", "c3"]


def saved(folder: Path, text: str, name: str = "answers.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, raters: int = 1, on_bad_line: str = "error") -> tuple[pl.DataFrame, list[str]]:
    return read_answers([path], ITEMS, raters, on_bad_line)


FORMATS = {
    "survey": (
        "rater,item,label,quality\nfox,a1,-1,1\nfox,b2,0,0\nowl,a1,1.0,1.0\nfox,c3,0,1\n",
        [("a1", 1, -1, True), ("b2", 1, 0, False), ("a1", 2, 1, True), ("c3", 1, 0, True)],
        [],
    ),
    "Mechanical Turk": (
        '\ufeff"WorkerId","AssignmentStatus","Input.item","Input.statement","Answer.label","Answer.quality"\n'
        '"A1X","Approved","a1","two, and\nmore","Negative","yes"\n"A2X","Rejected","a1","x","positive","no"\n'
        '"A3X","Approved","a1","x","neutral","no"\n',
        [("a1", 1, -1, True), ("a1", 2, 0, False)],
        ["1 row left out: rejected on the platform", "2 of 3 items without a rating: b2, c3"],
    ),
    "semicolons, no quality": (
        "Rater;Item;Label\r\nfox;a1;prejudice\r\nfox;b2;0\r\nfox;c3;+1\r\n",
        [("a1", 1, -1, None), ("b2", 1, 0, None), ("c3", 1, 1, None)],
        ["3 ratings without a word on whether the statement makes sense"],
    ),
    "Potato": (
        "user,instance_id,displayed_text,label:::negative,label:::neutral,quality:::yes,quality:::no\n"
        "u1,a1,x,negative,,yes,\nu2,a1,x,,neutral,,no\nu1,b2,y,,1,true,\nu1,c3,z,1,,,\n",
        [("a1", 1, -1, True), ("a1", 2, 0, False), ("b2", 1, 0, True), ("c3", 1, -1, None)],
        ["1 rating without a word on whether the statement makes sense"],
    ),
    "Label Studio": (
        "annotation_id,annotator,id,regard,text\n11,1,a1,Positive,x\n12,2,a1,negative,x\n",
        [("a1", 1, 1, None), ("a1", 2, -1, None)],
        ["2 of 3 items without a rating: b2, c3", "2 ratings without a word on whether the statement makes sense"],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_answers_of_the_survey_and_of_platforms(name: str, tmp_path: Path) -> None:
    text, rows, said = FORMATS[name]
    ratings, notices = read(saved(tmp_path, text))
    assert ratings.rows() == [(item, f"rater {rater}", *labels) for item, rater, *labels in rows]
    assert len(notices) == len(said)
    assert all(any(notice.endswith(end) for notice in notices) for end in said)


def test_items_with_few_ratings_are_named_and_so_is_a_choice_of_two(tmp_path: Path) -> None:
    lines = FORMATS["Label Studio"][0]
    assert "1 item with fewer than 3 ratings: a1" in read(saved(tmp_path, lines), raters=3)[1]
    two = '13,1,b2,"{""choices"": [""Negative"", ""Neutral""]}",y\n'
    allowed = "answers.csv:4: label .*; allowed: -1, 0, 1, or negative, neutral, positive"
    refuses(MitigateError, allowed, read, saved(tmp_path, lines + two))


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
    for fault in (
        "2: unknown item 'zz': it is not in the survey",
        "3: label '4'; allowed: -1, 0, 1, or negative, neutral, positive",
        "4: quality 'maybe'; allowed: 1, 0, or yes, no",
        "5: no label",
        f"7: rater fox already rated item a1, at {path}:6",
    ):
        assert f"{path}:{fault}" in str(error.value)
    ratings, notices = read(path, on_bad_line="skip")
    assert ratings.rows() == [("a1", "rater 1", 0, True)]
    assert notices[0].startswith("5 bad lines left out: ")
    paths = [saved(tmp_path, "rater,item,label\nfox,a1,0\n", f"{name}.csv") for name in ("one", "two")]
    refuses(MitigateError, "two.csv:2: rater fox already rated item a1, at .*one.csv:2", read_answers, paths, ITEMS, 1)


def beside(folder: Path, sentences: str, bias: str, quality: str | None = None):
    told = saved(folder, quality, "q.txt") if quality is not None else None
    return read_beside(saved(folder, sentences, "s.txt"), saved(folder, bias, "b.txt"), told)


@pytest.mark.parametrize("quality", ["1\n0\n1\n", "1\n2\n1\n"])
def test_labels_beside_sentences_and_validity_in_either_form(tmp_path: Path, quality: str) -> None:
    """1 makes sense; what does not is 0, or 2 as in the paper's release."""
    found = beside(tmp_path, "x\ny\nx\n", "1\n2\n3\n", quality).rows()
    assert found == [("x", None, 1, True), ("y", None, 0, False), ("x", None, -1, True)]
    assert beside(tmp_path, "x\n", "2").row(0) == ("x", None, 0, None)


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (("x\ny\n", "1\n"), "b.txt has 1 label; expected one for each of 2"),
        (("x\ny\n", "1\n0\n"), "labels other than 1, 2, 3:\n.*b.txt:2: '0'"),
        (("x\n", "1\n", "3\n"), "labels other than 1, 0:\n.*q.txt:1: '3'"),
        (("x\ny\ny\n", "1\n1\n1\n", "1\n0\n2\n"), "q.txt:2: '0'"),
    ],
)
def test_labels_that_do_not_fit_the_sentences(tmp_path: Path, files: tuple[str, ...], fault: str) -> None:
    refuses(MitigateError, fault, beside, tmp_path, *files)


def test_crowd_sentences_are_grouped_by_text_wherever_their_lines_are(tmp_path: Path) -> None:
    saved(tmp_path, "x\ny\nx\n", "ConceptNet_sentences.txt")
    saved(tmp_path, "1\n2\n3\n", "ConceptNet_bias_labels.txt")
    saved(tmp_path, "x\n", "GenericsKB_sentences.txt")
    refuses(MitigateError, "has no GenericsKB_bias_labels.txt; set data.root to", read_crowd, tmp_path, KNOWLEDGE)
    saved(tmp_path, "2\n", "GenericsKB_bias_labels.txt")
    crowd = [("ConceptNet", "x", [1, -1]), ("ConceptNet", "y", [0]), ("GenericsKB", "x", [0])]
    assert read_crowd(tmp_path, KNOWLEDGE).drop("quality").rows() == crowd


@pytest.fixture(scope="module")
def rated() -> pl.DataFrame:
    rows = [
        ("ConceptNet", "court is related to lawyer", [-1, -1, 0]),
        ("ConceptNet", "knife is a tool", [0, 0, 0]),
        ("GenericsKB", "nurses are kind to a teacher.", [1, 1, 0]),
        ("COMeT", "Puerto_Rico is capable of play music", [1, 0, -1]),
    ]
    return describe_rated(pl.DataFrame(rows, schema=["resource", "sentence", "votes"], orient="row"))


def test_the_target_is_the_one_that_a_statement_begins_or_ends_with(rated: pl.DataFrame) -> None:
    assert rated["target"].to_list() == ["lawyer", None, "nurse", "puerto rico"]
    assert rated["cluster"].to_list()[:2] == ["lawyer", "knife is a tool"]
    assert rated["category"].to_list() == ["profession", None, "profession", "origin"]
    assert target_of("a plumber is an artist") == "plumber"
    assert target_of(" a plumber is an artist.") == "plumber"
    assert target_of("wise teaching is related to teacher") == "teacher"
    assert rated["masked_neutral"].to_list() == [
        "court is related to this person",  # a triple gets its neutral wording, a sentence keeps its own
        "knife is a tool",
        "this person are kind to a this person.",
        "this person is able to play music",
    ]
    assert rated["tail"].to_list() == ["lawyer", "tool", "", "play music"]
    assert rated["most"].to_list() == [-1, 0, 1, 0]  # neutral where no label leads
