import gzip
from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.load.triples_file import read_triples
from mitigate.triples import TRIPLES


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "some.txt"
    path.write_bytes(content)
    return path


def test_three_and_four_columns_of_a_training_file(tmp_path: Path) -> None:
    path = written(tmp_path, b"IsA\tdog\tanimal\nUsedFor\tpen\twrite letter\t2.58\n")
    triples = read_triples(path, "train", labelled=False).triples
    assert dict(triples.schema) == TRIPLES
    assert triples.rows() == [
        (1, "train", "dog", "IsA", "animal", True),
        (2, "train", "pen", "UsedFor", "write letter", True),
    ]


def test_labels_of_a_dev_file(tmp_path: Path) -> None:
    path = written(tmp_path, b"IsA\tdog\tanimal\t1\nIsA\tdog\tletter\t0\n")
    assert read_triples(path, "dev", labelled=True).triples["valid"].to_list() == [True, False]


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "some.txt.gz"
    path.write_bytes(gzip.compress(b"IsA\tdog\tanimal\n"))
    assert read_triples(path, "train", labelled=False).triples.height == 1


def test_byte_order_mark_and_windows_line_ends_are_noted(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfIsA\tdog\tanimal\r\nIsA\tcat\tanimal\r\n")
    loaded = read_triples(path, "train", labelled=False)
    assert loaded.triples["tail"].to_list() == ["animal", "animal"]
    assert loaded.triples["relation"].to_list() == ["IsA", "IsA"]
    assert [notice.removeprefix(f"{path}: ") for notice in loaded.notices] == [
        "byte order mark at the start, ignored",
        "2 lines with Windows line ends (CRLF), accepted",
    ]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"IsA\tdog", "2 columns, expected 3 or 4 separated by tabs"),
        (b"IsA dog animal", "1 column, expected 3 or 4 separated by tabs"),
        (b"IsA\t \tanimal", "a blank field"),
        (b"Isa\tdog\tanimal", "unknown relation 'Isa'"),
        (b"IsA\tdog\t\xff", "not UTF-8 (invalid start byte at byte 8)"),
    ],
)
def test_a_bad_line_is_an_error_or_left_out(tmp_path: Path, line: bytes, fault: str) -> None:
    path = written(tmp_path, b"IsA\tcat\tanimal\n" + line + b"\n")
    with pytest.raises(MitigateError) as error:
        read_triples(path, "train", labelled=False)
    assert str(error.value) == (
        f"1 bad line:\n  {path}:2: {fault}\nMend the file, or leave such lines out with data.on_bad_line=skip."
    )
    loaded = read_triples(path, "train", labelled=False, on_bad_line="skip")
    assert loaded.triples["head"].to_list() == ["cat"]
    assert loaded.notices == [f"1 bad line left out: {path}:2: {fault}"]


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, b"nothing\n" * 8)
    with pytest.raises(MitigateError, match="8 bad lines:(.|\n)*and 3 more"):
        read_triples(path, "train", labelled=False)


def test_label_other_than_0_and_1(tmp_path: Path) -> None:
    path = written(tmp_path, b"IsA\tdog\tanimal\t0.7\n")
    with pytest.raises(MitigateError, match="label '0.7', expected 0 or 1"):
        read_triples(path, "dev", labelled=True)


def test_repeats_leave_training_files_and_stay_in_labelled_ones(tmp_path: Path) -> None:
    path = written(tmp_path, b"IsA\tdog\tanimal\nIsA\tcat\tanimal\nIsA\tdog\tanimal\n")
    loaded = read_triples(path, "train", labelled=False)
    assert loaded.triples["row"].to_list() == [1, 2]
    assert loaded.notices == [f"1 repeated triple left out: {path}:3 repeats line 1"]
    path = written(tmp_path, b"IsA\tdog\tanimal\t1\nIsA\tdog\tanimal\t1\n")
    assert read_triples(path, "test", labelled=True).triples.height == 2


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_empty_file(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(MitigateError, match="some.txt is empty; expected lines"):
        read_triples(written(tmp_path, content), "train", labelled=False)


def test_missing_file_and_broken_gzip(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="there is no file .*absent.txt"):
        read_triples(tmp_path / "absent.txt", "train", labelled=False)
    path = tmp_path / "broken.txt.gz"
    path.write_bytes(gzip.compress(b"IsA\tdog\tanimal\n" * 1000)[:30])
    with pytest.raises(MitigateError, match="broken.txt.gz cannot be read"):
        read_triples(path, "train", labelled=False)


def test_unknown_way_with_bad_lines(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="data.on_bad_line='drop'; allowed: error, skip"):
        read_triples(written(tmp_path, b"IsA\tdog\tanimal\n"), "train", labelled=False, on_bad_line="drop")  # type: ignore[arg-type]
