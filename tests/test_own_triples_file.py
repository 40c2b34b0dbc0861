"""Files of one's own triples: splits, labels, and relations with their phrases."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load import any_triples
from mitigate.load.relations_file import read_relations
from mitigate.relations import Relation
from mitigate.score.vader import Vader
from mitigate.tasks.template import carriers, not_neutral

PHRASES = "relation,phrase,neutral_phrase\nMentors,is a great mentor of,is a mentor of\nworks with,works with,\n"
TRIPLES = (
    "head,relation,tail,split\nnurse,mentors,x,Train\nnurse,works_with,y,validation\nchef,IsA,z,valid\na,IsA,b,test\n"
)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], str]:
    def write(name: str, content: str) -> str:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return str(path)

    return write


def test_relations_with_two_wordings_or_one(written) -> None:
    path = Path(written("phrases.csv", PHRASES))
    assert read_relations(path) == [
        Relation("Mentors", "is a great mentor of", "is a mentor of"),
        Relation("works_with", "works with", "works with"),
    ]
    tabs = written("phrases.tsv", "phrase\trelation\nis a  mentor of\tmentors\nis one of\tis a\n")
    assert read_relations(Path(tabs)) == [
        Relation("mentors", "is a mentor of", "is a mentor of"),
        Relation("IsA", "is one of", "is one of"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("relation,words\na,b\n", "has no column phrase, but relation, words; give a table such as"),
        ("relation,phrase\n", "phrases.csv names no relation; give a table such as"),
        ("relation,phrase\nmentors,\n", "phrases.csv:2: a blank phrase"),
        ("relation,phrase\n,helps\n", "phrases.csv:2: a blank relation"),
        ("relation,phrase\na/b,helps\n", "phrases.csv:2: the name 'a/b'; allowed: letters, digits, dash"),
        ("relation,phrase\nworks with,a\nWorksWith,b\n", "phrases.csv:3: 'WorksWith' after 'works_with'; case, blanks"),
        ("relation,phrase\na,b,c\n", "phrases.csv:2: 3 columns, expected 2 separated by a comma"),
        ("", "phrases.csv is empty"),
    ],
)
def test_faults_of_a_file_of_relations_are_named(written, content: str, message: str) -> None:
    with pytest.raises(MitigateError) as error:
        read_relations(Path(written("phrases.csv", content)))
    assert message in str(error.value)


def test_a_split_column_is_used_where_there_is_one(written, tmp_path: Path) -> None:
    phrases = written("phrases.csv", PHRASES)
    expected = [("Mentors", "train"), ("works_with", "dev"), ("IsA", "dev"), ("IsA", "test")]
    loaded = any_triples.load(written("mine.csv", TRIPLES), relations=phrases)
    assert loaded.triples.select("relation", "split").rows() == expected
    assert [relation.name for relation in loaded.own_relations] == ["Mentors", "works_with"]
    frame = pl.read_csv(written("mine.csv", TRIPLES))
    frame.write_ndjson(tmp_path / "mine.jsonl")
    frame.rename({"split": "part"}).write_parquet(tmp_path / "mine.parquet")
    for name, columns in (("mine.jsonl", None), ("mine.parquet", {"split": "part"})):
        rows = any_triples.load(str(tmp_path / name), columns=columns, relations=phrases).triples
        assert rows.select("relation", "split").rows() == expected
    unused = any_triples.load(written("mine.csv", TRIPLES), columns={"split": None}, relations=phrases)
    assert set(unused.triples["split"]) == {"train"}


def test_a_split_of_another_name_is_a_bad_line(written) -> None:
    path = written("mine.csv", TRIPLES.replace("valid\n", "later\n"))
    with pytest.raises(MitigateError) as error:
        _ = any_triples.load(path, relations=written("phrases.csv", PHRASES)).triples
    assert (
        f"1 bad line:\n  {path}:4: split 'later'; allowed: train, training, trn, test, tst, dev, valid, validation, "
        "val, dev2;" in str(error.value)
    )
    assert "data.columns={split: null} takes no notice of the column" in str(error.value)


def test_labels_are_read_where_a_column_is_named(written) -> None:
    lines = "head,relation,tail,split,ok\na,IsA,b,train,1\na,IsA,c,train,0\na,IsA,d,test,0\na,IsA,e,test,1\n"
    loaded = any_triples.load(written("mine.csv", lines), columns={"valid": "ok"})
    assert loaded.triples.select("tail", "valid").rows() == [("b", True), ("d", False), ("e", True)]
    assert loaded.notices == ["1 row left out: labelled 0 (not valid), which nothing is trained on"]
    with pytest.raises(MitigateError, match=r"mine.csv:2: valid 'yes'; allowed: 1, 1.0, true, 0, 0.0, false"):
        _ = any_triples.load(written("mine.csv", lines.replace(",1\n", ",yes\n", 1)), columns={"valid": "ok"}).triples


def test_a_column_that_is_named_and_absent_is_missed(written) -> None:
    with pytest.raises(MitigateError, match="has no column part; its first line is head | relation | tail | split"):
        any_triples.load(written("mine.csv", TRIPLES), columns={"split": "part"})
    with pytest.raises(MitigateError, match="from 1; there may be split and valid besides"):
        any_triples.load(written("mine.csv", TRIPLES), columns={"splits": "part"})


def test_a_first_line_of_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes("café\tIsA\tplace\n".encode("latin-1"))
    with pytest.raises(MitigateError, match=r"mine.tsv has no column head, .* its first line is not UTF-8. Save it as"):
        any_triples.load(str(path))


def test_relations_without_a_phrase_are_listed_with_the_file_to_write(written) -> None:
    path = written("mine.csv", TRIPLES)
    with pytest.raises(MitigateError) as error:
        _ = any_triples.load(path).triples
    said = str(error.value)
    assert f"{path}: 2 triples have a relation without a phrase: mentors 1, works_with 1. Write a file such as" in said
    assert "\n  relation,phrase,neutral_phrase\n  mentors,...,...\n  works_with,...,...\n" in said
    assert "data.relations=FILE.csv; or leave such triples out with data.on_bad_line=skip" in said
    assert "Relations with a phrase: AtLocation, CapableOf, " in said
    with pytest.raises(MitigateError, match=r"mentors 1, CapabelOf 1 \(did you mean CapableOf\?\)\. Write"):
        _ = any_triples.load(written("misspelt.csv", TRIPLES.replace("works_with", "CapabelOf"))).triples
    kept = any_triples.load(path, "skip")
    assert kept.triples.height == 2
    assert kept.notices == ["2 triples left out, whose relation has no phrase: mentors 1, works_with 1"]


def test_a_neutral_phrase_with_a_sentiment_is_said() -> None:
    own = [Relation("mentors", "is a great mentor of", "is a mentor of"), Relation("helps", "helps", "helps")]
    (said,) = not_neutral(own, [Vader()])
    assert said.startswith("Neutral phrases that are not neutral: helps (“helps”, sentiment +1).")
    assert not_neutral(own[:1], [Vader()]) == not_neutral([], [Vader()]) == []
    assert carriers(own)["masked"].to_list()[-2:] == ["this person is a great mentor of", "this person helps"]
