"""What the label cache does with files that are damaged and with places that cannot be written to."""

import random
import resource
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mitigate.runs import label_cache
from mitigate.runs.label_cache import LabelStore
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.triples import Labels

SCORER = "f" * 64
TEXTS = [f"text number {number}" for number in range(300)]
LABELS = Labels(np.arange(300).astype(np.int8) % 3 - 1, (np.arange(300) / 300).astype(np.float32))


@pytest.fixture(autouse=True)
def _nothing_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_cache, "_announced", set())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of 300 kept labels."""
    LabelStore(tmp_path).put(SCORER, TEXTS, LABELS)
    (file,) = tmp_path.glob("*.sqlite")
    return file


def use(folder: Path) -> int:
    """How many labels are known at first; they are right, and the others can be kept and are then known too."""
    known, found = LabelStore(folder).get(SCORER, TEXTS)
    assert found.label[known].tolist() == LABELS.label[known].tolist()
    assert found.strength[known].tolist() == LABELS.strength[known].tolist()
    missing = [text for text, is_known in zip(TEXTS, known, strict=True) if not is_known]
    LabelStore(folder).put(SCORER, missing, Labels(LABELS.label[~known], LABELS.strength[~known]))
    return int(known.sum())


def test_a_file_that_is_no_database_is_set_aside(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"no database" * 1000)
    assert [use(file.parent), use(file.parent)] == [0, 300]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{file} is damaged" in said
    assert f"it was set aside as {file.name}.damaged-1, and its texts are labelled again" in said
    assert file.with_name(f"{file.name}.damaged-1").read_bytes().startswith(b"no database")


def test_damage_that_a_write_finds_is_set_aside_and_a_second_file_under_another_name(file: Path, capsys) -> None:
    file.write_bytes(b"no database" * 1000)
    LabelStore(file.parent).put(SCORER, TEXTS, LABELS)
    assert use(file.parent) == 300
    assert capsys.readouterr().err.count("set aside") == 1
    file.write_bytes(b"no database")
    use(file.parent)
    assert sorted(file.parent.glob("*.damaged-?")) == [file.with_name(f"{file.name}.damaged-{n}") for n in (1, 2)]


def test_a_file_that_was_cut_short(file: Path) -> None:
    content = file.read_bytes()
    for share in (0.01, 0.3, 0.6):
        file.write_bytes(content[: int(len(content) * share)])
        assert [use(file.parent), use(file.parent)] == [0, 300]


def test_a_changed_label_is_not_believed_and_a_file_without_checksums_not_read(file: Path, capsys) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE labels SET label = 1 WHERE text = 'text number 3'")  # it is -1
    assert use(file.parent) == 0
    assert "a label's checksum is not right" in capsys.readouterr().err
    file.unlink()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE labels (text TEXT PRIMARY KEY, label INTEGER, strength REAL) WITHOUT ROWID")
    assert [use(file.parent), use(file.parent)] == [0, 300]
    assert "of an earlier version (no such column: checksum)" in capsys.readouterr().err


def test_flipped_bytes_never_change_a_label(file: Path) -> None:
    draw, content = random.Random(1), file.read_bytes()
    for number in range(100):
        damaged = bytearray(content)
        at = number if number < 50 else draw.randrange(len(content))  # the first bytes are the header
        for place in range(at, min(at + draw.choice([1, 40]), len(content))):
            damaged[place] = draw.randrange(256)
        for old in file.parent.glob("*.sqlite*"):
            old.unlink()
        file.write_bytes(damaged)
        use(file.parent)


def _use_often(folder: Path) -> list[int]:
    return [use(folder) for _ in range(20)]


def test_processes_that_meet_the_same_damage_set_it_aside_once(file: Path) -> None:
    file.write_bytes(b"no database" * 1000)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        known = list(pool.map(_use_often, [file.parent, file.parent]))
    assert [counts[-1] for counts in known] == [300, 300]
    assert len(list(file.parent.glob("*.damaged-?"))) == 1


@pytest.fixture
def read_only(file: Path) -> Path:
    """The file in a folder where nothing can be locked, as on a read-only disk."""
    (file.parent / ".lock").unlink()
    (file.parent / ".lock").mkdir()
    return file


def test_labels_of_a_read_only_place_are_used(read_only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = read_only
    content, cache = file.read_bytes(), LabelStore(file.parent)
    cache.put(SCORER, ["new"], Labels(np.array([1], np.int8), np.array([0.5], np.float32)))
    known, labels = cache.get(SCORER, ["new", "text number 3", "unknown"])
    assert known.tolist() == [True, True, False]
    assert labels.label.tolist() == [1, -1, 0]
    assert file.read_bytes() == content
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"labels cannot be stored in {file.parent} (Is a directory): stored labels are used" in said
    assert "choose another place with paths.cache=DIR" in said
    file.write_bytes(b"no database")
    assert use(file.parent) == 0  # damage costs the labels, no more


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = LabelStore(tmp_path / "file" / "labels")
    cache.put(SCORER, TEXTS, LABELS)
    assert cache.get(SCORER, TEXTS)[0].all()


@pytest.fixture
def _small_files() -> Iterator[None]:
    """No file may grow beyond 40,000 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("_small_files")
def test_a_full_place_keeps_what_it_has(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = [f"{'long ' * 20}{number}" for number in range(3000)]
    cache = LabelStore(file.parent)
    cache.put(SCORER, many, Labels(np.ones(3000, np.int8), np.ones(3000, np.float32)))
    assert cache.get(SCORER, many + TEXTS)[0].all()
    assert LabelStore(file.parent).get(SCORER, many + TEXTS)[0].sum() == 300
    assert capsys.readouterr().err.count("labels cannot be stored in") == 1


def test_a_text_with_a_zero_byte_is_not_the_text_before_it(tmp_path: Path) -> None:
    store = LabelStore(tmp_path)
    store.put("a", ["bread\t", "tea"], Labels(np.array([1, -1], np.int8), np.array([0.5, -0.5], np.float32)))
    store.put("a", ["bread\t\0x"], Labels(np.array([0], np.int8), np.array([0.1], np.float32)))
    known, labels = store.get("a", ["tea", "bread\t\0x"])
    assert known.tolist() in ([True, False], [True, True])
    assert labels.label[0] == -1
    assert not known[1] or labels.label[1] == 0
    known, labels = LabelStore(tmp_path).get("a", ["bread\t\0x", "bread\t"])
    assert labels.label[1] == 1
    assert not known[0] or labels.label[0] == 0


def test_more_texts_than_sqlite_takes_at_once_are_looked_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_cache, "MOST_CHARACTERS", 100)
    with closing(sqlite3.connect(file)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2000)  # bytes; all texts together have more
        found = label_cache._rows(database, [*TEXTS, "x" * 200])
    assert sorted(row.text for row in found) == sorted(TEXTS)


def test_a_strength_of_minus_zero_is_the_same_from_the_cache_and_without_it(tmp_path: Path) -> None:
    """SQLite keeps no sign of zero, and a table with another one has other bytes."""

    class Scorer:
        name = fingerprint = "signs"

        def __call__(self, texts: Sequence[str]) -> Labels:
            return Labels(np.zeros(len(texts), np.int8), np.full(len(texts), -0.0, np.float32))

    texts = pl.Series(["one", "other", "one"])
    bare = label_column(texts, Scorer(), NOTHING_CACHED)
    for cache in (LabelStore(tmp_path), LabelStore(tmp_path), LabelStore(tmp_path / "file" / "labels")):
        (tmp_path / "file").touch()  # so that the last one cannot be made, and keeps labels in memory
        for _ in range(2):
            found = label_column(texts, Scorer(), cache)
            assert found.strength.tobytes() == bare.strength.tobytes() == bytes(12)
    store = LabelStore(tmp_path)
    store.put(SCORER, ["zero"], Labels(np.zeros(1, np.int8), np.full(1, -0.0, np.float32)))
    assert not np.signbit(store.get(SCORER, ["zero"])[1].strength).any()
