"""Every reader of a user's files, and damaged content for it: whatever a file holds, a reader returns or raises
MitigateError."""

import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load import conceptnet, graph, statements, triples
from mitigate.load.conceptnet import read_triples
from mitigate.load.ratings import read_answers, read_beside
from mitigate.load.sbic import read_annotations, read_implied
from mitigate.load.stream import Counts, Streamed
from mitigate.load.triples import read_relations
from mitigate.probe.tails import open_tails
from mitigate.score.keyword import read_dic
from mitigate.words.outside_text import escaped
from mitigate.words.targets import list_of

ASSERTION = '/a/[/r/IsA/,/c/en/nurse/,/c/en/person/]\t/r/IsA\t/c/en/nurse\t/c/en/person\t{"weight": 1.0}\n'
GENERATIONS = '{"head": "PersonX works", "relation": "xAttr", "generations": ["kind", "none"]}\n'
SBIC = (
    "whoTarget,intentYN,sexYN,offensiveYN,speakerMinorityYN,WorkerId,HITId,post,targetMinority,targetCategory,"
    "targetStereotype,dataSource\n"
    ',1.0,0.0,0.5,,w,h,"a post, of two parts",nurses,profession,nurses are lazy,t/x\n'
)
FRAMES = 'number,post,targetStereotype,targetMinority\n0,a,"[""elves are lazy""]","[""elves""]"\n'


class Reader(NamedTuple):
    """A function that reads a file of some name."""

    file: str
    content: str  # of a good file
    read: Callable[[Path], Any]


def whole(load: Callable[..., Streamed]) -> Callable[[Path], Any]:
    """Reads all that a loader of streamed files finds."""

    def read(path: Path) -> pl.DataFrame:
        resource = load(str(path), on_bad_line="skip")
        chunks = [chunk for _, _, chunk in resource.chunks() if chunk is not None]
        resource.describe(sum((chunk.counts for chunk in chunks), Counts()))
        return pl.concat([chunk.rows for chunk in chunks])

    return read


def skipping(load: Callable[..., Any]) -> Callable[[Path], Any]:
    return lambda path: load(str(path), on_bad_line="skip")


READERS = {
    "triples.csv": Reader("t.csv", 'head,relation,tail\nnurse,IsA,"a, person"\nlawyer,IsA,x\n', whole(triples.load)),
    "triples.tsv": Reader(
        "t.tsv", "head\trelation\ttail\tsplit\tvalid\nnurse\tIsA\tperson\tdev\t1\n", whole(triples.load)
    ),
    "triples.jsonl": Reader("t.jsonl", '{"head": "nurse", "relation": "IsA", "tail": "x"}\n', whole(triples.load)),
    "sentences": Reader("s.txt", "the nurse is kind\nthe lawyer sings\n", whole(statements.sentences)),
    "assertions": Reader("a.csv", ASSERTION * 2, whole(conceptnet.dump)),
    "edges": Reader("e.tsv", "/c/en/nurse\tIsA\t/c/en/person\nlawyer\tIsA\tperson\n", whole(conceptnet.dump)),
    "genericskb": Reader(
        "g.tsv", "SOURCE\tTERM\tGENERIC SENTENCE\nx\tnurse\tNurses are kind.\n", whole(statements.genericskb)
    ),
    "atomic": Reader("a.tsv", "PersonX goes home\txAttr\ttired\nPersonX eats\txWant\tnone\n", whole(triples.atomic)),
    "generations": Reader("g.jsonl", GENERATIONS * 2, whole(triples.generations)),
    "statements": Reader("s.tsv", "target\tstatement\nnurse\tthe nurse is kind\n", skipping(statements.load)),
    "stories": Reader("s.txt", "the nurse was|||the nurse was kind. She won.\n", skipping(statements.stories)),
    "train100k": Reader(
        "t.txt", "IsA\tnurse\tperson\t1\n", lambda path: read_triples(path, "dev", labelled=True, on_bad_line="skip")
    ),
    "harms": Reader("h.txt", "nurse IsA a_person\n", lambda path: statements.harms_triples(path, "skip")),
    "graph": Reader("g.tsv", "".join(f"p{n % 12}\tr\tq{n % 7}\n" for n in range(84)), skipping(graph.load)),
    "relations": Reader("r.csv", "relation,phrase,neutral_phrase\nmentors,is a mentor of,\n", read_relations),
    "targets": Reader(
        "t.csv", "target,category,forms,cluster,kind\ndeaf person,own,deaf people|the deaf,,people\n", list_of
    ),
    "tails.tsv": Reader("t.tsv", "head\trelation\ttail\tscore\nnurse\tIsA\tperson\t-0.5\n", open_tails),
    "tails.jsonl": Reader("t.jsonl", '{"head": "nurse", "relation": "IsA", "generations": ["x"]}\n', open_tails),
    "texts.txt": Reader("x.txt", "the nurse is kind\n", lambda path: statements.sentences(str(path))),
    "texts.csv": Reader("x.csv", 'text\n"the nurse, kind"\n', lambda path: statements.sentences(str(path))),
    "texts.jsonl": Reader("x.jsonl", '{"text": "the nurse is kind"}\n', lambda path: statements.sentences(str(path))),
    "answers": Reader(
        "a.csv", "rater,item,label,quality\nr1,i1,1,yes\n", lambda path: read_answers([path], ["i1", "i2"], 2, "skip")
    ),
    "ratings": Reader("r.txt", "1\n2\n3\n", lambda path: read_beside(_beside(path, "a\n" * 3), path)),
    "dictionary": Reader("d.dic", "%\n31\tposemo\n32\tnegemo\n%\nhapp*\t31\nsad\t32\n", read_dic),
    "sbic": Reader("SBIC.v2.trn.csv", SBIC, lambda path: read_annotations(path.parent)),
    "frames": Reader("frames_test_posts.csv", FRAMES, lambda path: read_implied(path.parent)),
}


def _beside(path: Path, content: str) -> Path:
    other = path.with_name("sentences.txt")
    other.write_text(content)
    return other


PIECES = [
    *(b"\t", b"\n", b"\r\n", b"\r", b"\0", b",", b'"', b'""', b"|", b"|||", b" ", b"\\", b"%", b"*", b"[", b"{", b"}"),
    *("\u2028".encode(), b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xc3", "é".encode(), "\u202e".encode(), b"\x1b[31m"),
    *(b"\\ud83d", b"\\u0000", b"NaN", b"Infinity", b"-1e999", b"1" * 5000, b"null", b"true", b"[]", b"{}", b'{"a":'),
    *(b"__", b"/c/en/", b"/r/", b"none", b"None", b"IsA", b"<script>", b"${oc.env:HOME}", b"target", b"x" * 100_001),
]


def spoilt(content: bytes, draw: random.Random) -> bytes:
    """The content with one to six changes: pieces put in, bytes taken out, changed or repeated, or cut off."""
    for _ in range(draw.randint(1, 6)):
        at, to = sorted(draw.randint(0, len(content)) for _ in range(2))
        kind = draw.randrange(6)
        if kind <= 2:
            content = content[:at] + draw.choice(PIECES) + content[(at if kind else to) :]
        elif kind == 3:
            content = content[:at] + content[to:]
        elif kind == 4:
            content = content[:to] + content[at:to] * draw.randint(1, 3) + content[to:]
        else:
            content = content[:at] + draw.randbytes(draw.randint(1, 4)) + content[at:]
    return content


def fault(reader: Reader, content: bytes, folder: Path) -> str | None:
    """What is wrong with a reader's answer to a file of this content; None where it returns or says what it is."""
    path = folder / reader.file
    path.write_bytes(content)
    try:
        reader.read(path)
    except MitigateError as error:
        escaped(str(error)).encode()  # can be shown on any terminal
    except Exception:
        return traceback.format_exc(limit=-3)
    return None
