"""Loaders of resources of any size: what each reads, what it counts, and what it says of a broken file."""

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load import conceptnet, stream, triples
from mitigate.load.stream import Counts, Streamed
from mitigate.triples import TRIPLES

WEIGHT = '{"dataset": "/d/conceptnet", "license": "cc:by/4.0", "weight": 1.0}'


def assertion(relation: str, head: str, tail: str, facts: str = WEIGHT) -> str:
    return f"/a/[/r/{relation}/,{head}/,{tail}/]\t/r/{relation}\t{head}\t{tail}\t{facts}\n"


GOOD = assertion("CapableOf", "/c/en/african_american/n/wn", "/c/en/Win_case")
MIXED = (
    GOOD
    + assertion("IsA", "/c/fr/avocat", "/c/fr/personne")
    + assertion("Synonym", "/c/en/nurse", "/c/fr/infirmière")
    + assertion("ExternalURL", "/c/en/nurse", "http://x.org/nurse")
    + assertion("dbpedia/genre", "/c/en/nurse", "/c/en/y")
)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str | bytes], str]:
    def write(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def whole(resource: Streamed) -> tuple[pl.DataFrame, list[str]]:
    """All rows, and what is said of the rest."""
    chunks = [chunk for _, _, chunk in resource.chunks() if chunk is not None]
    notices = resource.describe(sum((chunk.counts for chunk in chunks), Counts()))
    return pl.concat([chunk.rows for chunk in chunks]), notices


def test_assertions_are_read_where_english_and_counted_where_not(written) -> None:
    rows, notices = whole(conceptnet.dump(written("some.csv", MIXED)))
    senses = {"head_sense": pl.String, "tail_sense": pl.String}
    assert dict(rows.schema) == TRIPLES | senses
    assert rows.rows() == [(1, "train", "african american", "CapableOf", "win case", True, "n/wn", "")]
    assert notices == [
        "1 row left out: neither end is English",
        "2 rows left out: one end is not English (another language, or an address)",
        "1 triple left out, whose relation has no phrase: dbpedia 1",
    ]


def test_packed_and_plain_files_cut_anywhere_say_the_same(written, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = written("some.csv", MIXED * 40)
    packed = written("some.csv.gz", gzip.compress((MIXED * 40).encode()))
    expected = whole(conceptnet.dump(plain))
    assert expected[0]["row"].to_list() == list(range(1, 200, 5))
    for size in (700, 5_000):
        monkeypatch.setattr(stream, "BLOCK", size)
        monkeypatch.setattr(stream, "PEEKED", size)
        for path in (plain, packed):
            resource = conceptnet.dump(path)
            assert len(list(resource.chunks())) > 4
            rows, notices = whole(resource)
            assert rows.equals(expected[0])
            assert notices == expected[1]


def test_finished_chunks_are_passed_over(written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK", 700)
    monkeypatch.setattr(stream, "PEEKED", 700)
    resource = conceptnet.dump(written("some.csv", MIXED * 10))
    every = list(resource.chunks())
    rest = list(resource.chunks(finished=lambda number: number < 2))
    assert [chunk is None for _, _, chunk in rest] == [True, True] + [False] * (len(every) - 2)
    assert all(one.rows.equals(other.rows) for (_, _, one), (_, _, other) in zip(every[2:], rest[2:], strict=True))
    assert every[-1][1] == 1.0
    assert sum(chunk.height for _, _, chunk in every) == 50


@pytest.mark.parametrize(
    "line",
    [
        (assertion("IsA", "/c/en/a", "/c/en/b", '{"dataset": "/d/x", "weight": 1.')),
        (assertion("IsA", "/c/en/a", "/c/en/b", '{"dataset": "/d/x"}')),
        (assertion("IsA", "/c/en/a", "/c/en/b").replace("\t", ",")),
    ],
)
def test_a_bad_assertion_is_an_error_or_counted(written, line: str) -> None:
    path = written("some.csv", GOOD + line + GOOD)
    with pytest.raises(MitigateError) as error:
        whole(conceptnet.dump(path))
    assert f"1 bad line:\n  {path}:2: " in str(error.value)
    assert "data.on_bad_line=skip" in str(error.value)
    rows, notices = whole(conceptnet.dump(path, "skip"))
    assert rows["row"].to_list() == [1, 3]
    assert notices[0].startswith(f"1 bad line left out: {path}:2: ")


def test_a_file_of_something_else_is_refused_at_once(written) -> None:
    path = written("some.csv", MIXED.replace("\t", ";"))
    with pytest.raises(MitigateError, match=f"{path} has no readable line; expected lines 'edge URI<TAB>/r/"):
        conceptnet.dump(path)
    with pytest.raises(MitigateError, match="some.csv:1: not UTF-8; the file seems to be in UTF-16. Convert it: iconv"):
        conceptnet.dump(written("some.csv", MIXED.encode("utf-16")))


def test_a_packed_file_that_was_cut_short_or_is_none(written) -> None:
    packed = gzip.compress(MIXED.encode() * 3000)
    resource = conceptnet.dump(written("cut.csv.gz", packed[:-200]))
    with pytest.raises(MitigateError, match=r"cut.csv.gz is damaged or was cut short after line [0-9]+ \(Compressed"):
        whole(resource)
    with pytest.raises(MitigateError, match=r"named.csv.gz is named .gz and is not a gzip file"):
        conceptnet.dump(written("named.csv.gz", MIXED))


def test_a_quoted_field_may_hold_line_ends_even_where_a_block_ends(written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK", 12)
    monkeypatch.setattr(stream, "PEEKED", 25)
    path = written("some.csv", 'head,relation,tail\n"a\nb",IsA,c\nd,IsA,"e\n\nf"\ng,IsA,h\n')
    rows, _ = whole(triples.load(path))
    assert rows.select("row", "head", "tail").rows() == [(2, "a\nb", "c"), (4, "d", "e\n\nf"), (7, "g", "h")]
