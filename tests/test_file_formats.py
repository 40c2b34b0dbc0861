"""Files as people have them: a table is never read as lines, and published formats are read as published."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load import atomic, graph, sentences, triples
from mitigate.load.sbic import read_annotations
from mitigate.load.sentences import load_texts as texts
from mitigate.load.stream import Counts, Streamed
from mitigate.load.table import layout_of

RECORDS = [{"id": 1, "post": "the nurse sings", "note": "a lawyer shouts"}, {"id": 2, "post": "x, y", "note": "z"}]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)
TABLE = 'id,post,note\n1,the nurse sings,a lawyer shouts\n2,"x, y",z\n'
TABLES = {
    "a.txt": LINES,  # by its content
    "ends.txt": LINES.replace("\n", "\r\n"),
    "a.json": json.dumps(RECORDS, indent=1),
    "a.csv": TABLE,
    "table.txt": TABLE,
    "a.tsv": TABLE.replace(",", "\t").replace('"x\t y"', "x, y"),
    "semicolon.csv": TABLE.replace(",", ";").replace('"x; y"', "x, y"),
    "nested.jsonl": "".join(json.dumps({"post": record}) + "\n" for record in RECORDS),
}


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def whole(resource: Streamed) -> tuple[pl.DataFrame, list[str]]:
    chunks = [chunk for _, _, chunk in resource.chunks() if chunk is not None]
    notices = resource.describe(sum((chunk.counts for chunk in chunks), Counts()))
    return pl.concat([chunk.rows for chunk in chunks]), notices


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_asks_for_its_column(name: str, packed: bool, tmp_path: Path) -> None:
    content = gzip.compress(TABLES[name].encode()) if packed else TABLES[name]
    path = write(tmp_path / (f"{name}.gz" if packed else name), content)
    with pytest.raises(MitigateError, match=r"with the columns .*post.*'data.columns=\{statement: NAME\}'"):
        sentences.load(path)
    with pytest.raises(MitigateError, match=r"with the columns .*; name the column of the texts: recipe.column=NAME"):
        texts(path)
    with pytest.raises(MitigateError, match="has no column generic sentence.*For another table, set data=sentences"):
        sentences.genericskb(path)
    column = "post.post" if "nested" in name else "post"
    for rows in (whole(sentences.load(path, columns={"statement": column}))[0], texts(path, column).rows):
        assert rows["statement"].to_list() == ["the nurse sings", "x, y"]


def test_characters_that_nobody_sees_hide_no_target(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "head,relation,tail\n\u200blaw\u00adyer,IsA,judge\nnurse,IsA,person\n")
    rows, notices = whole(triples.load(path))
    assert rows["head"].to_list() == ["lawyer", "nurse"]
    assert notices == []


@pytest.mark.parametrize(
    "content",
    [
        "Nurses, who care, work.\nLawyers, who argue, win.\n",
        '"Nurses" is a word.\nHe said "no".\n',
        "[Verse] the nurse sings\n{smiles} the lawyer\n",
        "one\ttab in a line\nnone here\nnone there\n",
    ],
)
def test_plain_lines_stay_lines(content: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", content)
    assert layout_of(Path(path)).form == "lines"
    assert texts(path).rows["statement"].to_list() == content.splitlines()


@pytest.mark.parametrize(
    "content",
    [gzip.compress(gzip.compress(b"a" * 99, mtime=0), mtime=0), "a".encode("utf-16"), b"\n \n"],
)
def test_a_file_that_is_no_text_is_named(content: bytes, tmp_path: Path) -> None:
    for load in (sentences.load, triples.load, sentences.genericskb, texts):
        with pytest.raises(MitigateError, match="neither a text in UTF-8|seems to be in UTF-16|is empty"):
            load(write(tmp_path / "a.txt", content))


GENERICS = [
    ("a.tsv", "SOURCE\tTERM\tQUANTIFIER\tGENERIC SENTENCE\tSCORE\nW\tNurse\t\tNurses care.\t1\n"),
    ("hub.csv", 'source,term,generic_sentence\nW,nurse,"Nurses care."\n'),
    ("a.jsonl", '{"knowledge": {"sentence": "Nurses care.", "key_concept": "nurse", "context": "lawyer"}}\n'),
    ("wiki.json", '[{"concept_name": "nurse", "sentence": "Nurses care.", "sentences_before": ["a lawyer"]}]'),
    ("quote.tsv", 'term\tgeneric_sentence\nnurse\t"Nurses care."\n'),
]


@pytest.mark.parametrize(("name", "content"), GENERICS)
def test_genericskb_as_published(name: str, content: str, tmp_path: Path) -> None:
    rows, _ = whole(sentences.genericskb(write(tmp_path / name, content)))
    assert rows.select("term", "statement").rows() == [("nurse", "Nurses care.")]


WIDE = {
    "event": "PersonX thanks the nurse",
    "xReact": ["glad", "none"],
    "xWant": [],
    "oReact": ["happy"],
    "split": "trn",
}
OTHER = {"event": "PersonX rests", "xReact": ["none"], "xWant": ["to sleep"], "oReact": None, "split": "tst"}


def wide_csv() -> str:
    rows = [{name: json.dumps(v) if isinstance(v, list) else v for name, v in row.items()} for row in (WIDE, OTHER)]
    return pl.DataFrame(rows).write_csv()


@pytest.mark.parametrize(
    "made",
    [
        lambda folder: write(folder / "a.csv.gz", gzip.compress(wide_csv().encode())),
        lambda folder: write(folder / "a.jsonl", f"{json.dumps(WIDE)}\n{json.dumps(OTHER)}\n"),
    ],
)
def test_atomic_2019_as_its_authors_publish_it(made: Callable[[Path], str], tmp_path: Path) -> None:
    rows, notices = whole(atomic.load(made(tmp_path)))
    assert rows.select("split", "head", "relation", "tail").rows() == [
        ("train", "personx thanks the nurse", "xReact", "glad"),
        ("train", "personx thanks the nurse", "oReact", "happy"),
        ("test", "personx rests", "xWant", "to sleep"),
    ]
    assert notices == [
        "2 rows left out: an empty list of tails: no annotator was asked, or none answered",
        "2 rows left out: the tail is 'none'",
    ]


def test_a_cell_that_is_no_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match=r"a.csv:3: xReact '\[true\]' is not a list of texts"):
        whole(atomic.load(write(tmp_path / "a.csv", 'event,xReact\na,[]\nb,[true]\nc,["x"]\n')))


KOGITO: list[dict[str, Any]] = [
    {"head": "the nurse errs", "relation": "xWant2", "tails": ["\n\nto mend\nit"]},
    {"head": "nurse", "relation": "HasSubEvent", "tails": []},
    {"head": "nurse", "relation": "CapableOf", "tails": None},
    {"head": "nurse", "relation": "CapableOf", "tails": ["help", "help", None, "none"]},
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_kogito_with_relations_of_ones_own(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pl.DataFrame(KOGITO).write_parquet(path)
    else:
        write(path, json.dumps(KOGITO) if name == "a.json" else "".join(json.dumps(one) + "\n" for one in KOGITO))
    phrases = write(tmp_path / "phrases.csv", "relation,phrase\nxWant2,now wants\n")
    rows, notices = whole(triples.generations(str(path), relations=phrases))
    assert rows.select("relation", "tail").rows() == [("xWant2", "to mend it"), *[("CapableOf", "help")] * 2]
    assert notices[0] == "2 rows left out: nothing was generated: null or an empty list"
    assert whole(triples.generations(str(path)))[1][-1] == "1 triple left out, whose relation has no phrase: xWant2 1"


KGTK = "node1\trelation\tnode2\tnode1;label\tnode2;label\n"


@pytest.mark.parametrize(
    ("labels", "head"),
    [
        ("barrister|lawyer", "lawyer"),
        ("'lawyer'@en", "lawyer"),
        (r"a\|b|c", "a|b"),
        ("person x|somebody", "person x"),
    ],
)
def test_cskg_with_several_labels_a_node(labels: str, head: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", f"{KGTK}e1\t/r/IsA\te2\t{labels}\tperson|human\ne1\tmw:Has\te2\ta\tb\n")
    rows, notices = whole(triples.load(path))
    assert rows.select("head", "relation", "tail").rows() == [(head, "IsA", "person")]
    assert notices[-1] == "1 triple left out, whose relation has no phrase: mw:Has 1"


def test_prefixed_relations_of_atomic_are_known(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "head\trelation\ttail\na\tat:xReact\tb\na\t/r/HasA\tc\na\txwant\td\n")
    assert whole(triples.load(path))[0]["relation"].to_list() == ["xReact", "HasA", "xWant"]


NAMES = "3\nanna\t0\nbert w\t1\nnurse\t2\n"
OPENKE = {
    "entity2id.txt": NAMES,
    "relation2id.txt": "2\nknows\t0\njob\t1\n",
    "train2id.txt": "2\n0 1 0\n0 2 1\n",
    "valid2id.txt": "1\n1 2 1\n",
    "test2id.txt": "1\n1 0 0\n",
}


def test_openke_is_read_as_head_tail_relation(tmp_path: Path) -> None:
    for name, content in OPENKE.items():
        write(tmp_path / name, content)
    found = graph.load(str(tmp_path))
    triples = [(found.entities[h], found.relations[r], found.entities[t]) for h, r, t in found.train]
    assert triples == [("anna", "knows", "bert w"), ("anna", "job", "nurse")]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("train2id.txt", "3\n0 1 0\n0 2 1\n", "first line is '3', expected 2, the number"),
        ("train2id.txt", "2\n0 1 0\n0 9 1\n", "train2id.txt:3: '0 9 1', expected three ids of"),
        ("entity2id.txt", "2\nanna\t0\nanna\t1\n", "gives two ids the same name"),
    ],
)
def test_faults_of_openke_are_named(name: str, content: str, told: str, tmp_path: Path) -> None:
    for other, text in OPENKE.items():
        write(tmp_path / other, content if other == name else text)
    with pytest.raises(MitigateError, match=told):
        graph.load(str(tmp_path))
    with pytest.raises(MitigateError, match="is one file of an OpenKE folder; set data.path="):
        graph.load(str(tmp_path / "train2id.txt"))


SBIC = {"post": "a post", "whoTarget": "1.0", "intentYN": "1.0", "sexYN": "0.0", "offensiveYN": "0.5"}
SBIC |= {"speakerMinorityYN": "", "WorkerId": "w", "HITId": "h", "targetMinority": "nurses", "dataSource": "t/x"}
SBIC |= {"targetCategory": "profession", "targetStereotype": "are late"}


@pytest.mark.parametrize(("place", "part"), [("default/train/0000.parquet", "train"), ("data/validation.jsonl", "dev")])
def test_sbic_of_the_hub(place: str, part: str, tmp_path: Path) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    frame = pl.DataFrame([SBIC])
    (frame.write_parquet if path.suffix == ".parquet" else frame.write_ndjson)(path)
    found = read_annotations(tmp_path).row(0, named=True)
    assert [found[name] for name in ("part", "group", "implied")] == [part, "nurses", "are late"]
