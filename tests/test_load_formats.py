"""Formats of resources: ConceptNet's edges, GenericsKB, ATOMIC, triples and relations of one's own, sentences, and
generations of other systems."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_streamed_resources import MIXED, whole
from test_streamed_resources import written as written

from mitigate.errors import MitigateError
from mitigate.load import atomic, conceptnet, sentences, triples
from mitigate.load.triples import read_relations
from mitigate.probe.tails import GivenTails
from mitigate.score.vader import Vader
from mitigate.tasks.label import not_neutral
from mitigate.tasks.tails import open_tails
from mitigate.verbalise import verbalise
from mitigate.words.relations import Relation

TRIPLE = ["head", "relation", "tail"]
PLACES = {"head": 1, "relation": 2, "tail": 3}


def test_edges_with_words_and_with_uris(written) -> None:
    lines = "antonym\tab_extra\tab_intra\t1.0\natlocation\tnurse\thospital\t2\nfoo\ta\tb\t1\n"
    rows, notices = whole(conceptnet.dump(written("conceptnet.en.csv", lines)))
    assert rows.select("row", *TRIPLE).rows() == [
        (1, "ab extra", "Antonym", "ab intra"),
        (2, "nurse", "AtLocation", "hospital"),
    ]
    assert notices == ["1 triple left out, whose relation has no phrase: foo 1"]
    lines = "/r/IsA\t/c/en/nurse/n\t/c/en/x_y\n/r/IsA\t/c/en/nurse\t/c/de/x\n/r/IsA\t/c/de/x\t/c/de/y\n"
    rows, notices = whole(conceptnet.dump(written("edges.csv", lines)))
    assert rows.select("head", "tail").rows() == [("nurse", "x y")]
    assert len(notices) == 2
    with pytest.raises(MitigateError, match="2: 2 columns, expected 3 separated by a tab"):
        whole(conceptnet.dump(written("edges.csv", "IsA\ta\tb\nIsA\ta\n")))


def test_genericskb_in_both_forms(written) -> None:
    lines = "SOURCE\tTERM\tQUANTIFIER\tGENERIC SENTENCE\tSCORE\nW\tNurse\t\tNurses care.\t0.9\nW\tcat\n"
    path = written("GenericsKB-Best.tsv", lines)
    rows, notices = whole(sentences.genericskb(path, "skip"))
    assert rows.rows() == [(2, "nurse", "Nurses care.")]
    assert notices == [f"1 bad line left out: {path}:3: 2 columns, expected 5 separated by a tab"]
    rows, notices = whole(sentences.genericskb(written("plain.txt", "\ufeffNurses care.\r\n\r\nLawyers win.")))
    assert rows.rows() == [(1, None, "Nurses care."), (3, None, "Lawyers win.")]
    assert notices == ["1 blank line"]


@pytest.mark.parametrize("header", ["", "head\trelation\ttail\n"])
def test_atomic_with_a_line_of_names_or_without(written, header: str) -> None:
    lines = "PersonX eats\txWant\tto sleep\nlawyer\tCapableOf\tnone\nlawyer\tObjectUse\tWin\nPersonX wins\txMood\tx\n"
    rows, notices = whole(atomic.load(written("train.tsv", header + lines)))
    assert rows.select(TRIPLE).rows() == [("personx eats", "xWant", "to sleep"), ("lawyer", "UsedFor", "win")]
    assert verbalise(rows)["statement"][0] == "personx eats as a result personx wants to sleep"
    assert notices == [
        "1 row left out: the tail is 'none'",
        "1 triple left out, whose relation has no phrase: xMood 1",
    ]


def test_atomic_in_a_folder_has_splits(written) -> None:
    folder = Path(written("train.tsv", "PersonX eats a ___\txwant\tto sleep\n")).parent
    written("atomic_dev.tsv", "PersonX wins\txwant\tnone\nPersonX wins\toreact\tsad\n")
    resource = atomic.load(str(folder))
    rows, notices = whole(resource)
    assert rows.select("split", "row", "head", "relation").rows() == [
        ("train", 1, "personx eats a ___", "xWant"),
        ("dev", 2, "personx wins", "oReact"),
    ]
    assert notices == ["1 row left out: the tail is 'none'"]
    before = resource.digest
    written("atomic_dev.tsv", "PersonX wins\toreact\thappy\n")
    assert atomic.load(str(folder)).digest != before
    written("dev.tsv", "PersonX wins\toreact\tsad\n")
    with pytest.raises(
        MitigateError, match="has atomic_dev.tsv and dev.tsv, both of split dev; expected one file a split"
    ):
        atomic.load(str(folder))
    (folder / "train.tsv").unlink()
    (folder / "dev.tsv").unlink()
    with pytest.raises(MitigateError, match="has no train.tsv .found: atomic_dev.tsv.; give a folder with train.tsv"):
        atomic.load(str(folder))


def test_atomics_persons_are_verbalised_and_each_relation_of_atomic_2020_has_a_phrase(written) -> None:
    resource = atomic.load(written("train.tsv", "PersonX buys a ___\txreact\tPersonX 's happy\n"), persons="verbalised")
    rows, _ = whole(resource)
    assert rows.select("head", "tail").rows() == [("this person buys something", "this person's happy")]
    said = "this person buys something as a result this person feels this person's happy"
    assert verbalise(rows, own_relations=resource.own_relations)["statement"][0] == said
    names = (
        "ObjectUse AtLocation MadeUpOf HasProperty CapableOf Desires NotDesires isAfter HasSubEvent isBefore "
        "HinderedBy Causes xReason isFilledBy xNeed xAttr xEffect xReact xWant xIntent oEffect oReact oWant"
    )
    rows, notices = whole(atomic.load(written("train.tsv", "".join(f"a\t{name}\tb\n" for name in names.split()))))
    assert (rows.height, notices) == (23, [])


def test_a_table_of_another_width_is_refused(written) -> None:
    with pytest.raises(MitigateError, match="expected head, relation, tail, separated by a tab; its first line has 5"):
        atomic.load(written("some.csv", MIXED))
    with pytest.raises(MitigateError, match="expected relation, head, tail, separated by a tab; its first line has 1"):
        conceptnet.dump(written("some.csv", "IsA,a,b\n"))


def test_triples_in_every_format(written, tmp_path: Path) -> None:
    expected = [("nurse", "IsA", "a, b"), ("court house", "AtLocation", "italy")]
    written("comma.csv", 'subject,pred,object\nNurse,IsA,"a, b"\ncourt_house,at_location,italy\n')
    tabs = b"object\tsubject\tpred\na, b\tnurse\tIsA\nitaly\tcourt house\tAtLocation\n"
    written("tabs.tsv.gz", gzip.compress(tabs))
    frame = pl.DataFrame(expected, schema=TRIPLE, orient="row")
    frame.write_parquet(tmp_path / "some.parquet")
    frame.write_ndjson(tmp_path / "some.jsonl")
    frame.write_csv(tmp_path / "bare.tsv", separator="\t", include_header=False)
    named = {"head": "Subject", "relation": "pred", "tail": "object"}
    columns = {"comma.csv": named, "tabs.tsv.gz": named, "some.parquet": None, "some.jsonl": None, "bare.tsv": PLACES}
    for name, of_file in columns.items():
        rows, _ = whole(triples.load(str(tmp_path / name), columns=of_file))
        assert rows.select(TRIPLE).rows() == expected, name


JSONL = '{"head":"a","relation":"IsA","tail":"b"}\n'


@pytest.mark.parametrize(
    ("name", "lines", "fault"),
    [
        ("some.csv", "a,IsA,b\na,IsA\n", ":3: 2 columns, expected 3 separated by a comma"),
        ("some.csv", 'a,IsA,b\na,IsA,"b\n', ":3: a double quote opens a field and is not closed"),
        ("some.jsonl", f'{JSONL}{{"head":"a","rel', ":2: not JSON (Unterminated"),
        ("some.jsonl", f'{JSONL}{{"head":1}}', ":2: no 'relation'; found '{\"head\":1}', expected {"),
    ],
)
def test_bad_triples_are_named(written, name: str, lines: str, fault: str) -> None:
    header = "head,relation,tail\n" if name == "some.csv" else ""
    path = written(name, header + lines)
    with pytest.raises(MitigateError) as error:
        whole(triples.load(path))
    assert path + fault in str(error.value)
    assert whole(triples.load(path, "skip"))[0].height == 1


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("some.csv", None, "has no column head, relation, tail; its first line is subject | pred | object"),
        ("some.csv", PLACES | {"tail": 4}, "tail in column 4, separated by a comma; its first line has 3: subject"),
        ("some.csv", {"subject": "head"}, "must be {head: ..., relation: ..., tail: ...}, the names of the file's col"),
        ("some.csv", {"split": "part"}, "has no column head, relation, tail, part; its first line is subject | pred |"),
        ("some.csv", {"splits": "part"}, "from 1; optional: split, valid"),
        ("some.parquet", None, "is not a readable Parquet file"),
    ],
)
def test_columns_that_a_file_lacks_are_named(written, name: str, columns: dict | None, message: str) -> None:
    with pytest.raises(MitigateError) as error:
        triples.load(written(name, "subject,pred,object\nnurse,IsA,x\n"), columns=columns)
    assert message in str(error.value)


PHRASES = "relation,phrase,neutral_phrase\nMentors,is a great mentor of,is a mentor of\nworks with,works with,\n"
TRIPLES = (
    "head,relation,tail,split\nnurse,mentors,x,Train\nnurse,works_with,y,validation\nchef,IsA,z,valid\na,IsA,b,test\n"
)


def test_relations_with_two_wordings_or_one(written) -> None:
    assert read_relations(Path(written("phrases.csv", PHRASES))) == [
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
        ("relation,words\na,b\n", "has no column phrase; its first line is relation | words; give a table such as"),
        ("relation,phrase\n", "phrases.csv has no rows; give a table such as"),
        ("relation,phrase\na/b,helps\n", "phrases.csv:2: invalid name 'a/b'; allowed: letters, digits, dash"),
        (
            "relation,phrase\nworks with,a\nWorksWith,b\n",
            "phrases.csv:3: 'WorksWith' after 'works_with', the same relation: case, blanks",
        ),
    ],
)
def test_faults_of_a_file_of_relations_are_named(written, content: str, message: str) -> None:
    with pytest.raises(MitigateError) as error:
        read_relations(Path(written("phrases.csv", content)))
    assert message in str(error.value)


def test_a_split_column_is_used_unless_it_is_declined(written, tmp_path: Path) -> None:
    phrases = written("phrases.csv", PHRASES)
    expected = [("Mentors", "train"), ("works_with", "dev"), ("IsA", "dev"), ("IsA", "test")]
    loaded = triples.load(written("mine.csv", TRIPLES), relations=phrases)
    assert loaded.rows.select("relation", "split").rows() == expected
    assert [relation.name for relation in loaded.own_relations] == ["Mentors", "works_with"]
    pl.read_csv(tmp_path / "mine.csv").rename({"split": "part"}).write_parquet(tmp_path / "mine.parquet")
    rows = triples.load(str(tmp_path / "mine.parquet"), columns={"split": "part"}, relations=phrases).rows
    assert rows.select("relation", "split").rows() == expected
    unused = triples.load(str(tmp_path / "mine.csv"), columns={"split": None}, relations=phrases)
    assert set(unused.rows["split"]) == {"train"}
    path = written("mine.csv", TRIPLES.replace("valid\n", "later\n"))
    with pytest.raises(MitigateError) as error:
        _ = triples.load(path, relations=phrases).rows
    allowed = "train, training, trn, test, tst, dev, valid, validation, val, dev2;"
    assert f"1 bad line:\n  {path}:4: split 'later'; allowed: {allowed}" in str(error.value)
    assert "to ignore the column, set data.columns={split: null}" in str(error.value)


def test_labels_are_read_where_a_column_is_named(written) -> None:
    lines = "head,relation,tail,split,ok\na,IsA,b,train,1\na,IsA,c,train,0\na,IsA,d,test,0\na,IsA,e,test,1\n"
    loaded = triples.load(written("mine.csv", lines), columns={"valid": "ok"})
    assert loaded.rows.select("tail", "valid").rows() == [("b", True), ("d", False), ("e", True)]
    assert loaded.notices == ["1 row left out: labelled 0 (not valid), not used for training"]
    with pytest.raises(MitigateError, match=r"mine.csv:2: valid 'yes'; allowed: 1, 1.0, true, 0, 0.0, false"):
        _ = triples.load(written("mine.csv", lines.replace(",1\n", ",yes\n", 1)), columns={"valid": "ok"}).rows


def test_relations_without_a_phrase_are_listed_with_the_file_to_write(written) -> None:
    path = written("mine.csv", TRIPLES)
    with pytest.raises(MitigateError) as error:
        _ = triples.load(path).rows
    said = str(error.value)
    assert f"{path}: 2 triples have a relation without a phrase: mentors 1, works_with 1. Write a file such as" in said
    assert "\n  relation,phrase,neutral_phrase\n  mentors,...,...\n  works_with,...,...\n" in said
    assert "data.relations=FILE.csv; or leave such triples out with data.on_bad_line=skip" in said
    assert "Relations with a phrase: AtLocation, CapableOf, " in said
    with pytest.raises(MitigateError, match=r"mentors 1, CapabelOf 1 \(did you mean CapableOf\?\)\. Write"):
        _ = triples.load(written("misspelt.csv", TRIPLES.replace("works_with", "CapabelOf"))).rows
    kept = triples.load(path, "skip")
    assert kept.rows.height == 2
    assert kept.notices == ["2 triples left out, whose relation has no phrase: mentors 1, works_with 1"]
    with pytest.raises(MitigateError, match="has sentences, and this recipe needs triples; for sentences, set"):
        _ = sentences.load(written("mine.txt", "Nurses care.\n")).notices


def test_a_neutral_phrase_with_a_sentiment_is_announced() -> None:
    own = [Relation("mentors", "is a great mentor of", "is a mentor of"), Relation("helps", "helps", "helps")]
    (said,) = not_neutral(own, [Vader()])
    assert said.startswith("Neutral phrases that are not neutral: helps (“helps”, sentiment +1).")
    assert not_neutral(own[:1], [Vader()]) == not_neutral([], [Vader()]) == []


PUBLISHED: dict[str, Any] = {"head": "PersonX helps the lawyer", "relation": "xReact"}
PUBLISHED |= {"tails": ["proud", "none"], "generations": ["happy", "none", "kind", ""], "greedy": "happy"}
KOGITO = {"head": "the nurse buys ___", "relation": "xNeed", "tails": ["to find money"]}
FACT: dict[str, Any] = {"fact": {"head": "lawyer", "relation": "ObjectUse", "tails": ["x"]}, "prompt": "lawyer is for"}
FACT |= {"generations": ["lawyer is for a case"]}
ONE = {"head": "lawyer", "relation": "CapableOf", "tail": "win"}


def jsonl(path: Path, *records: Any) -> str:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in records))
    return str(path)


def test_generations_in_published_forms_are_read(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "some.jsonl", PUBLISHED, KOGITO, "", FACT, ONE, ONE | {"relation": "xMood"})
    resource = triples.generations(path)
    assert resource.rows.select("row", *TRIPLE).rows() == [
        (1, "personx helps the lawyer", "xReact", "happy"),
        (1, "personx helps the lawyer", "xReact", "kind"),
        (2, "the nurse buys ___", "xNeed", "to find money"),
        (4, "lawyer", "UsedFor", "a case"),
        (5, "lawyer", "CapableOf", "win"),
    ]
    assert resource.notices == [
        "1 blank line",
        "1 row left out: the generation is 'none'",
        "1 row left out: the generation is empty",
        "1 triple left out, whose relation has no phrase: xMood 1",
    ]
    assert triples.generations(path, top=1).rows["tail"].to_list() == ["happy", "to find money", "a case", "win"]
    several = {"head": "lawyer", "relation": "CapableOf", "generations": ["b", "a"]}
    tails = open_tails(Path(jsonl(tmp_path / "tails.jsonl", several)))
    assert isinstance(tails, GivenTails)
    (found,) = tails.search(tails.prompts(["lawyer"], ["<CapableOf>"]))
    assert [tails.decode(beam.tokens) for beam in found] == ["b", "a"]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"head": "a", "rela', "not JSON (Unterminated string starting at at column 15)"),
        ("[1]", "not an object"),
        ('{"head": "a", "generations": ["b"]}', "no 'relation'"),
        ('{"head": " ", "relation": "IsA", "tail": ["b", true]}', '["b", true] is not a text or a list of texts'),
    ],
)
def test_a_damaged_line_of_generations_is_named_with_its_content(tmp_path: Path, line: str, fault: str) -> None:
    path = jsonl(tmp_path / "some.jsonl", ONE, line)
    with pytest.raises(MitigateError) as raised:
        _ = triples.generations(path).rows
    message = str(raised.value)
    assert f"{path}:2: {fault}" in message
    assert f"found {line[:80]!r}, expected {{" in message
    assert "Correct the file, or leave such lines out with data.on_bad_line=skip." in message
    assert triples.generations(path, "skip").rows.height == 1


def test_generations_of_no_file_or_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="has no readable line; expected lines"):
        triples.generations(jsonl(tmp_path / "a.jsonl", "head,relation"))
    with pytest.raises(MitigateError, match="data.top=0 must be at least 1"):
        triples.generations(jsonl(tmp_path / "b.jsonl", ONE), top=0)
