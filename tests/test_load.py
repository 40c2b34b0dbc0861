"""Files as people have them: what each loader reads, what it counts, and what it says of a broken file; where those of
ConceptNet train100k are found; and files after public reports, whose inputs lie outside the repository."""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.files import write as write_file
from mitigate.load import corpus, graph, statements, table, triples
from mitigate.load.corpus import read_triples
from mitigate.load.ratings import read_answers
from mitigate.load.stream import Counts, Loaded, Streamed
from mitigate.load.targets import about_targets
from mitigate.load.triples import read_relations
from mitigate.score.labels import not_english
from mitigate.triples import TRIPLES
from mitigate.words.relations import Relation, comet_relations
from mitigate.words.targets import choose_targets, targets

NAMES = ["head", "relation", "tail"]
PLACES = {"head": 1, "relation": 2, "tail": 3}
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in content)
        packed = gzip.compress(content.encode()) if name.endswith(".gz") and isinstance(content, str) else content
        path.write_bytes(packed.encode() if isinstance(packed, str) else packed)
        return str(path)

    return write


def whole(resource: Loaded | Streamed) -> tuple[pl.DataFrame, list[str]]:
    """All rows, and what is said of the rest."""
    if isinstance(resource, Loaded):
        return resource.rows, resource.notices
    chunks = [chunk for _, _, chunk in resource.chunks() if chunk is not None]
    notices = resource.describe(sum((chunk.counts for chunk in chunks), Counts()))
    return pl.concat([chunk.rows for chunk in chunks]), notices


def assertion(relation: str, head: str, tail: str, facts: str = '{"dataset": "/d/x", "weight": 1.0}') -> str:
    return f"/a/[/r/{relation}/,{head}/,{tail}/]\t/r/{relation}\t{head}\t{tail}\t{facts}\n"


GOOD = assertion("CapableOf", "/c/en/african_american/n/wn", "/c/en/Win_case")
MIXED = (
    GOOD
    + assertion("IsA", "/c/fr/avocat", "/c/fr/personne")
    + assertion("Synonym", "/c/en/nurse", "/c/fr/infirmière")
    + assertion("ExternalURL", "/c/en/nurse", "http://x.org/nurse")
    + assertion("dbpedia/genre", "/c/en/nurse", "/c/en/y")
)
NEITHER = "1 row left out: neither end is English"
ONE_END = "{} left out: one end is not English (another language, or an address)"
NONE, UNKNOWN = "{} left out: the tail is 'none'", "1 triple left out, whose relation has no phrase: {} 1"
ATOMIC = "PersonX eats\txWant\tto sleep\nlawyer\tCapableOf\tnone\nlawyer\tObjectUse\tWin\nPersonX wins\txMood\tx\n"
OF_ATOMIC = [("personx eats", "xWant", "to sleep"), ("lawyer", "UsedFor", "win")]
NO_MOOD = [NONE.format("1 row"), UNKNOWN.format("xMood")]
WIDE: list[dict[str, Any]] = [
    {"event": "PersonX thanks the nurse", "xReact": ["glad", "none"], "xWant": [], "oReact": ["happy"], "split": "trn"},
    {"event": "PersonX rests", "xReact": ["none"], "xWant": ["to sleep"], "oReact": None, "split": "tst"},
]
WIDE_CSV = pl.DataFrame(
    [{name: json.dumps(v) if isinstance(v, list) else v for name, v in row.items()} for row in WIDE]
).write_csv()
THANKS = [("train", "personx thanks the nurse", *rest) for rest in (("xReact", "glad"), ("oReact", "happy"))]
OF_WIDE = [*THANKS, ("test", "personx rests", "xWant", "to sleep")]
EMPTY = ["2 rows left out: an empty list of tails: no annotator was asked, or none answered", NONE.format("2 rows")]
GENERICS = "SOURCE\tTERM\tQUANTIFIER\tGENERIC SENTENCE\tSCORE\nW\tNurse\t\tNurses care.\t1\n"
HUB = 'source,term,generic_sentence\nW,nurse,"Nurses care."\n'
WIKI = '[{"concept_name": "nurse", "sentence": "Nurses care.", "sentences_before": ["a lawyer"]}]'
KNOWLEDGE = '{"knowledge": {"sentence": "Nurses care.", "key_concept": "nurse", "context": "lawyer"}}\n'
CARE = [("nurse", "Nurses care.")]
PLAIN, OF_PLAIN = "\ufeffNurses care.\r\n\r\nLawyers win.", [(1, None, "Nurses care."), (3, None, "Lawyers win.")]
PREFIXED = "head\trelation\ttail\na\tat:xReact\tb\na\t/r/HasA\tc\na\txwant\td\n"
KGTK = "node1\trelation\tnode2\tnode1;label\tnode2;label\ne1\t/r/IsA\te2\t{}\tperson|human\ne1\tmw:Has\te2\ta\tb\n"
SEVERAL = "{} with several labels (a|b): a target among them is used, else the first"
TWO_NODES = [SEVERAL.format("2 nodes"), UNKNOWN.format("mw:Has")]
PUBLISHED: dict[str, Any] = {"head": "PersonX helps the lawyer", "relation": "xReact", "greedy": "happy"}
PUBLISHED |= {"tails": ["proud", "none"], "generations": ["happy", "none", "kind", ""]}
KOGITO = {"head": "the nurse buys ___", "relation": "xNeed", "tails": ["\n\nto find\nmoney"]}
FACT: dict[str, Any] = {"fact": {"head": "lawyer", "relation": "ObjectUse", "tails": ["x"]}, "prompt": "lawyer is for"}
FACT |= {"generations": ["lawyer is for a case"]}
ONE = {"head": "lawyer", "relation": "CapableOf", "tail": "win"}
GENERATED = [PUBLISHED, KOGITO, "", FACT, ONE, ONE | {"relation": "xMood"}, ONE | {"tail": None}, ONE | {"tail": []}]
OF_GENERATED = [(1, "personx helps the lawyer", "xReact", tail) for tail in ("happy", "kind")]
OF_GENERATED += [(2, "the nurse buys ___", "xNeed", "to find money"), (4, "lawyer", "UsedFor", "a case")]
OF_GENERATED += [(5, "lawyer", "CapableOf", "win")]
NOTHING = ["1 blank line", "2 rows left out: nothing was generated: null or an empty list"]
NOTHING += ["1 row left out: the generation is 'none'", "1 row left out: the generation is empty"]
NOTHING += [UNKNOWN.format("xMood")]
MINE = "Prosecuting_Attorney\tA lawyer  won.\nnurse\tNurses\u2028care.\nnurse\tNurses\u2028care.\n"
OF_MINE = [(1, "prosecuting attorney", "own", "A lawyer  won.")]
OF_MINE += [(row, "nurse", "profession", "Nurses\u2028care.") for row in (2, 3)]
HEADED, OF_HEADED = "Statement\tNote\tTarget\tMine\ncares\tx\tnurse\t-1\n", [(2, "nurse", "profession", "cares", -1)]
HARMS = "Court_house AtLocation italy\nitaly ExternalURL dbpedia.org\nitaly dbpedia x\n" + "nurse IsA person\n" * 2
OF_HARMS = [(1, "court house", "AtLocation", "italy"), *((row, "nurse", "IsA", "person") for row in (4, 5))]
UNSAID = "2 triples left out, whose relation has no phrase: ExternalURL 1, dbpedia 1"
STATEMENTS = "row target category statement"
S, T = statements, triples
DUMP, TRIPLE, TERM, ROW = corpus.dump, "head relation tail", "term statement", "row head relation tail"
OF_MIXED = [(1, "african american", "CapableOf", "win case", "n/wn", "")]
LEFT = [NEITHER, ONE_END.format("2 rows"), UNKNOWN.format("dbpedia")]
MINE_LABELLED = partial(S.load, label_column="mine")
BY_PLACE = partial(S.load, columns={"target": 1, "regard": 2, "statement": 3}, label_column="Regard")
READ: list[tuple[Any, str, Any, str, list[tuple], list[str]]] = [
    (DUMP, "some.csv", MIXED, f"row {TRIPLE} head_sense tail_sense", OF_MIXED, LEFT),
    (S.genericskb, "GenericsKB-Best.tsv", GENERICS, TERM, CARE, []),
    (S.genericskb, "hub.csv", HUB, TERM, CARE, []),
    (S.genericskb, "a.jsonl", KNOWLEDGE, TERM, CARE, []),
    (S.genericskb, "wiki.json", WIKI, TERM, CARE, []),
    (S.genericskb, "plain.txt", PLAIN, f"row {TERM}", OF_PLAIN, ["1 blank line"]),
    (S.sentences, "plain.txt", PLAIN, f"row {TERM}", OF_PLAIN, ["1 blank line"]),
    (S.sentences, "long.txt", f"A lone \r and {'care ' * 40_000}\n", "row", [(1,)], []),
    (S.sentences, "long.csv", f'text\n"{"care, " * 40_000}"\n', "row", [(2,)], []),
    (T.atomic, "train.tsv", ATOMIC, TRIPLE, OF_ATOMIC, NO_MOOD),
    (T.atomic, "train.tsv", f"head\trelation\ttail\n{ATOMIC}", TRIPLE, OF_ATOMIC, NO_MOOD),
    (T.atomic, "a.csv.gz", WIDE_CSV, f"split {TRIPLE}", OF_WIDE, EMPTY),
    (T.atomic, "a.jsonl", WIDE, f"split {TRIPLE}", OF_WIDE, EMPTY),
    (T.load, "prefixed.tsv", PREFIXED, "relation", [("xReact",), ("HasA",), ("xWant",)], []),
    (T.load, "cskg.tsv", KGTK.format("barrister|lawyer"), TRIPLE, [("lawyer", "IsA", "person")], TWO_NODES),
    (T.generations, "some.jsonl", GENERATED, ROW, OF_GENERATED, NOTHING),
    (partial(T.generations, top=1), "a.jsonl", [PUBLISHED, KOGITO], "tail", [("happy",), ("to find money",)], []),
    (S.load, "mine.tsv", MINE, STATEMENTS, OF_MINE, []),
    (MINE_LABELLED, "mine.tsv", HEADED, f"{STATEMENTS} mine", OF_HEADED, []),
    (BY_PLACE, "mine.tsv", "nurse\t-1\tcares\n", "regard", [(-1,)], []),
    (lambda path: S.harms_conceptnet(str(Path(path).parents[1])), S.CONCEPTNET, HARMS, ROW, OF_HARMS, [UNSAID]),
]


@pytest.mark.parametrize(("load", "name", "content", "columns", "rows", "notices"), READ)
def test_published_files_are_read_and_the_rest_is_counted(load, name, content, columns, rows, notices, write) -> None:
    found, said = whole(load(write(name, content)))
    assert found.select(columns.split()).rows() == rows
    assert said == notices


def test_triples_in_every_format(write: Write, tmp_path: Path) -> None:
    expected = [("nurse", "IsA", "a, b"), ("court house", "AtLocation", "italy")]
    write("comma.csv", 'subject,pred,object\nNurse,IsA,"a, b"\ncourt_house,at_location,italy\n')
    write("tabs.tsv.gz", "object\tsubject\tpred\na, b\tnurse\tIsA\nitaly\tcourt house\tAtLocation\n")
    frame = pl.DataFrame(expected, schema=NAMES, orient="row")
    photo = pl.struct(bytes=pl.lit(b"x"))
    frame.cast({"head": pl.Categorical}).with_columns(photo=photo).write_parquet(tmp_path / "some.parquet")
    frame.write_ndjson(tmp_path / "some.jsonl")
    frame.write_csv(tmp_path / "bare.tsv", separator="\t", include_header=False)
    named = {"head": "Subject", "relation": "pred", "tail": "object"}
    columns = {"comma.csv": named, "tabs.tsv.gz": named, "some.parquet": None, "some.jsonl": None, "bare.tsv": PLACES}
    for name, of_file in columns.items():
        rows, _ = whole(triples.load(str(tmp_path / name), columns=of_file))
        assert rows.select(NAMES).rows() == expected, name


QUOTED = [
    ('"nurse"', "nurse"),
    ('"win the ""big"" case"', 'win the "big" case'),
    ('so-called "holy"', 'so-called "holy"'),
    ('"Lawyer" is a word', '"Lawyer" is a word'),
    ('"not closed', '"not closed'),
    ('"a\nb"', "a\nb"),
    ('"x{0}y"', "x{0}y"),
]


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
@pytest.mark.parametrize(("written", "read"), QUOTED)
def test_quotes_mean_the_same_everywhere(written: str, read: str, separator: str, write: Write) -> None:
    written, read = written.format(separator), read.format(separator)

    def saved(*rows: tuple[str, ...]) -> str:
        content = "".join(separator.join(row) + "\n" for row in rows)
        return write("a.tsv" if separator == "\t" else "a.csv", content)

    found = triples.load(saved(("head", "relation", "tail"), ("x", "IsA", written), ("y", "IsA", "z"))).rows
    assert found["tail"].to_list() == [read.lower(), "z"]
    assert found["row"].to_list() == [2, 3 + read.count("\n")]
    given = statements.load(saved(("target", "statement", "mine"), ("nurse", written, "-1")), label_column="mine")
    assert given.rows.select("statement", "mine").rows() == [(read, -1)]
    texts = statements.load_texts(saved(("id", "text"), ("1", written)))
    assert texts.rows["statement"].to_list() == [read]
    (relation,) = read_relations(Path(saved(("relation", "phrase"), ("a", written))))
    assert relation.phrase == " ".join(read.split())


TABLE = 'id,post,note\n1,the nurse sings,a lawyer shouts\n2,"x, y",z\n'
RECORDS = [{"id": 1, "post": "the nurse sings", "note": "a lawyer shouts"}, {"id": 2, "post": "x, y", "note": "z"}]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)
TABLES = {
    "a.txt": LINES,  # by its content
    "a.json": json.dumps(RECORDS, indent=1),
    "a.csv": TABLE,
    "a.tsv": TABLE.replace(",", "\t").replace('"x\t y"', "x, y"),
    "nested.jsonl": "".join(json.dumps({"post": record}) + "\n" for record in RECORDS),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_asks_for_its_column(name: str, write: Write) -> None:
    path = write(name, TABLES[name])
    asked = r"has the columns .*post.*"
    refuses(MitigateError, asked + r"'data.columns=\{statement: NAME\}'", statements.sentences, path)
    refuses(MitigateError, asked + "name the column of the texts: recipe.column=NAME", statements.load_texts, path)
    refuses(MitigateError, "no column generic sentence.*set data=sentences", statements.genericskb, path)
    column = "post.post" if "nested" in name else "post"
    found = statements.sentences(path, columns={"statement": column})
    for rows in (whole(found)[0], statements.load_texts(path, column).rows):
        assert rows["statement"].to_list() == ["the nurse sings", "x, y"]


def train(path: str, on_bad_line: str = "error") -> Loaded:
    return read_triples(Path(path), "train", on_bad_line)


def dev(path: str, on_bad_line: str = "error") -> Loaded:
    return read_triples(Path(path), "dev", on_bad_line)


JSONL = '{"head":"a","relation":"IsA","tail":"b"}\n'
LABELLED, A_IS = "target\tstatement\tmine\nnurse\tcares\tPositive\n", '{"head": "a", "relation": "IsA"'
NO_LIST, ONE_LIST = "tail is not a text or a list of texts", 'event,xReact\na,"[""x""]"\n'
FAULTY: list[tuple[Any, str, str, str, str]] = [  # a good line, a bad one, and what is said of it
    (train, "m.tsv", "IsA\tcat\tanimal\n", "IsA\tdog\n", "2: 2 columns, expected 3 separated by a tab"),
    (train, "m.tsv", "IsA\tcat\tanimal\n", "Are\tdog\tanimal\n", "2: relation 'Are'; allowed: atlocation, "),
    (dev, "m.tsv", "IsA\tdog\tanimal\t1\n", "IsA\tdog\tpen\t0.7\n", "2: valid '0.7'; allowed: 1, 1.0, true, 0"),
    (S.load, "m.tsv", "nurse\tcares\n", "nurse\n", "2: 1 column, expected 2 separated by a tab"),
    (MINE_LABELLED, "m.tsv", LABELLED, "nurse\tcares\tgood\n", "3: mine 'good'; allowed: prejudice, neutral, "),
    (S.genericskb, "g.tsv", GENERICS, "W\tcat\n", "3: 2 columns, expected 5 separated by a tab"),
    (DUMP, "a.csv", GOOD, GOOD.replace('"weight": 1.0}', '"weight": 1.'), "2: '/a/[/r/CapableOf/"),
    (T.load, "t.jsonl", JSONL, '{"head":"a","rel\n', "2: not JSON (Unterminated string starting at at column 13)"),
    (T.load, "t.jsonl", JSONL, f"{A_IS}}}\n", "2: no 'tail'; found '{\"head\""),
    (T.load, "t.jsonl", JSONL, f'{A_IS}, "tail": null}}\n', "2: a blank field"),
    (T.generations, "g.jsonl", JSONL, f'{A_IS}, "tail": ["b", true]}}\n', f"2: {NO_LIST}"),
    (T.atomic, "a.csv", ONE_LIST, "b,[true]\n", "3: xReact is not a text or a list of texts"),
]


@pytest.mark.parametrize(("load", "name", "good", "bad", "fault"), FAULTY)
def test_a_bad_line_is_an_error_or_left_out(load, name: str, good: str, bad: str, fault: str, write: Write) -> None:
    path = write(name, good + bad)
    with pytest.raises(MitigateError) as error:
        whole(load(path))
    said = str(error.value)
    assert said.startswith(f"1 bad line:\n  {path}:{fault}")
    assert said.endswith("\nCorrect the file, or leave such lines out with data.on_bad_line=skip.")
    rows, notices = whole(load(path, on_bad_line="skip"))
    assert rows.height == 1
    assert notices[0].startswith(f"1 bad line left out: {path}:{fault}")


FIRST = "its first line has"
GZIPPED = gzip.compress(MIXED.encode() * 3000)
REFUSED: list[tuple[Any, str, Any, str]] = [
    (train, "m.tsv", "\n \n", "m.tsv is empty"),
    (train, "none/m.tsv", None, "no such file: .*m.tsv"),
    (S.load, "m.tsv", "target\tstatement\n", "has no statements; expected lines 'target<TAB>statement'"),
    (MINE_LABELLED, "m.tsv", "nurse\ta\n", "no column mine, target, statement; its columns: .* name the columns in"),
    (partial(S.load, columns=["who", "what"]), "m.tsv", "nurse\ta\n", "must be {target: ..., statement: ...}, the na"),
    (T.atomic, "a.csv", MIXED, f"tail in column 3, separated by a comma; {FIRST} 4 columns"),
    (DUMP, "a.csv", "IsA\ta\tb\n", "does not begin with an assertion of ConceptNet.*set data=triples data.path=FILE"),
    (DUMP, "a.csv", MIXED.encode("utf-16"), "a.csv:1: not UTF-8; the file seems to be in UTF-16. Convert"),
    (DUMP, "a.csv.gz", GZIPPED[:-200], r"is damaged or was cut short after line [0-9]+ \(Compressed"),
    (DUMP, "a.csv.gz", MIXED.encode(), "is damaged or was cut short after line 0 .Not a gzipped file"),
    (T.load, "a.csv", "subject,pred,object\na,b,c\n", "has no column head, relation, tail; its columns:"),
    (partial(T.load, columns={"x": "y"}), "a.csv", "a,b,c\n", "must be {head: ..., relation: ..., tail: ...}, the na"),
    (T.load, "a.parquet", "a,b,c\n", "is not a readable Parquet file"),
    (T.generations, "a.jsonl", "head,relation\n", "has no JSON objects with names; write one object a line, or"),
    (S.sentences, "a.json", '["a b", "c d"]', "a.json has no JSON objects with names"),
    (partial(T.generations, top=0), "a.jsonl", JSONL, "data.top=0 must be at least 1"),
    (lambda path: S.sentences(path).notices, "m.txt", "Nurses care.\n", "has sentences, and this recipe needs triples"),
    *(
        (load, "a.txt", content, "seems to be in UTF-16|is empty")
        for load in (S.sentences, T.load, S.genericskb, S.load_texts)
        for content in ("a".encode("utf-16"), b"\n \n")
    ),
]


@pytest.mark.parametrize(("load", "name", "content", "message"), REFUSED)
def test_a_file_of_something_else_is_refused(load, name: str, content: Any, message: str, write, tmp_path) -> None:
    path = str(tmp_path / name) if content is None else write(name, content)
    refuses(MitigateError, message, lambda: whole(load(path)))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_the_encoding_is_named_with_the_command_that_converts_also_where_lines_may_be_left_out(name, write) -> None:
    """Leaving such lines out would leave out those with accents."""
    content = "head,relation,tail\nnurse,IsA,person\ncafé owner,AtLocation,café\n".encode("cp1252")
    path = write(name, gzip.compress(content) if name.endswith("gz") else content)
    for on_bad_line in ("error", "skip"):
        with pytest.raises(MitigateError) as error:
            triples.load(path, on_bad_line)
        for part in (f"{name}:3: not UTF-8; the file seems to be in CP1252. Convert it: ", "> a-utf8.csv, look at"):
            assert part in str(error.value)
        assert " iconv -f CP1252 -t UTF-8 " in str(error.value)


def test_many_bad_lines_are_counted_and_repeats_leave_training_triples(write: Write) -> None:
    refuses(MitigateError, "8 bad lines:(.|\n)*and 3 more", train, write("a.tsv", "IsA\ta\tb\n" + "nothing\n" * 8))
    path = write("b.tsv", "\ufeffIsA\tdog\tanimal\t1\r\nIsA\tcat\tanimal\t1\r\nIsA\tdog\tanimal\t1\r\n")
    loaded = train(path)
    assert dict(loaded.rows.schema) == TRIPLES
    assert loaded.rows["row"].to_list() == [1, 2]
    assert loaded.notices == [f"{path}: 1 repeated triple left out"]
    assert dev(path).rows.height == 3


def test_files_cut_anywhere_say_the_same_and_finished_chunks_are_passed_over(write, monkeypatch) -> None:
    plain, packed = write("some.csv", MIXED * 40), write("some.csv.gz", MIXED * 40)
    rows, notices = whole(corpus.dump(plain))
    assert rows["row"].to_list() == list(range(1, 200, 5))
    for name in ("BLOCK", "PEEKED"):
        monkeypatch.setattr(table, name, 700)
    for path in (plain, packed):
        found, said = whole(corpus.dump(path))
        assert found.equals(rows)
        assert said == notices
    resource = corpus.dump(plain)
    every = list(resource.chunks())
    rest = list(resource.chunks(finished=lambda number: number < 2))
    assert len(every) > 4
    assert [chunk is None for _, _, chunk in rest] == [True, True] + [False] * (len(every) - 2)
    assert every[-1][1] == 1.0
    assert sum(chunk.height for _, _, chunk in every if chunk) == 200


def test_atomic_in_a_folder_has_splits(write: Write) -> None:
    folder = Path(write("train.tsv", "PersonX eats a ___\txwant\tto sleep\n")).parent
    write("atomic_dev.tsv", "PersonX wins\txwant\tnone\nPersonX wins\toreact\tsad\n")
    assert whole(triples.atomic(str(folder)))[0].select("split", "row", "head", "relation").rows() == [
        ("train", 1, "personx eats a ___", "xWant"),
        ("dev", 2, "personx wins", "oReact"),
    ]
    write("dev.tsv", "PersonX wins\toreact\tsad\n")
    refuses(MitigateError, "has two files of split dev, one of them dev.tsv", triples.atomic, str(folder))
    (folder / "train.tsv").unlink()
    (folder / "dev.tsv").unlink()
    refuses(MitigateError, "has no train.tsv; give a folder", triples.atomic, str(folder))


PHRASES = "relation,phrase,neutral_phrase\nMentors,is a great mentor of,is a mentor of\nworks with,works with,\n"
SPLIT = "head,relation,tail,split,ok\nnurse,mentors,x,Train,1\nnurse,works_with,y,validation,1\na,IsA,b,test,0\n"


def test_relations_of_ones_own_have_two_wordings_or_one(write: Write) -> None:
    assert read_relations(Path(write("phrases.csv", PHRASES))) == [
        Relation("Mentors", "is a great mentor of", "is a mentor of"),
        Relation("works_with", "works with", "works with"),
    ]
    own = write("own.csv", "relation,phrase\nObjectUse,may serve for\n")  # ATOMIC's name for UsedFor
    assert triples.generations(write("a.jsonl", [FACT]), relations=own).rows["relation"].to_list() == ["ObjectUse"]
    for content, message in (
        ("relation,words\na,b\n", "no column phrase; its columns: relation, words; give a table such as"),
        ("relation,phrase\na/b,helps\n", "phrases.csv:2: invalid name 'a/b' .allowed: letters, digits, dash"),
        ("relation,phrase\nworks with,a\nWorksWith,b\n", "'WorksWith' again: case"),
    ):
        refuses(MitigateError, message, read_relations, Path(write("phrases.csv", content)))


def test_splits_and_labels_are_read_where_there_are_columns_of_them(write: Write) -> None:
    path, phrases = write("mine.csv", SPLIT), write("phrases.csv", PHRASES)
    load = partial(triples.load, relations=phrases)
    expected = [("Mentors", "train", True), ("works_with", "dev", True), ("IsA", "test", True)]
    loaded = load(path)
    assert loaded.rows.select("relation", "split", "valid").rows() == expected
    assert [relation.name for relation in loaded.own_relations] == ["Mentors", "works_with"]
    assert set(load(path, columns={"split": None}).rows["split"]) == {"train"}
    booleans = write("mine.jsonl", pl.read_csv(path).with_columns(pl.col("ok") == 1).write_ndjson())
    for file in (path, booleans):
        assert load(file, columns={"valid": "ok"}).rows["valid"].to_list() == [True, True, False]
    meanings, columns = {True: "neutral", False: "prejudice"}, {"target": "head", "statement": "tail"}
    assert S.load(booleans, columns=columns, label_column="ok", labels=meanings).rows["ok"].to_list() == [0, 0, -1]
    unsplit = load(path, columns={"valid": "ok", "split": None})
    assert unsplit.rows.height == 2
    assert unsplit.notices == ["1 row left out: labelled 0 (not valid), not used for training"]
    for change, columns, message in (
        (("test", "later"), None, "mine.csv:4: split 'later'; allowed: train, .*set data.columns=.split: null."),
        ((",0\n", ",yes\n"), {"valid": "ok"}, "mine.csv:4: valid 'yes'; allowed: 1, 1.0, true, 0, 0.0, false"),
    ):
        with pytest.raises(MitigateError, match=message):
            _ = load(write("mine.csv", SPLIT.replace(*change)), columns=columns).rows


def test_relations_without_a_phrase_are_listed_with_the_file_to_write(write: Write) -> None:
    path = write("mine.csv", SPLIT)
    with pytest.raises(MitigateError) as error:
        _ = triples.load(path).rows
    for part in (
        f"{path}: 2 triples left out, whose relation has no phrase: mentors 1, works_with 1. Write a file such as",
        "\n  relation,phrase,neutral_phrase\n  mentors,...,...\n  works_with,...,...\n",
        "data.relations=FILE.csv; or leave such triples out with data.on_bad_line=skip",
        "Relations with a phrase: AtLocation, CapableOf, ",
    ):
        assert part in str(error.value)
    kept = triples.load(path, "skip")
    assert kept.notices == ["2 triples left out, whose relation has no phrase: mentors 1, works_with 1"]


THREE = "target\tstatement\tmine\nnurse\tlies\t{}\nnurse\twalks\t{}\nnurse\twins\t{}\n"


@pytest.mark.parametrize(
    ("values", "labels", "example"),
    [
        ((0, 1, 2), None, "data.labels={0: prejudice, 1: neutral, 2: favouritism}"),
        ((0, 1, 0), None, "data.labels={0: neutral, 1: prejudice} where 1 marks harm, {0: prejudice, 1: favouritism}"),
        ((0, 1, 2), {0: "prejudice", 1: "neutral", 2: "favouritism"}, None),
        (("Negative", "NEUTRAL", "positive"), None, None),
        (("Toxic", "b", "c"), {"toxic": "Negative", "b": "other", "c": "positive"}, None),
    ],
)
def test_labels_are_read_by_their_meaning_or_refused_with_the_mapping_to_write(values, labels, example, write) -> None:
    path = write("mine.tsv", THREE.format(*values))
    load = partial(statements.load, path, label_column="mine")
    if example is None:
        assert load(labels=labels).rows["mine"].replace(2, 0).to_list() == [-1, 0, 1]
        refuses(MitigateError, "unknown data.labels 'bad'; allowed: prejudice, neut", load, labels={1: "bad"})
        return
    with pytest.raises(MitigateError) as error:
        load()
    assert f"the labels are {', '.join(map(str, sorted(set(values))))}, which does not say" in str(error.value)
    assert example in str(error.value)


def test_released_files_are_found_and_their_place_is_named(write, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("MITIGATE_DATA", raising=False)
    refuses(MitigateError, "data.root is not set; set data.root, or the variable MITIGATE_DATA, to", S.harms_genericskb)
    missing = f"no such file or folder: {tmp_path}/harms/genericskb_target_sentences.tsv; set"
    refuses(MitigateError, missing, S.harms_genericskb, str(tmp_path))
    write(S.GENERICSKB, "Italy\titaly is warm\n")
    write(S.REGARD, "african_american\t-1\tthis person is late\nnurse\t2\tthis person is a person\n")
    monkeypatch.setenv("MITIGATE_DATA", str(tmp_path))
    assert S.harms_genericskb().rows["target"].to_list() == ["italy"]
    regard = S.harms_conceptnet_regard(str(tmp_path)).rows
    assert regard.select("target", "regard").rows() == [("african american", -1), ("nurse", 2)]


def test_the_sample_has_its_splits_relations_and_targets() -> None:
    loaded = corpus.sample()
    rows = loaded.rows
    assert loaded.notices == []
    assert Counter(rows["split"]) == {"train": 5838, "dev": 300, "dev2": 300, "test": 600}
    assert rows.select("relation", "head", "tail").is_unique().all()
    in_training = rows.filter(split="train")
    assert set(in_training["relation"]) == {relation.name for relation in comet_relations()}
    assert len({word for word in [*in_training["head"], *in_training["tail"]] if word in targets()}) == 144
    valid = rows.group_by("split").agg(pl.col("valid").mean())  # half of dev and test is corrupted
    assert dict(valid.iter_rows()) == {"train": 1.0, "dev": 0.5, "dev2": 0.5, "test": 0.5}


ENGLISH = ["Nurses die young.", "She walks to work.", "lawyer lies", "a café", "No, los angeles is in the west."]
OTHER = ["Die Krankenschwester ist dumm und faul.", "L'avocat est un voleur et un menteur.", "护士很懒。"]


def test_texts_in_other_languages_are_announced() -> None:
    assert not_english(pl.Series(ENGLISH)) == not_english(pl.Series([], dtype=pl.String)) == []
    assert not_english(pl.Series(ENGLISH * 20 + OTHER)) == []  # a few
    (said,) = not_english(pl.Series(ENGLISH + OTHER))
    expected = "3 of the first 8 texts do not look English, such as 'Die Krankenschwester ist dumm und faul.'"
    assert said.startswith(expected)


FILES = {
    "train100k.txt": "IsA\tdog\tanimal\t2.58\nUsedFor\tpen\twrite\t1\n",
    "dev1.txt": "IsA\tcat\tanimal\t1\nIsA\tcat\tpen\t0\n",
    "dev2.txt": "IsA\tcow\tanimal\t1\n",
    "test.txt": "IsA\tpig\tanimal\t1\n",
}


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_text(content)
    return folder


def test_the_folder_itself_or_the_one_in_it(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "conceptnet100k")
    for root in (tmp_path / "root", tmp_path / "root" / "conceptnet100k"):
        triples = corpus.load(str(root)).rows
        assert triples["split"].to_list() == ["train", "train", "dev", "dev", "dev2", "test"]
        assert triples["valid"].to_list() == [True, True, True, False, True, True]


def test_folders_are_found_in_their_order_and_would_be_downloaded(tmp_path, monkeypatch):
    fill(tmp_path / "conceptnet100k")
    named, variable, cache = (fill(tmp_path / name) for name in ("named", "variable", "cache/conceptnet100k"))
    assert corpus.find(None, str(tmp_path / "cache")) == cache
    monkeypatch.setenv("MITIGATE_DATA", str(variable))
    assert corpus.find(None, str(tmp_path / "cache")) == variable
    assert corpus.find(str(named), str(tmp_path / "cache")) == named


def test_a_folder_that_is_named_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "cache" / "conceptnet100k")
    refuses(MitigateError, "absent: train100k.txt is neither", corpus.find, f"{tmp_path}/absent", f"{tmp_path}/cache")

    def unreachable(*_: object, **__: object) -> str:
        raise ConnectionError("no route")

    monkeypatch.setattr("pooch.retrieve", unreachable)
    with pytest.raises(MitigateError) as error:
        corpus.load(cache=str(tmp_path))
    for part in ("train100k.txt is not on this machine", "https://ttic", "SHA-256", "conceptnet100k", "data.root=DIR"):
        assert part in str(error.value)


def retrieve(url: str, known_hash: None, name: str, folder: Path, progressbar: bool) -> str:
    """Stands in for the download."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(FILES[name.removesuffix(".gz")].encode()))
    return str(path)


def test_a_download_is_checked_by_its_triples_and_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pooch.retrieve", lambda *_, **__: write_file(tmp_path / "conceptnet100k/page.gz", "<html>"))
    refuses(MitigateError, "page.gz is damaged .*; get it again", corpus.load, cache=str(tmp_path))
    monkeypatch.setattr("pooch.retrieve", retrieve)
    refuses(MitigateError, "has the wrong content: SHA-256 .*run the command again", corpus.load, cache=str(tmp_path))
    assert list((tmp_path / "conceptnet100k").iterdir()) == []
    triples = {name: read_triples(fill(tmp_path / "a") / name, split).rows for name, split in corpus.SPLITS.items()}
    sums = {name: corpus.sha256_of_triples(rows) for name, rows in triples.items()}
    monkeypatch.setattr(corpus, "SHA256_OF_TRIPLES", sums)
    assert corpus.load(cache=str(tmp_path)).rows.height == 6
    assert sorted(path.name for path in (tmp_path / "conceptnet100k").iterdir()) == sorted(FILES)


def test_the_real_files_have_the_known_content(real_data: Path) -> None:
    triples = corpus.load(str(real_data)).rows
    for name, split in corpus.SPLITS.items():
        found = corpus.sha256_of_triples(triples.filter(split=split))
        assert found == corpus.SHA256_OF_TRIPLES[name]


# Files after public reports

CASES = Path(__file__).parents[2] / "shared" / "cases"
with_cases = pytest.mark.skipif(not CASES.is_dir(), reason="needs ../shared/cases")
LENIENT = partial(triples.load, on_bad_line="skip")


def senses(path: str) -> list[tuple[str, str]]:
    rows = whole(corpus.dump(path))[0]
    return about_targets(rows, choose_targets("all"), "exact").select("target", "tail").rows()


@with_cases
@pytest.mark.parametrize(
    ("name", "load", "columns", "expected"),
    [
        ("kogito_custom.jsonl", triples.generations, TRIPLE, ("teacher", "CapableOf", "explain rules")),
        ("genericskb_lines.jsonl", statements.genericskb, "statement", ("Nurses work in hospitals.",)),
        ("genericskb_hub.tsv", statements.genericskb, "term", ("lawyer",)),
        ("quoted.tsv", triples.load, TRIPLE, ("lawyer", "CapableOf", 'win the "big" case')),
        ("quoted_texts.tsv", statements.load_texts, "statement", ('He said "no" to the nurse',)),
        ("cskg.tsv", LENIENT, TRIPLE, ("lawyer", "CapableOf", "win case")),
        ("array.json", triples.load, TRIPLE, ("lawyer", "CapableOf", "argue")),
        ("bad_types.jsonl", LENIENT, TRIPLE, ("nurse", "CapableOf", "help")),
        ("atomic2019.csv", triples.atomic, "split", ("train",)),
    ],
)
def test_a_file_is_read(name: str, load: Callable[[str], Any], columns: str, expected: tuple) -> None:
    assert expected in whole(load(str(CASES / name)))[0].select(columns.split()).rows()


@with_cases
def test_other_files_are_read() -> None:
    assert senses(str(CASES / "turn4/senses.csv")) == [("china", "fragile"), ("turkey", "middle east")]
    assert len(graph.load(str(CASES / "small_graph.tsv")).train) > 50


REFUSED_CASES: list[tuple[str, Callable[[str], Any], str]] = [
    ("generations_open.jsonl", statements.sentences, "name the column of the texts: 'data.columns={statement: NAME}'"),
    ("bad_types.jsonl", lambda path: triples.load(path).rows, ":4: not JSON(.|\n)*:5: not an object(.|\n)*:6: a blank"),
    ("turn4/class_labels.csv", partial(statements.load, label_column="label"), "data.labels={0: prejudice, 1: neutral"),
    ("turn4/cp1252.csv", triples.load, "the file seems to be in CP1252. Convert it: .* iconv -f CP1252 -t UTF-8"),
    ("openke", graph.load, "."),  # not read, in a sentence
    ("turn4/labelstudio.csv", lambda path: read_answers([Path(path)], ["101", "102", "103"], 1), ":5: no label"),
]


@with_cases
@pytest.mark.parametrize(("name", "read", "message"), REFUSED_CASES)
def test_a_file_is_refused_with_what_to_do(name: str, read: Callable[[str], Any], message: str) -> None:
    refuses(MitigateError, message.replace("{", r"\{"), read, str(CASES / name))
