"""The harms paper's released files: how they are read, and what is said where they are not there."""

from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.load import harms

TRIPLES = (
    "Court_house AtLocation italy\nitaly ExternalURL dbpedia.org\nitaly dbpedia x\nnurse IsA person\nnurse IsA person\n"
)


def placed(root: Path, name: str, content: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_triples_lose_their_underscores_and_those_without_a_phrase_are_counted(tmp_path: Path) -> None:
    placed(tmp_path, harms.CONCEPTNET, TRIPLES)
    loaded = harms.conceptnet(str(tmp_path))
    assert loaded.triples.select("row", "head", "relation", "tail").rows() == [
        (1, "court house", "AtLocation", "italy"),
        (4, "nurse", "IsA", "person"),
        (5, "nurse", "IsA", "person"),  # repeats count, as in the paper
    ]
    assert loaded.notices == ["2 triples left out, whose relation has no phrase: ExternalURL 1, dbpedia 1"]


def test_a_bad_line_of_triples_is_named_or_left_out(tmp_path: Path) -> None:
    path = placed(tmp_path, harms.CONCEPTNET, "nurse IsA person\nnurse\tIsA\tperson\n")
    with pytest.raises(MitigateError, match=f"{path}:2: 1 column, expected 3 separated by a space"):
        harms.conceptnet(str(tmp_path))
    assert harms.conceptnet(str(tmp_path), "skip").triples.height == 1


def test_bytes_that_are_not_utf_8_are_named(tmp_path: Path) -> None:
    path = placed(tmp_path, harms.CONCEPTNET, "nurse IsA person\n")
    path.write_bytes(path.read_bytes() + "café AtLocation italy\n".encode("latin-1"))
    with pytest.raises(MitigateError, match=f"{path}:2: not UTF-8 .* at byte 3"):
        harms.conceptnet(str(tmp_path))
    assert harms.conceptnet(str(tmp_path), "skip").triples.height == 1


def test_released_regard_labels_have_no_header(tmp_path: Path) -> None:
    placed(tmp_path, harms.REGARD, "african_american\t-1\tthis person is late\nnurse\t2\tthis person is a person\n")
    assert harms.conceptnet_regard(str(tmp_path)).statements.select("target", "regard").rows() == [
        ("african american", -1),
        ("nurse", 2),
    ]


def test_where_the_file_must_be_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MitigateError, match="data.root is not given: name with data.root=DIR, or with MITIGATE_DATA,"):
        harms.genericskb()
    with pytest.raises(MitigateError, match=f"there is no {tmp_path}/harms/genericskb_target_sentences.tsv; data.root"):
        harms.genericskb(str(tmp_path))
    placed(tmp_path, harms.GENERICSKB, "Italy\titaly is warm\n")
    monkeypatch.setenv("MITIGATE_DATA", str(tmp_path))
    assert harms.genericskb().statements["target"].to_list() == ["italy"]
