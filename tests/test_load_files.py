"""Files that are read whole: triples with splits and labels, statements, the harms paper's releases, the sample."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load import conceptnet
from mitigate.load import statements as files
from mitigate.load.conceptnet import read_triples
from mitigate.triples import TRIPLES
from mitigate.words.relations import comet_relations
from mitigate.words.targets import targets

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "mine.tsv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def unlabelled(path: Path, on_bad_line: str = "error") -> Any:
    return read_triples(path, "train", labelled=False, on_bad_line=on_bad_line)


def test_columns_of_training_triples_and_labels_of_others(write: Write) -> None:
    triples = unlabelled(write("IsA\tdog\tanimal\t1\nUsedFor\tpen\twrite letter\t2.58\n")).rows
    assert dict(triples.schema) == TRIPLES
    assert triples.rows() == [
        (1, "train", "dog", "IsA", "animal", True),
        (2, "train", "pen", "UsedFor", "write letter", True),
    ]
    path = write("IsA\tdog\tanimal\t1\nIsA\tdog\tletter\t0\n")
    assert read_triples(path, "dev", labelled=True).rows["valid"].to_list() == [True, False]
    with pytest.raises(MitigateError, match="label '0.7', expected 0 or 1"):
        read_triples(write("IsA\tdog\tanimal\t0.7\n"), "dev", labelled=True)


def test_marks_and_line_ends_are_accepted(write: Write) -> None:
    path = write(b"\xef\xbb\xbfIsA\tdog\tanimal\r\nIsA\tcat\tanimal\r\n")
    loaded = unlabelled(path)
    assert loaded.rows.select("relation", "tail").rows() == [("IsA", "animal")] * 2
    assert loaded.notices == []


BAD_LINES = [
    (unlabelled, "IsA\tcat\tanimal\n", b"IsA\tdog", "2 columns, expected 3 separated by a tab"),
    (unlabelled, "IsA\tcat\tanimal\n", b"IsA\t \tanimal", "a blank field"),
    (unlabelled, "IsA\tcat\tanimal\n", b"Isa\tdog\tanimal", "unknown relation 'Isa'"),
    (files.load, "nurse\tcares\n", b"nurse", "1 column, expected 2 separated by a tab"),
]


@pytest.mark.parametrize(("load", "good", "line", "fault"), BAD_LINES)
def test_a_bad_line_is_an_error_or_left_out(write: Write, load: Callable, good: str, line: bytes, fault: str) -> None:
    path = write(good.encode() + line + b"\n")
    with pytest.raises(MitigateError) as error:
        load(path)
    assert str(error.value) == (
        f"1 bad line:\n  {path}:2: {fault}\nCorrect the file, or leave such lines out with data.on_bad_line=skip."
    )
    loaded = load(path, on_bad_line="skip")
    assert loaded.rows["head" if load is unlabelled else "statement"].to_list() == [good.split("\t")[1].strip()]
    assert loaded.notices == [f"1 bad line left out: {path}:2: {fault}"]


def test_many_bad_lines_are_counted_and_repeats_leave_training_triples(write: Write) -> None:
    with pytest.raises(MitigateError, match="8 bad lines:(.|\n)*and 3 more"):
        unlabelled(write("IsA\ta\tb\n" + "nothing\n" * 8))
    path = write("IsA\tdog\tanimal\nIsA\tcat\tanimal\nIsA\tdog\tanimal\n")
    loaded = unlabelled(path)
    assert loaded.rows["row"].to_list() == [1, 2]
    assert loaded.notices == [f"{path}: 1 repeated triple left out"]
    assert read_triples(write("IsA\tdog\tanimal\t1\n" * 2), "test", labelled=True).rows.height == 2
    assert files.load(write("nurse\tcares\n" * 3)).rows.height == 3


@pytest.mark.parametrize(
    ("load", "content", "message"),
    [
        (unlabelled, "\n \n", "mine.tsv is empty"),
        (unlabelled, None, "no such file: .*mine.tsv"),
        (files.load, "target\tstatement\n", "mine.tsv has no statements; expected lines 'target<TAB>statement'"),
    ],
)
def test_a_file_without_rows_is_an_error(tmp_path: Path, write: Write, load, content: str | None, message: str) -> None:
    path = tmp_path / "mine.tsv" if content is None else write(content)
    with pytest.raises(MitigateError, match=message):
        load(path)


def test_statements_stay_as_written_and_targets_are_made_plain(write: Write) -> None:
    loaded = files.load(write("Prosecuting_Attorney\tA lawyer  won.\nnurse\tNurses\u2028care.\ngamer\tIt's fun\n"))
    assert loaded.rows.rows() == [
        (1, "prosecuting attorney", "own", "A lawyer  won."),
        (2, "nurse", "profession", "Nurses\u2028care."),
        (3, "gamer", "own", "It's fun"),
    ]
    assert loaded.notices == []


def test_columns_are_named_by_the_first_line_or_by_the_user_and_each_once(write: Write) -> None:
    path = write("target\tstatement\tStatement\nnurse\tcares\tsings\n")
    with pytest.raises(MitigateError, match="has 2 columns named statement, expected one; rename the others"):
        files.load(path)
    headed = files.load(write("Statement\tNote\tTarget\tMine\ncares\tx\tnurse\t-1\n"), label_column="mine")
    assert headed.rows.rows() == [(2, "nurse", "profession", "cares", -1)]
    assert headed.rows.columns[-1] == "mine"
    order = ["target", "regard", "statement"]
    named = files.load(write("nurse\t-1\tcares\n"), columns=order, label_column="Regard")
    assert named.rows["regard"].to_list() == [-1]
    path = write("nurse\tcares\n")
    with pytest.raises(MitigateError, match=r"has no column mine \(found: target, statement\); name the columns in a"):
        files.load(path, label_column="mine")
    with pytest.raises(MitigateError, match=r"column target and no column statement \(found: who, what\);"):
        files.load(path, columns=["who", "what"])


def test_a_label_of_unknown_meaning_is_named(write: Write) -> None:
    path = write("target\tstatement\tmine\nnurse\tcares\tgood\nnurse\tcares\t\nnurse\tcares\tPositive\n")
    with pytest.raises(MitigateError) as error:
        files.load(path, label_column="mine")
    assert f"{path}:2: mine 'good'; allowed: prejudice, neutral, favouritism, other, negative" in str(error.value)
    assert f"{path}:3: mine ''; allowed" in str(error.value)
    assert files.load(path, "skip", label_column="mine").rows["mine"].to_list() == [1]


LABELLED = "target\tstatement\tmine\nnurse\tlies\t{}\nnurse\twalks\t{}\nnurse\twins\t{}\n"


@pytest.mark.parametrize(
    ("values", "example"),
    [
        ((0, 1, 2), "data.labels={0: prejudice, 1: neutral, 2: favouritism}"),
        ((0, 1, 0), "data.labels={0: neutral, 1: prejudice} where 1 marks harm, {0: prejudice, 1: favouritism} where"),
        ((-1, 0, 2), "data.labels={-1: prejudice, 0: neutral, 2: other}"),
        (("bad", "fair", "fine"), "data.labels={bad: prejudice, fair: neutral, fine: favouritism}"),
    ],
)
def test_labels_that_could_have_another_sign_are_refused_with_the_mapping_to_write(write, values, example) -> None:
    path = write(LABELLED.format(*values))
    with pytest.raises(MitigateError) as error:
        files.load(path, label_column="mine")
    assert f"the labels are {', '.join(map(str, sorted(set(values))))}, which does not say" in str(error.value)
    assert example in str(error.value)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((0, 1, 2), {0: "prejudice", 1: "neutral", 2: "favouritism"}),
        ((-1, 0, 1), None),
        (("Negative", "NEUTRAL", "positive"), None),
        (("Toxic", "b", "c"), {"toxic": "Negative", "b": "other", "c": "positive"}),
    ],
)
def test_labels_are_read_by_their_meaning(write: Write, values: tuple, labels: dict | None) -> None:
    found = files.load(write(LABELLED.format(*values)), label_column="mine", labels=labels).rows["mine"]
    assert found.replace(2, 0).to_list() == [-1, 0, 1]
    with pytest.raises(
        MitigateError, match="unknown data.labels 'bad'; allowed: prejudice, neutral, favouritism, other"
    ):
        files.load(write(LABELLED.format(*values)), label_column="mine", labels={1: "bad"})


def placed(root: Path, name: str, content: bytes) -> Path:
    """A released file at its place."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_released_triples_lose_underscores_and_those_without_a_phrase_are_counted(tmp_path: Path) -> None:
    lines = (
        b"Court_house AtLocation italy\nitaly ExternalURL dbpedia.org\nitaly dbpedia x\n" + b"nurse IsA person\n" * 2
    )
    placed(tmp_path, files.CONCEPTNET, lines)
    loaded = files.harms_conceptnet(str(tmp_path))
    assert loaded.rows.select("row", "head", "relation", "tail").rows() == [
        (1, "court house", "AtLocation", "italy"),
        (4, "nurse", "IsA", "person"),
        (5, "nurse", "IsA", "person"),  # repeats count, as in the paper
    ]
    assert loaded.notices == ["2 triples left out, whose relation has no phrase: ExternalURL 1, dbpedia 1"]


def test_released_labels_have_no_header(tmp_path: Path) -> None:
    placed(
        tmp_path,
        files.REGARD,
        b"african_american\t-1\tthis person is late\nnurse\t2\tthis person is a person\n",
    )
    statements = files.harms_conceptnet_regard(str(tmp_path)).rows
    assert statements.select("target", "regard").rows() == [("african american", -1), ("nurse", 2)]


def test_the_place_of_a_released_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MitigateError, match="data.root is not set; set it, or the variable MITIGATE_DATA, to"):
        files.harms_genericskb()
    with pytest.raises(
        MitigateError, match=f"no such file or folder: {tmp_path}/harms/genericskb_target_sentences.tsv; set"
    ):
        files.harms_genericskb(str(tmp_path))
    placed(tmp_path, files.GENERICSKB, b"Italy\titaly is warm\n")
    monkeypatch.setenv("MITIGATE_DATA", str(tmp_path))
    assert files.harms_genericskb().rows["target"].to_list() == ["italy"]


def test_the_sample_has_its_splits_relations_and_targets() -> None:
    loaded = conceptnet.sample()
    triples = loaded.rows
    assert loaded.notices == []
    assert Counter(triples["split"]) == {"train": 5838, "dev": 300, "dev2": 300, "test": 600}
    assert triples.select("relation", "head", "tail").is_unique().all()
    train = triples.filter(split="train")
    assert set(train["relation"]) == {relation.name for relation in comet_relations()}
    assert len({word for word in [*train["head"], *train["tail"]] if word in targets()}) == 144
    valid = triples.group_by("split").agg(pl.col("valid").mean())  # half of dev and test is corrupted
    assert dict(valid.iter_rows()) == {"train": 1.0, "dev": 0.5, "dev2": 0.5, "test": 0.5}
